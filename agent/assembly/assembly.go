// Package assembly puts an agent together: its connection to the API server, its
// fleet and its probes. cmd/taintlet runs one such agent on a host. test/measure/scale
// runs thousands. These differ in nothing but what Options say.
package assembly

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/agent/node"
	"github.com/taintlet/taintlet/agent/slots"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// serviceName is the headless Service of the agents, as the manifests have it.
const serviceName = "taintlet"

// New returns an agent that is ready to run, and what ends its connection.
func New(ctx context.Context, o Options) (*agent.Agent, func(), error) {
	a := &agent.Agent{
		Config: o.Config, Reload: o.Reload, NewProbe: o.NewProbe, Log: o.Log, Instance: o.Instance, Boot: o.Boot, Now: o.Now,
		Version: o.Version,
	}
	stop, others := func() {}, fleet.Options{
		Node: o.Node, HostIP: o.HostIP, Listen: o.Listen, Namespace: o.Namespace, Service: serviceName, DNSPods: o.DNSPods, Log: o.Log,
	}
	if o.DryRun == DryRunClient {
		a.Client, a.Slots, a.Recorder = node.NewOverlay(node.NewMemory(o.Node, o.Log), o.Log), slots.Rehearsed{Log: o.Log}, logRecorder{log: o.Log}
	} else {
		client, err := connect(&o)
		if err != nil {
			return nil, nil, err
		}
		others.Source, others.APIServer = client, client.Address()
		a.Client, a.Slots = client, client.Slots(o.Namespace)
		a.Recorder, stop = client.StartRecorder(ctx, func() time.Duration { return a.Fleet.Crowd() }, o.Log)
	}
	if o.DryRun == DryRunServer {
		a.Client, a.Slots, a.Recorder = node.NewOverlay(a.Client, o.Log), slots.Rehearsed{Client: a.Slots, Log: o.Log}, logRecorder{o.Log, a.Recorder}
	}
	a.Fleet = fleet.New(others)
	return a, stop, nil
}

// Requests a second to the API server, and at once. The Node needs few requests.
// Reading all slots needs up to a hundred.
const (
	ClientRate  = 10
	ClientBurst = 120
)

// connect returns a client of the own Node.
func connect(o *Options) (*apiserver.Client, error) {
	restConfig := rest.CopyConfig(o.RestConfig)
	restConfig.QPS, restConfig.Burst = ClientRate, ClientBurst
	client, err := apiserver.NewClient(restConfig, o.Node)
	if err != nil {
		return nil, err
	}
	client = client.Unretried()
	if o.DryRun == DryRunServer {
		client = client.DryRun()
	}
	return client, nil
}

// logRecorder logs the Events of a dry run.
type logRecorder struct {
	log *slog.Logger
	// next takes them too, unless it is nil.
	next agent.Recorder
}

func (r logRecorder) Event(node *taints.Node, kind, reason, message string) {
	r.log.Info("dry run: would write an event", "type", kind, "reason", reason, "message", message)
	if r.next != nil {
		r.next.Event(node, kind, reason, message)
	}
}
