// Package cleanup is the verb that removes taintlet's taints, conditions and annotations from
// Nodes. Both programs have it: operators run it, and so does the Job after an uninstallation.
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

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/taints"
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

// options are the flags of a call. what is to be cleaned up, and the names of the Nodes; none: all.
type options struct {
	ownNode func() string
	dryRun  bool
	wait    time.Duration
	config  string
	cluster command.Cluster

	what  string
	names []string
	// isBlind: the account may not list pods, so nothing is known of running agents.
	isBlind bool
	client  *apiserver.Client
	policy  *decide.Policy
	out     io.Writer
}

// run returns an error if a chosen Node still carries anything of taintlet.
func (o *options) run(ctx context.Context, args []string, stdout io.Writer) error {
	if err := o.choice(args); err != nil {
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
	o.policy, o.out = cfg.Policy(), stdout
	if o.client, err = apiserver.NewClient(restConfig, ""); err != nil {
		return err
	}
	if !o.dryRun && o.what != ofStale { // whose agents were silent for a day
		if err := o.await(ctx); err != nil {
			return err
		}
	}
	return o.cleanUp(ctx)
}

// choice reads what is to be cleaned up.
func (o *options) choice(args []string) (err error) {
	if len(args) == 0 {
		return command.Usagef("specify what to clean up: node, stale or all")
	}
	o.what, o.names = args[0], args[1:]
	switch {
	case o.what != ofNode && o.what != ofStale && o.what != ofAll:
		return command.Usagef("cleanup %q: must be one of node, stale, all", o.what)
	case o.what != ofNode && len(o.names) > 0:
		return command.Usagef("unexpected argument %q after cleanup %s", o.names[0], o.what)
	case o.what == ofNode && len(o.names) == 0 && o.ownNode == nil:
		return command.Usagef("cleanup node: specify the Nodes")
	case o.what == ofNode && len(o.names) == 0:
		o.names = []string{o.ownNode()}
	}
	for _, name := range o.names {
		err = errors.Join(err, command.CheckNodeName("node", name))
	}
	return err
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
// count the removal as a contest. Agents that are not ending are an error after the wait. If the account
// may not list pods, it prints that.
func (o *options) await(ctx context.Context) error {
	isTold := false
	for begin := time.Now(); ; {
		pods, err := o.client.AgentPods(ctx, o.cluster.Namespace, agentLabel)
		running, goesOn := o.running(pods, time.Now())
		names := terminal.Clean(terminal.Listed(running), maxLine)
		switch {
		case apierrors.IsForbidden(err) && time.Since(begin) < min(o.wait, newRole):
		case apierrors.IsForbidden(err):
			o.isBlind = true
			_, err = fmt.Fprintf(o.out, "could not check whether agents still run: your account may not list pods in namespace %s\n", o.cluster.Namespace)
			return err
		case err != nil || len(running) == 0:
			return err
		case goesOn && time.Since(begin) >= o.wait:
			return fmt.Errorf("agents still run, and would set the taints again: %s; delete the DaemonSet first. Nothing was changed", names)
		case !isTold:
			isTold = true
			fmt.Fprintf(o.out, "waiting for the end of agents: %s\n", names)
		}
		if !pace.Sleep(ctx, askAgain) {
			return ctx.Err()
		}
	}
}

// running returns the pods with an agent that can write, of the named Nodes. goesOn: one of them is
// not about to end.
func (o *options) running(pods []corev1.Pod, now time.Time) (names []string, goesOn bool) {
	for i := range pods {
		pod := &pods[i]
		isMeant := len(o.names) == 0 || slices.Contains(o.names, pod.Spec.NodeName)
		hasEnded := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		isLeaving := pod.DeletionTimestamp != nil
		if !isMeant || hasEnded || pod.Spec.NodeName == "" || isLeaving && now.Sub(pod.DeletionTimestamp.Time) >= tokenEndsAfter {
			continue
		}
		names, goesOn = append(names, fmt.Sprintf("%s on %s", pod.Name, pod.Spec.NodeName)), goesOn || !isLeaving
	}
	return names, goesOn
}

const (
	// cleanupRate is how many requests a second a cleanup makes: as many as the
	// node-lifecycle-controller.
	cleanupRate = 20
	// cleanupTries bounds how often a Node is tried again because an agent that
	// still runs wrote it at the same time.
	cleanupTries = 5
	// cleanupPause is how long an agent that still runs is given to show itself
	// before the Nodes are read once more.
	cleanupPause = 5 * time.Second
	// staleAfter is how long ago the last sign of an agent must be.
	staleAfter = 24 * time.Hour
	// wrongClock is how far in the future a sign of an agent tells nothing.
	wrongClock = 2 * time.Hour
	// stalePercent of the Nodes, but at least one, may be cleaned up at a time. More stale Nodes
	// are a mistake rather than dead hosts.
	stalePercent = 5
)

// cleanUp cleans up what was asked for, and says what it did. Then it checks whether anything came
// back where an agent may still run.
func (o *options) cleanUp(ctx context.Context) error {
	nodes, seen, err := o.choose(ctx, time.Now())
	if err != nil && o.what != ofNode {
		return err
	}
	for _, node := range nodes {
		if ctx.Err() == nil {
			err = errors.Join(err, o.clean(ctx, node))
		}
	}
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	if o.dryRun {
		_, err = fmt.Fprintf(o.out, "dry run: %d of %d nodes would be cleaned up\n", len(nodes), seen)
		return err
	}
	fmt.Fprintf(o.out, "%d of %d nodes cleaned up\n", len(nodes), seen)
	if len(nodes) == 0 || o.what != ofAll && !o.isBlind {
		return nil
	}
	if !pace.Sleep(ctx, cleanupPause) {
		return ctx.Err()
	}
	return o.client.Each(ctx, func(node *taints.Node) error {
		if decide.IsTouched(node, o.policy) && slices.ContainsFunc(nodes, func(cleaned *taints.Node) bool { return cleaned.Name == node.Name }) {
			return fmt.Errorf("node %s: an agent still writes it; stop the agent first, for example by deleting the DaemonSet, then clean up again", node.Name)
		}
		return nil
	})
}

// choose returns the Nodes that are to be cleaned up, and how many were read. It reads all Nodes
// before the first write, because a paged list expires during slow writes. Without names it chooses
// the Nodes that carry taints, conditions or annotations of taintlet. A named Node that does not
// exist is an error: after a typing error, the intended Node would stay unchanged.
func (o *options) choose(ctx context.Context, now time.Time) (chosen []*taints.Node, seen int, err error) {
	if o.what == ofNode {
		for _, name := range o.names {
			node, failed := o.client.GetNode(ctx, name)
			switch {
			case apierrors.IsNotFound(failed):
				err = errors.Join(err, fmt.Errorf("node %s does not exist", name))
			case failed != nil:
				err = errors.Join(err, failed)
			default:
				chosen = append(chosen, node)
			}
		}
		return chosen, len(chosen), err
	}
	if o.what == ofStale && o.policy.Heartbeat == 0 {
		return nil, 0, errors.New("the configuration has heartbeat 0: without heartbeats, stale Nodes cannot be found")
	}
	err = o.client.Each(ctx, func(node *taints.Node) error {
		seen++
		if decide.IsTouched(node, o.policy) && (o.what == ofAll || o.isStale(node, now)) {
			chosen = append(chosen, node)
		}
		return nil
	})
	if most := max(1, seen*stalePercent/100); err == nil && o.what == ofStale && len(chosen) > most {
		return nil, seen, fmt.Errorf("%d of %d nodes have had no agent for %s, more than the %d that may be cleaned up at a time; check that the DaemonSet exists. Nothing was changed", len(chosen), seen, staleAfter, most)
	}
	return chosen, seen, err
}

func (o *options) isStale(node *taints.Node, now time.Time) bool {
	last := decide.LastSign(node, o.policy)
	if last.IsZero() || last.After(now.Add(wrongClock)) {
		o.say(node, "cannot read when an agent last wrote it; nothing is removed")
		return false
	}
	return now.Sub(last) > staleAfter
}

func (o *options) clean(ctx context.Context, before *taints.Node) error {
	node := before
	for range cleanupTries {
		desired, stays, err := decide.Cleanup(o.policy, node)
		if err != nil {
			return fmt.Errorf("node %s: cannot read which taints are taintlet's, so nothing is removed; remove them and the annotation by hand: %w", node.Name, err)
		}
		after := desired.ApplyTo(node)
		if !o.dryRun {
			after, err = o.client.Node(node.Name).Apply(ctx, node, desired)
		}
		switch {
		case err == nil:
			o.tell(before, desired.ApplyTo(node)) // others write the Node meanwhile
			if len(stays) > 0 {
				return fmt.Errorf("node %s: the record names %s, but no rule asks for them, so they may be another program's: use --config with the earlier rule, or remove them by hand and clean up again", node.Name, terminal.Clean(fmt.Sprint(stays), maxLine))
			}
			return nil
		case apierrors.IsNotFound(err):
			return nil // deleted in between
		case !errors.Is(err, apiserver.ErrOvertaken):
			return err
		}
		node = after
	}
	return fmt.Errorf("node %s: an agent still writes it; stop the agent first", node.Name)
}

func (o *options) tell(before, after *taints.Node) {
	var gone []string
	for _, taint := range before.Taints {
		if !after.Has(taint.Pair()) {
			gone = append(gone, "taint "+taint.String())
		}
	}
	for _, key := range []string{taints.RecordAnnotation, taints.HeldAnnotation} {
		_, was := before.Annotations[key]
		if _, is := after.Annotations[key]; was && !is {
			gone = append(gone, "annotation "+key)
		}
	}
	for _, condition := range before.Conditions {
		if after.Condition(condition.Type) == nil {
			gone = append(gone, "condition "+condition.Type)
		}
	}
	for _, text := range gone {
		o.say(after, map[bool]string{true: "would remove ", false: "removed "}[o.dryRun]+text)
	}
	if len(gone) == 0 {
		o.say(after, "nothing to remove")
	}
	if _, paused := after.Annotations[taints.PausedAnnotation]; paused {
		o.say(after, "annotation "+taints.PausedAnnotation+" stays, because an operator set it")
	}
}

// maxLine is the longest line about a Node, in bytes: a taint's key, value and effect
// are shorter.
const maxLine = 1 << 10

func (o *options) say(node *taints.Node, text string) {
	fmt.Fprintln(o.out, terminal.Clean("node "+node.Name+": "+text, maxLine))
}
