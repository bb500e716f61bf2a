// Package assembly puts an agent together: its connection to the API server, its
// fleet and its probes. cmd/taintlet runs one such agent on a host. test/measure/scale
// runs thousands. These differ in nothing but what Options say.
package assembly

import (
	"context"
	"time"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/agent/node"
	"github.com/taintlet/taintlet/agent/slots"
)

// serviceName is the headless Service of the agents, as the manifests have it.
const serviceName = "taintlet"

// New returns an agent that is ready to run, and what ends its connection.
func New(ctx context.Context, o Options) (*agent.Agent, func(), error) {
	a := &agent.Agent{
		Config: o.Config, Reload: o.Reload, NewProbe: o.NewProbe, Log: o.Log, Instance: o.Instance, Boot: o.Boot, Now: o.Now,
		LifecycleController: o.LifecycleController, Version: o.Version,
	}
	stop, others := func() {}, fleet.Options{
		Node: o.Node, HostIP: o.HostIP, Listen: o.Listen, Namespace: o.Namespace, Service: serviceName, DNSPods: o.DNSPods, Log: o.Log,
	}
	if o.DryRun == DryRunClient {
		a.Client, a.Slots, a.Recorder = node.NewOverlay(node.NewMemory(o.Node, o.Log), o.Log), slots.Offline{Log: o.Log}, logRecorder{log: o.Log}
	} else {
		client, err := connect(&o)
		if err != nil {
			return nil, nil, err
		}
		others.Source, others.APIServer = client, o.RestConfig.Host
		a.Client, a.Slots = client, client.Slots(o.Namespace)
		a.Recorder, stop = client.StartRecorder(ctx, func() time.Duration { return a.Fleet.Crowd() }, o.Log)
	}
	if o.DryRun == DryRunServer {
		a.Client, a.Slots, a.Recorder = node.NewOverlay(a.Client, o.Log), slots.Rehearsed{Client: a.Slots, Log: o.Log}, logRecorder{o.Log, a.Recorder}
	}
	a.Fleet = fleet.New(others)
	return a, stop, nil
}
