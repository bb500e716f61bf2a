package cleanup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/taints/pace"
)

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

// cleaner removes everything that taintlet set from Nodes, and reports each change.
type cleaner struct {
	*options
	client *apiserver.Client
	policy *decide.Policy
	// what is to be cleaned up, and the names of the Nodes; none: all.
	what  string
	names []string
	out   io.Writer
}

// run cleans up what was asked for, says what it did, and checks whether anything came back
// where an agent may still run.
func (c *cleaner) cleanUp(ctx context.Context, mayRun bool) error {
	nodes, seen, err := c.choose(ctx, time.Now())
	if err != nil && c.what != ofNode {
		return err
	}
	for _, node := range nodes {
		if ctx.Err() == nil {
			err = errors.Join(err, c.clean(ctx, node))
		}
	}
	err = errors.Join(err, ctx.Err())
	c.summarize(len(nodes), seen, err == nil)
	if err != nil || c.dryRun || !mayRun || len(nodes) == 0 {
		return err
	}
	return c.stillWorks(ctx)
}

func (c *cleaner) summarize(chosen, seen int, isDone bool) {
	switch {
	case c.what == ofStale:
		fmt.Fprintf(c.out, "%d of %d nodes had no agent for %s\n", chosen, seen, staleAfter)
	case c.what == ofAll && isDone && c.dryRun:
		fmt.Fprintf(c.out, "dry run: %d of %d nodes would be cleaned up\n", chosen, seen)
	case c.what == ofAll && isDone:
		fmt.Fprintf(c.out, "%d of %d nodes cleaned up\n", chosen, seen)
	}
	if c.dryRun && c.what != ofAll {
		fmt.Fprintln(c.out, "dry run: nothing was changed")
	}
}

// stillWorks is an error when something came back on one of the Nodes.
func (c *cleaner) stillWorks(ctx context.Context) error {
	if !pace.Sleep(ctx, cleanupPause) {
		return ctx.Err()
	}
	return c.client.Each(ctx, func(node *taints.Node) error {
		if (len(c.names) == 0 || slices.Contains(c.names, node.Name)) && decide.IsTouched(node, c.policy) {
			return fmt.Errorf("node %s: an agent still writes it; stop the agent first, for example by deleting the DaemonSet, then clean up again", node.Name)
		}
		return nil
	})
}

// choose returns the Nodes that are to be cleaned up, and how many were read. It reads all Nodes
// before the first write, because a paged list expires during slow writes. Without names it chooses
// the Nodes that carry taints, conditions or annotations of taintlet. A named Node that does not
// exist is an error: after a typing error, the intended Node would stay unchanged.
func (c *cleaner) choose(ctx context.Context, now time.Time) (chosen []*taints.Node, seen int, err error) {
	if c.what == ofNode {
		for _, name := range c.names {
			node, failed := c.client.GetNode(ctx, name)
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
	if c.what == ofStale && c.policy.Heartbeat == 0 {
		return nil, 0, errors.New("the configuration has heartbeat 0: without heartbeats, stale Nodes cannot be found")
	}
	err = c.client.Each(ctx, func(node *taints.Node) error {
		seen++
		if decide.IsTouched(node, c.policy) && (c.what == ofAll || c.isStale(node, now)) {
			chosen = append(chosen, node)
		}
		return nil
	})
	if most := max(1, seen*stalePercent/100); err == nil && c.what == ofStale && len(chosen) > most {
		return nil, seen, fmt.Errorf("%d of %d nodes have had no agent for %s, more than the %d that may be cleaned up at a time; check that the DaemonSet exists. Nothing was changed", len(chosen), seen, staleAfter, most)
	}
	return chosen, seen, err
}

func (c *cleaner) isStale(node *taints.Node, now time.Time) bool {
	last := decide.LastSign(node, c.policy)
	if last.IsZero() || last.After(now.Add(wrongClock)) {
		c.say(node, "cannot read when an agent last wrote it; nothing is removed")
		return false
	}
	return now.Sub(last) > staleAfter
}

func (c *cleaner) clean(ctx context.Context, before *taints.Node) error {
	node := before
	for range cleanupTries {
		desired, stays, err := decide.Cleanup(c.policy, node)
		if err != nil {
			return fmt.Errorf("node %s: cannot read which taints are taintlet's, so nothing is removed; remove them and the annotation by hand: %w", node.Name, err)
		}
		after := desired.ApplyTo(node)
		if !c.dryRun {
			after, err = c.client.Node(node.Name).Apply(ctx, node, desired)
		}
		switch {
		case err == nil:
			c.tell(before, desired.ApplyTo(node)) // others write the Node meanwhile
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

func (c *cleaner) tell(before, after *taints.Node) {
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
		c.say(after, map[bool]string{true: "would remove ", false: "removed "}[c.dryRun]+text)
	}
	if len(gone) == 0 {
		c.say(after, "nothing to remove")
	}
	if _, paused := after.Annotations[taints.PausedAnnotation]; paused {
		c.say(after, "annotation "+taints.PausedAnnotation+" stays, because an operator set it")
	}
}

// maxLine is the longest line about a Node, in bytes: a taint's key, value and effect
// are shorter.
const maxLine = 1 << 10

func (c *cleaner) say(node *taints.Node, text string) {
	fmt.Fprintln(c.out, terminal.Clean("node "+node.Name+": "+text, maxLine))
}
