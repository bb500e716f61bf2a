package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

const (
	cleanupOfNode  = "node"
	cleanupOfAll   = "all"
	cleanupOfStale = "stale"
)

func cleanupVerb() verb {
	return verb{
		name:      "cleanup",
		arguments: "node [NAME…] | stale | all",
		words:     []string{cleanupOfNode, cleanupOfStale, cleanupOfAll},
		summary:   "remove everything of taintlet's from Nodes",
		about: `It removes the taints, annotations and conditions of taintlet. Stop the agents first: an agent that
runs writes them again.

  node [NAME…]  these Nodes (default: $NODE_NAME, then the host name)
  stale         Nodes whose agent has given no sign for a day, at most 5 % of all Nodes
  all           every Node

A taint of a rule of your own is removed only if --config names the file that has the rule. The
annotation taintlet.dev/paused stays: a person put it there.`,
		examples: []example{
			{"What would be removed?", "taintlet cleanup all --dry-run"},
			{"After the DaemonSet is gone, remove all that it left", "taintlet cleanup all"},
			{"One Node of another cluster", "taintlet cleanup node worker-1 --context=staging"},
		},
		bind: func(flags *pflag.FlagSet) func(context.Context, call) error {
			o := &cleanupOptions{}
			flags.BoolVar(&o.dryRun, "dry-run", false, "say what would be removed, and change nothing")
			addConfig(flags, &o.config)
			o.cluster.add(flags)
			addLifecycleController(flags, &o.lifecycleController)
			return o.run
		},
	}
}

// cleanupOptions are the flags of the verb.
type cleanupOptions struct {
	dryRun              bool
	config              string
	cluster             clusterFlags
	lifecycleController bool
}

// run fails when something of taintlet's is left on a Node that was to be
// cleaned.
func (o *cleanupOptions) run(ctx context.Context, c call) error {
	what, nodes, err := cleanupOf(c.args)
	if err != nil {
		return err
	}
	cfg, err := loadConfig(o.config)
	if err != nil {
		return err
	}
	restConfig, err := o.cluster.restConfig()
	if err != nil {
		return err
	}
	restConfig.QPS, restConfig.Burst = cleanupRate, cleanupRate
	client, err := apiserver.NewClient(restConfig, "")
	if err != nil {
		return err
	}
	cleaner := &cleaner{client, cfg.Policy(), taints.Facts{LifecycleController: o.lifecycleController, StandInPrefix: cfg.StandInPrefix}, c.stdout, o.dryRun}
	switch what {
	case cleanupOfAll:
		return cleaner.all(ctx)
	case cleanupOfStale:
		return cleaner.stale(ctx, time.Now())
	}
	var failed []error
	for _, name := range nodes {
		failed = append(failed, cleaner.one(ctx, name))
	}
	return errors.Join(failed...)
}

// cleanupOf returns what the arguments ask to clean up, and which Nodes.
func cleanupOf(args []string) (what string, nodes []string, err error) {
	if len(args) == 0 {
		return "", nil, usageError{errors.New("say what to clean up: node, stale or all")}
	}
	what, nodes = args[0], args[1:]
	switch {
	case what != cleanupOfNode && what != cleanupOfStale && what != cleanupOfAll:
		return "", nil, usageError{fmt.Errorf("cleanup %q: must be one of node, stale, all", what)}
	case what != cleanupOfNode && len(nodes) > 0:
		return "", nil, usageError{fmt.Errorf("unexpected argument %q after cleanup %s", nodes[0], what)}
	case len(nodes) == 0:
		nodes = []string{defaultNodeName()}
	}
	for _, name := range nodes {
		err = errors.Join(err, checkNodeName("node", name))
	}
	return what, nodes, err
}
