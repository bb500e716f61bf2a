package cleanup

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	// stalePercent of the Nodes, but at least one, may be cleaned up at a time:
	// more than that is no dead host but a mistake.
	stalePercent = 5
)

// cleaner removes everything of taintlet's from Nodes and says what it did.
type cleaner struct {
	client *apiserver.Client
	policy *decide.Policy
	facts  taints.Facts
	out    io.Writer
	// dryRun: nothing is written.
	dryRun bool
}

// each cleans up these Nodes, whatever is there.
func (c *cleaner) each(ctx context.Context, names []string) error {
	var failed []error
	for _, name := range names {
		failed = append(failed, c.one(ctx, name))
	}
	return errors.Join(failed...)
}

// staysClean is an error when an agent has written one of the Nodes again.
func (c *cleaner) staysClean(ctx context.Context, names []string) error {
	if !pace.Sleep(ctx, cleanupPause) {
		return ctx.Err()
	}
	for _, name := range names {
		node, err := c.client.Node(name).Get(ctx)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return err
		case decide.IsTouched(node, c.policy):
			return fmt.Errorf("node %s: an agent is still at work on it; stop it first, then clean up again", name)
		}
	}
	return nil
}

// one cleans up one Node, whatever is there. A Node that does not exist is an error: a
// typing error would leave the one that was meant as it is.
func (c *cleaner) one(ctx context.Context, name string) error {
	node, err := c.client.Node(name).Get(ctx)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("node %s does not exist", name)
	}
	if err != nil {
		return err
	}
	return c.clean(ctx, node)
}

// all cleans up every Node that carries something of ours, then checks whether
// anything came back.
func (c *cleaner) all(ctx context.Context) error {
	touched, seen, err := c.touched(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, node := range touched {
		failed = append(failed, c.clean(ctx, node))
		if ctx.Err() != nil {
			break
		}
	}
	if err := errors.Join(append(failed, ctx.Err())...); err != nil {
		return err
	}
	if c.dryRun {
		fmt.Fprintf(c.out, "dry run: %d of %d nodes would be cleaned up\n", len(touched), seen)
		return nil
	}
	fmt.Fprintf(c.out, "%d of %d nodes cleaned up\n", len(touched), seen)
	if len(touched) == 0 {
		return nil
	}
	if !pace.Sleep(ctx, cleanupPause) {
		return ctx.Err()
	}
	return c.client.Each(ctx, func(node *taints.Node) error {
		if decide.IsTouched(node, c.policy) {
			return fmt.Errorf("node %s: an agent is still at work on it; delete the DaemonSet first, then clean up again", node.Name)
		}
		return nil
	})
}

// touched returns the Nodes that carry something of ours, and how many Nodes there
// are. All are read before the first is written: a list does not wait for a slow
// reader.
func (c *cleaner) touched(ctx context.Context) (touched []*taints.Node, seen int, err error) {
	err = c.client.Each(ctx, func(node *taints.Node) error {
		seen++
		if decide.IsTouched(node, c.policy) {
			touched = append(touched, node)
		}
		return nil
	})
	return touched, seen, err
}

// stale cleans up the Nodes whose agent has given no sign for a day.
func (c *cleaner) stale(ctx context.Context, now time.Time) error {
	if c.policy.Heartbeat == 0 {
		return errors.New("the configuration has heartbeat 0: without heartbeats it cannot be told which agents are gone")
	}
	touched, seen, err := c.touched(ctx)
	if err != nil {
		return err
	}
	var stale []*taints.Node
	for _, node := range touched {
		switch last := decide.LastSign(node, c.policy); {
		case last.IsZero(), last.After(now.Add(wrongClock)):
			c.say(node, "cannot tell when an agent last wrote it; left alone")
		case now.Sub(last) > staleAfter:
			stale = append(stale, node)
		}
	}
	if most := max(1, seen*stalePercent/100); len(stale) > most {
		return fmt.Errorf("%d of %d nodes have had no agent for %s, more than the %d that may be cleaned up at a time; is the DaemonSet there? Nothing was changed", len(stale), seen, staleAfter, most)
	}
	var failed []error
	for _, node := range stale {
		failed = append(failed, c.clean(ctx, node))
	}
	fmt.Fprintf(c.out, "%d of %d nodes had no agent for %s\n", len(stale), seen, staleAfter)
	return errors.Join(failed...)
}

// clean cleans up one Node.
func (c *cleaner) clean(ctx context.Context, before *taints.Node) error {
	node := before
	for range cleanupTries {
		desired, stays, err := decide.Cleanup(c.policy, c.facts, node)
		if err != nil {
			return fmt.Errorf("node %s: it cannot be told which taints are taintlet's, so nothing is removed; remove them and the annotation by hand: %w", node.Name, err)
		}
		after, err := c.apply(ctx, node, desired)
		switch {
		case err == nil:
			c.tell(before, after)
			if len(stays) > 0 {
				return fmt.Errorf("node %s: the record names %s, but no rule asks for them, so they may be anybody's: give --config with the rule that did, or remove them by hand and clean up again", node.Name, terminal.Clean(fmt.Sprint(stays), maxLine))
			}
			return nil
		case apierrors.IsNotFound(err):
			return nil // deleted in between
		case !errors.Is(err, apiserver.ErrOvertaken):
			return err
		}
		node = after
	}
	return fmt.Errorf("node %s: an agent is still at work on it; stop it first", node.Name)
}

// apply writes what is desired, or returns the Node as it would be.
func (c *cleaner) apply(ctx context.Context, node *taints.Node, desired taints.Desired) (*taints.Node, error) {
	if c.dryRun {
		return desired.ApplyTo(node), nil
	}
	return c.client.Node(node.Name).Apply(ctx, node, desired)
}

// tell prints what was removed from a Node.
func (c *cleaner) tell(before, after *taints.Node) {
	removed, verb := 0, "removed"
	if c.dryRun {
		verb = "would remove"
	}
	gone := func(what, name string) {
		removed++
		c.say(after, verb+" "+what+" "+name)
	}
	for _, taint := range before.Taints {
		if !after.Has(taint.Pair()) {
			gone("taint", taint.String())
		}
	}
	for _, key := range []string{taints.RecordAnnotation, taints.HeldAnnotation} {
		_, was := before.Annotations[key]
		if _, is := after.Annotations[key]; was && !is {
			gone("annotation", key)
		}
	}
	for _, condition := range before.Conditions {
		if after.Condition(condition.Type) == nil {
			gone("condition", condition.Type)
		}
	}
	if removed == 0 {
		c.say(after, "nothing of taintlet's was there")
	}
	if _, paused := after.Annotations[taints.PausedAnnotation]; paused {
		c.say(after, "annotation "+taints.PausedAnnotation+" stays; a person put it there")
	}
}

// maxLine is the longest line about a Node, in bytes: a taint's key, value and effect
// are shorter.
const maxLine = 1 << 10

// say prints a line about a Node.
func (c *cleaner) say(node *taints.Node, text string) {
	fmt.Fprintln(c.out, terminal.Clean("node "+node.Name+": "+text, maxLine))
}
