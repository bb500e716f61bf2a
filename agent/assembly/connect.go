package assembly

import (
	"context"
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/agent/node"
	"github.com/taintlet/taintlet/agent/slots"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// Requests a second to the API server, and at once. The Node needs few requests.
// Reading all slots needs up to a hundred.
const (
	ClientRate  = 10
	ClientBurst = 120
)

// cluster is what the agent needs of one.
type cluster struct {
	node   node.Client
	slots  slots.Client
	events agent.Recorder
	// source reads what is known of the fleet, at this API server; nil: nothing.
	source    fleet.Source
	apiServer string
}

// offline returns a cluster without any API server.
func offline(name string, log *slog.Logger) cluster {
	return cluster{node: node.NewOverlay(node.NewMemory(name, log), log), slots: slots.Offline{Log: log}, events: logRecorder{log: log}}
}

// connect returns the cluster, and what ends the connection.
func connect(ctx context.Context, o Options) (cluster, func(), error) {
	if o.DryRun == DryRunClient {
		return offline(o.Node, o.Log), func() {}, nil
	}
	restConfig := rest.CopyConfig(o.RestConfig)
	restConfig.QPS, restConfig.Burst = ClientRate, ClientBurst
	client, err := apiserver.NewClient(restConfig, o.Node)
	if err != nil {
		return cluster{}, nil, err
	}
	client = client.Unretried()
	if o.DryRun == DryRunServer {
		client = client.DryRun()
	}
	recorder, stop := client.StartRecorder(ctx, o.Log)
	c := cluster{client, client.Slots(o.Namespace), recorder, client, restConfig.Host}
	if o.DryRun == DryRunServer {
		c.node, c.slots, c.events = node.NewOverlay(client, o.Log), slots.Rehearsed{Client: c.slots, Log: o.Log}, logRecorder{o.Log, recorder}
	}
	return c, stop, nil
}
