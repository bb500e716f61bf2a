// Package cleanup is the verb that removes from Nodes what taintlet left there. Both programs
// have it: people run it, and so does the Job after an uninstallation.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/taints/pace"
)

const (
	ofNode  = "node"
	ofAll   = "all"
	ofStale = "stale"
)

// Verb returns the verb of a program. ownNode is the name of the Node that the program runs
// on, for a call that names none; nil: there is no such Node. names completes names of Nodes; nil:
// nothing does.
func Verb(program string, ownNode func() string, names func(*command.Cluster) cobra.CompletionFunc) *cobra.Command {
	o := &options{ownNode: ownNode}
	usage, nodes := "cleanup node NAME… | stale | all", "node NAME…    these Nodes"
	if ownNode != nil {
		usage, nodes = "cleanup node [NAME…] | stale | all", "node [NAME…]  these Nodes (default: $NODE_NAME, then the host name)"
	}
	c := &cobra.Command{
		Use: usage, Short: "Remove taintlet's taints, annotations and conditions from Nodes",
		DisableFlagsInUseLine: true,
		Long: `Remove taintlet's taints, annotations and conditions from Nodes.

Stop the agents first: while an agent runs on one of these Nodes, the command removes nothing and exits
with code 1. With --wait it waits until the agents have ended. It always waits for agents' pods that are
being deleted.

  ` + nodes + `
  stale         Nodes that no agent has written for a day, if these are at most 5 % of all Nodes
  all           every Node

The taints of custom rules, and conditions that stand for those of other programs, are removed only if the file
of --config contains them. The annotation taintlet.dev/paused stays.`,
		Example: strings.ReplaceAll(`  # Show what would be removed
  PROGRAM cleanup all --dry-run
  # Clean up after deleting the DaemonSet
  PROGRAM cleanup all
  # Clean up one Node of another cluster
  PROGRAM cleanup node worker-1 --context=staging`, "PROGRAM", program),
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			switch {
			case len(args) == 0:
				return []string{ofAll, ofNode, ofStale}, cobra.ShellCompDirectiveNoFileComp
			case args[0] == ofNode && names != nil:
				return names(&o.cluster)(c, args[1:], typed)
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args, c.OutOrStdout()) },
	}
	flags := c.Flags()
	flags.BoolVar(&o.dryRun, "dry-run", false, "print what would be removed, and change nothing")
	flags.DurationVar(&o.wait, "wait", 0, "how long to wait until running agents have ended (default: do not wait)")
	command.AddConfig(flags, &o.config)
	o.cluster.Add(flags)
	return c
}

type options struct {
	ownNode func() string
	dryRun  bool
	wait    time.Duration
	config  string
	cluster command.Cluster
}

// run returns an error if a chosen Node still carries anything of taintlet.
func (o *options) run(ctx context.Context, args []string, stdout io.Writer) error {
	what, nodes, err := o.targets(args)
	if err != nil {
		return err
	}
	cfg, err := command.LoadConfig(o.config)
	if err != nil {
		return err
	}
	restConfig, err := o.cluster.RestConfig()
	if err != nil {
		return err
	}
	restConfig.QPS, restConfig.Burst = cleanupRate, cleanupRate
	client, err := apiserver.NewClient(restConfig, "")
	if err != nil {
		return err
	}
	cleaner := &cleaner{o, client, cfg.Policy(), what, nodes, stdout}
	mayRun := what == ofAll
	if !o.dryRun && what != ofStale { // whose agents were silent for a day
		couldLook, err := cleaner.await(ctx)
		if err != nil {
			return err
		}
		mayRun = mayRun || !couldLook
	}
	return cleaner.cleanUp(ctx, mayRun)
}

func (o *options) targets(args []string) (what string, nodes []string, err error) {
	if len(args) == 0 {
		return "", nil, command.Usagef("specify what to clean up: node, stale or all")
	}
	what, nodes = args[0], args[1:]
	switch {
	case what != ofNode && what != ofStale && what != ofAll:
		return "", nil, command.Usagef("cleanup %q: must be one of node, stale, all", what)
	case what != ofNode && len(nodes) > 0:
		return "", nil, command.Usagef("unexpected argument %q after cleanup %s", nodes[0], what)
	case what == ofNode && len(nodes) == 0 && o.ownNode == nil:
		return "", nil, command.Usagef("cleanup node: specify the Nodes")
	case what == ofNode && len(nodes) == 0:
		nodes = []string{o.ownNode()}
	}
	for _, name := range nodes {
		err = errors.Join(err, command.CheckNodeName("node", name))
	}
	return what, nodes, err
}

const (
	agentLabel = "app.kubernetes.io/name=taintlet"
	// tokenEndsAfter is how long after its deletion a pod's token is still accepted: the
	// API server allows a minute (jwt.DefaultLeeway in pkg/serviceaccount/claims.go), and
	// remembers an answer for 10 s. A pod that is there for longer, such as that of a dead
	// Node, has an agent that can write nothing any more.
	tokenEndsAfter = 75 * time.Second
	// newRole is how long after it was made a role may still be unknown to the API server:
	// that of the Job after an uninstallation is as old as the Job.
	newRole  = 10 * time.Second
	askAgain = time.Second
)

// await waits until no agent can write: a running agent would set the removed taints again, and
// count the removal as a contest. Agents that are not ending are an error after the wait. couldLook
// is false if the account may not list pods.
func (c *cleaner) await(ctx context.Context) (couldLook bool, err error) {
	isTold := false
	for begin := time.Now(); ; {
		pods, err := c.client.AgentPods(ctx, c.cluster.Namespace, agentLabel)
		running, ending := divide(pods, c.names, time.Now())
		switch {
		case apierrors.IsForbidden(err) && time.Since(begin) < min(c.wait, newRole):
		case apierrors.IsForbidden(err):
			_, err = fmt.Fprintf(c.out, "could not check whether agents still run: your account may not list pods in namespace %s\n", c.cluster.Namespace)
			return false, err
		case err != nil:
			return false, err
		case len(running)+len(ending) == 0:
			return true, nil
		case len(running) > 0 && time.Since(begin) >= c.wait:
			return true, fmt.Errorf("agents still run, and would set the taints again: %s; delete the DaemonSet first. Nothing was changed", someOf(running))
		case !isTold:
			isTold = true
			fmt.Fprintf(c.out, "waiting for the end of agents: %s\n", someOf(append(running, ending...)))
		}
		if !pace.Sleep(ctx, askAgain) {
			return true, ctx.Err()
		}
	}
}

// divide returns the pods with an agent that can write, of these Nodes (none: all): those that
// go on, and those that are about to end.
func divide(pods []corev1.Pod, nodes []string, now time.Time) (running, ending []string) {
	for i := range pods {
		pod := &pods[i]
		isMeant := len(nodes) == 0 || slices.Contains(nodes, pod.Spec.NodeName)
		if !isMeant || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		name := fmt.Sprintf("%s on %s", pod.Name, pod.Spec.NodeName)
		switch {
		case pod.DeletionTimestamp == nil:
			running = append(running, name)
		case now.Sub(pod.DeletionTimestamp.Time) < tokenEndsAfter:
			ending = append(ending, name)
		}
	}
	return running, ending
}

func someOf(names []string) string { return terminal.Clean(terminal.Listed(names), maxLine) }
