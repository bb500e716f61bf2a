package integration

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// For a minute somebody removes our taint every second. Two of our writes are lost to it,
// then we give way, a person is told once, and a restart changes nothing.
func TestTaintIsRemovedEverySecond(t *testing.T) {
	t.Parallel()
	c := keeping.require(t)
	node, host := c.Register(t, "contested"), fixtures.NewHost(t)
	c.SetTaints(t, node.Name, dedicated) // as long as one taint is left, the API server knows who wrote the list
	first := startAgent(t, c, node.Name, host, quick)
	host.Memory(2)
	versions := follow(t, c, node.Name)
	versions.wait(0, tainted(memoryKey))
	others := removeForAMinute(t, c, node.Name, memoryKey)
	c.WaitAgentEvent(t, node.Name, "TaintSetAgain", "field manager hostile removed "+memoryKey+":NoSchedule; it is set again, because of MemoryPressure; to stop that: kubectl annotate node "+node.Name+" taintlet.dev/paused=MemoryPressure")
	c.WaitAgentEvent(t, node.Name, "TaintContested", "field manager hostile removed "+memoryKey+":NoSchedule twice within a minute; taintlet does not set it again")
	c.WaitAgentEvent(t, node.Name, "TaintContested", "set the annotation taintlet.dev/paused on the Node")
	first.WaitMetric(`taintlet_taints_lost_total{condition="MemoryPressure",field_manager="other"} 2`)
	const contested = `taintlet_contested{condition="MemoryPressure"} 1`
	first.WaitMetric(contested)

	first.Kill()
	second := startAgent(t, c, node.Name, host, quick)
	versions.wait(0, writtenBy(second.Instance()))
	second.WaitMetric(contested)
	removed := others.wait()
	all := versions.since(0)
	if lost := gone(all); removed != 2 || len(lost) != 2 {
		t.Fatalf("others removed %d taints, the watch saw %d gone; taints were\n%s", removed, len(lost), show(all))
	}
	if now := all[len(all)-1]; len(now.Spec.Taints) != 1 {
		t.Errorf("taints = %v", now.Spec.Taints)
	}
	for _, kind := range []string{"TaintContested", "TaintSetAgain"} {
		if count := events(t, c, node.Name, kind); count != 1 {
			t.Errorf("%d Events %s", count, kind)
		}
	}
	if lost := second.Losses(); lost != 0 {
		t.Errorf("the agent that started after the contest lost %d taints", lost)
	}
}

// Two removals by hand keep the taint away. The condition says so for as long, and how to end that; who does what it says has the taint again.
func TestAContestEndsWithAPause(t *testing.T) {
	t.Parallel()
	c := keeping.require(t)
	node, host := c.Register(t, "contest-ended"), fixtures.NewHost(t)
	c.SetTaints(t, node.Name, dedicated)
	startAgent(t, c, node.Name, host, quick)
	versions, from := follow(t, c, node.Name), 0
	host.Memory(2)
	for _, key := range []string{memoryKey, memoryKey} {
		from = versions.wait(from, tainted(key))
		c.RunKubectl(t, "taint", "node", node.Name, key+":NoSchedule-")
		from = versions.wait(from, untainted(key)) // it may be back before kubectl has ended
	}
	c.WaitAgentEvent(t, node.Name, "TaintContested", "field manager kubectl-taint removed "+memoryKey+":NoSchedule twice within a minute")
	says := func(text string) func(*corev1.Node) bool {
		return func(node *corev1.Node) bool {
			condition := cluster.Condition(node, "HostMemoryPressure")
			return condition != nil && condition.Status == corev1.ConditionTrue && strings.Contains(condition.Message, text)
		}
	}
	waitNode(t, c, node.Name, says("no taint until the condition has been OK: someone removed the taint twice"))
	waitNode(t, c, node.Name, heldBy(t, describe.HeldContested))

	c.RunKubectl(t, "annotate", "node", node.Name, "taintlet.dev/paused=MemoryPressure")
	c.WaitAgentEvent(t, node.Name, "TaintsPaused", "stops new taints for MemoryPressure;")
	c.RunKubectl(t, "annotate", "node", node.Name, "taintlet.dev/paused-")
	waitNode(t, c, node.Name, tainted(memoryKey))
	c.WaitAgentEvent(t, node.Name, "TaintsResumed", "taints are set again, including those that someone removed")
	waitNode(t, c, node.Name, heldBy(t, ""))
}

// heldBy reports whether the record says that this holds the memory's taint back.
func heldBy(t *testing.T, hold describe.Hold) func(*corev1.Node) bool {
	t.Helper()
	return func(node *corev1.Node) bool {
		status, err := decide.ReadRecord(apiserver.NodeOf(node))
		if err != nil {
			t.Error(err)
		}
		return status.Conditions[probes.MemoryPressure].HeldBy == hold
	}
}

