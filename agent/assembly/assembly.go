// Package assembly puts an agent together: its connection to the API server, its
// fleet and its probes. cmd/taintlet runs one such agent on a host. test/measure/scale
// runs thousands. These differ in nothing but what Options say.
package assembly

import (
	"context"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/fleet"
)

// serviceName is the headless Service of the agents, as the manifests have it.
const serviceName = "taintlet"

// New returns an agent that is ready to run, and what ends its connection.
func New(ctx context.Context, o Options) (*agent.Agent, func(), error) {
	c, stop, err := connect(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	a := o.Agent
	a.Client, a.Slots, a.Recorder = c.node, c.slots, c.events
	a.Fleet = fleet.New(fleet.Options{
		Node: o.Node, HostIP: o.HostIP, Listen: o.Listen, Namespace: o.Namespace, Service: serviceName, DNSPods: o.DNSPods,
		APIServer: c.apiServer, Source: c.source, Log: o.Log,
	})
	return &a, stop, nil
}
