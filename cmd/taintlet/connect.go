package main

import (
	"context"
	"fmt"
	"log/slog"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/taints"
)

// Requests a second to the API server, and at once.
const (
	clientRate  = 10
	clientBurst = 120
)

// cluster is what the agent needs of one.
type cluster struct {
	node   agent.NodeClient
	slots  agent.SlotClient
	events agent.Recorder
	// source reads what is known of the fleet, at this API server; nil: nothing.
	source    fleet.Source
	apiServer string
}

// connect returns the cluster, and what ends the connection.
func connect(ctx context.Context, o *options, log *slog.Logger) (cluster, func(), error) {
	if o.dryRun == dryRunClient {
		return cluster{node: agent.NewOffline(o.nodeName, log), slots: agent.OfflineSlots{Log: log}, events: logRecorder{log: log}}, func() {}, nil
	}
	restConfig, err := apiConfig(o.kubeconfig)
	if err != nil {
		return cluster{}, nil, err
	}
	// The Node needs few requests. Reading all slots needs up to a hundred.
	restConfig.QPS, restConfig.Burst = clientRate, clientBurst
	client, err := taints.NewClient(restConfig, o.nodeName)
	if err != nil {
		return cluster{}, nil, err
	}
	if o.dryRun == dryRunServer {
		client = client.DryRun()
	}
	recorder, stop := client.StartRecorder(ctx, log)
	c := cluster{client, client.Slots(o.namespace), recorder, client, restConfig.Host}
	if o.dryRun == dryRunServer {
		c.node, c.slots, c.events = agent.NewRehearsal(client, log), agent.RehearsedSlots{SlotClient: c.slots, Log: log}, logRecorder{log, recorder}
	}
	return c, stop, nil
}

func apiConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		restConfig, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("no --kubeconfig given and not in a cluster (to see what taintlet sees without one: taintlet once, or --dry-run=client): %w", err)
		}
		return restConfig, nil
	}
	restConfig, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", kubeconfig, err)
	}
	return restConfig, nil
}