// An administrator removes the taint by hand. Once, it is set again, at the
// price of one write. Twice within a minute is a contest, even when the agent
// was started anew in between, or was not running at all.
func TestTaintRemovedByHand(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]bool{"by-hand": false, "by-hand-while-down": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			removedByHand(t, name, down)
		})
	}
}

func removedByHand(t *testing.T, name string, down bool) {
	t.Helper()
	c := keeping.require(t)
	node, host := c.Register(t, name), fixtures.NewHost(t)
	c.SetTaints(t, node.Name, dedicated)
	first := startAgent(t, c, node.Name, host, quick)
	host.Memory(2)
	versions := follow(t, c, node.Name)
	set := versions.wait(0, tainted(memoryKey))
	remove := func() { c.RunKubectl(t, "taint", "node", node.Name, memoryKey+":NoSchedule-") }

	remove()
	without := versions.wait(set, untainted(memoryKey))
	again := versions.wait(without, tainted(memoryKey))
	first.WaitMetric(`taintlet_taints_lost_total{condition="MemoryPressure",field_manager="kubectl-taint"} 1`)
	staysThroughUpdates(t, c, node, memoryKey, 3*time.Second)
	all := versions.since(set)
	if repairs := recordOf(all[len(all)-1].Node).Revision - recordOf(all[0].Node).Revision; repairs != 1 {
		t.Errorf("%d repairs of one removal", repairs)
	}
	if first.Metric(`taintlet_contested{condition="MemoryPressure"}`) != 0 {
		t.Error("one removal is a contest")
	}

	first.Kill()
	if down {
		remove()
	}
	second := startAgent(t, c, node.Name, host, quick)
	if !down {
		versions.wait(again, writtenBy(second.Instance()))
		remove()
	}
	c.WaitAgentEvent(t, node.Name, "TaintContested", "field manager kubectl-taint removed "+memoryKey+":NoSchedule twice within a minute")
	if lost := gone(versions.since(0)); len(lost) != 2 {
		t.Errorf("%d taints lost; taints were\n%s", len(lost), show(versions.since(0)))
	}
}

// The Node object is deleted and made anew, three times within a minute. The
// taint comes back each time and nobody is blamed.
func TestRecreatedNodeGetsItsTaintBack(t *testing.T) {
	t.Parallel()
	c := keeping.require(t)
	node, host := c.Register(t, "recreated"), fixtures.NewHost(t)
	a := startAgent(t, c, node.Name, host, quick)
	host.Memory(2)
	waitNode(t, c, node.Name, tainted(memoryKey))
	for range 3 {
		if err := node.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := c.Client().CoreV1().Nodes().Delete(t.Context(), node.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		var err error
		if node, err = c.RegisterNode(t.Context(), node.Name); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { node.Stop() }) //nolint:errcheck // as for the one that register made
		waitNode(t, c, node.Name, tainted(memoryKey))
		waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue))
	}
	staysThroughUpdates(t, c, node, memoryKey, 3*time.Second)
	if lost := a.Losses(); lost != 0 {
		t.Errorf("%d taints lost", lost)
	}
	if count := events(t, c, node.Name, "TaintContested"); count != 0 {
		t.Errorf("%d Events TaintContested", count)
	}
	host.Memory(50)
	waitNode(t, c, node.Name, untainted(memoryKey))
}

// hostile is somebody who removes taints from a Node again and again.
type hostile struct {
	done    chan struct{}
	removed int // once done
}

func (h *hostile) wait() int {
	<-h.done
	return h.removed
}

// removeForAMinute searches every second for taints with the keys and removes
// them, as a user and field manager of its own.
func removeForAMinute(t *testing.T, c *cluster.Cluster, name string, keys ...string) *hostile {
	t.Helper()
	identity, err := c.Config("hostile", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(identity)
	if err != nil {
		t.Fatal(err)
	}
	h := &hostile{done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	go func() {
		defer close(h.done)
		defer cancel()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return h.remove(ctx, t, client, name, keys) })
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	}()
	return h
}

func (h *hostile) remove(ctx context.Context, t *testing.T, client kubernetes.Interface, name string, keys []string) error {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(taint corev1.Taint) bool { return slices.Contains(keys, taint.Key) })
	if len(left) == len(node.Spec.Taints) {
		return nil
	}
	patch := marshal(t, map[string]any{
		"metadata": map[string]any{"resourceVersion": node.ResourceVersion},
		"spec":     map[string]any{"taints": left},
	})
	_, err = client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "hostile"})
	if err == nil {
		h.removed++
	}
	return err
}
