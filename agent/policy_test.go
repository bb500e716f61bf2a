package agent_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// withPolicy is a client that says whether the admission policy is there.
type withPolicy struct {
	*beside
	isThere  atomic.Bool
	isSilent atomic.Bool // no answer to that question
	isSlow   atomic.Bool // an answer after 5 s
	lookups  atomic.Int64
	told     agent.Told
}

func (w *withPolicy) KeepPolicy(context.Context, bool) (isPresent bool, version string, err error) {
	w.lookups.Add(1)
	if w.isSlow.Load() {
		time.Sleep(5 * time.Second)
	}
	if w.isSilent.Load() {
		return false, "", apierrors.NewInternalError(context.DeadlineExceeded)
	}
	return w.isThere.Load(), "1", nil
}

// runWithPolicy runs an agent that finds no admission policy at its start.
func runWithPolicy(t *testing.T, test func(t *testing.T, by map[probes.Condition]*probe, c *withPolicy)) {
	t.Helper()
	cfg := config.Default()
	cfg.Heartbeat.Duration = 0
	w, by := &withPolicy{}, map[probes.Condition]*probe{}
	a := &agent.Agent{Config: cfg, NewProbe: func(c config.Condition) probes.Probe { return by[c.Name] }, Recorder: &w.told, Client: w}
	synctest.Test(t, func(t *testing.T) {
		runInBubble(t, a, by, func(t *testing.T, by map[probes.Condition]*probe, _ *client) { test(t, by, w) })
	})
}

// losesKept has somebody remove the kept taint soon after it was set, when the answer that
// the policy is there is old. The API server does not know who it was.
func (w *withPolicy) losesKept(t *testing.T, by map[probes.Condition]*probe, isThereThen bool) {
	t.Helper()
	w.isThere.Store(true)
	by[probes.MemoryPressure].set(probes.Degraded)
	for !w.has(corev1.TaintNodeMemoryPressure) {
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(1500 * time.Millisecond)
	w.isThere.Store(isThereThen)
	w.told.Take()
	w.write(func(node *taints.Node) { node.Taints = nil })
	time.Sleep(6 * time.Second)
	if !w.has(memoryStandIn) {
		t.Error("no stand-in")
	}
}

// tells checks that one Event about the level was written, and names the taint.
func (w *withPolicy) tells(t *testing.T, taint string) {
	t.Helper()
	events := slices.DeleteFunc(w.told.Take(), func(e string) bool { return !strings.Contains(e, "HostMemoryPressureDegraded") })
	if len(events) != 1 || !strings.Contains(events[0], taint) {
		t.Errorf("Events %q, want one with %s", events, taint)
	}
}

// everHad says that the agent has ever written that taint.
func (w *withPolicy) everHad(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.desired, func(desired taints.Desired) bool {
		return slices.ContainsFunc(desired.Taints, func(taint taints.Taint) bool { return taint.Key == key })
	})
}

const memoryStandIn = "taintlet.dev/memory-pressure"

// Before a stand-in is set the policy is looked up again: it may have been installed
// since the last heartbeat. Then it is not used before API servers have loaded it.
func TestPolicyIsLookedUpBeforeAStandIn(t *testing.T) {
	runWithPolicy(t, func(t *testing.T, by map[probes.Condition]*probe, w *withPolicy) {
		w.isThere.Store(true)
		by[probes.MemoryPressure].set(probes.Degraded)
		for before := w.lookups.Load(); w.lookups.Load() == before; {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2900 * time.Millisecond)
		if w.has(corev1.TaintNodeMemoryPressure) {
			t.Error("kept by a policy that may not be loaded")
		}
		time.Sleep(7 * time.Second)
		if !w.has(corev1.TaintNodeMemoryPressure) || w.everHad(memoryStandIn) {
			t.Errorf("kept %t, stand-in %t", w.has(corev1.TaintNodeMemoryPressure), w.everHad(memoryStandIn))
		}
		w.tells(t, "taint node.kubernetes.io/memory-pressure:NoSchedule")
	})
}

// Without the policy the stand-in is set as soon, and asked for once.
func TestWithoutThePolicyAStandInIsSetAtOnce(t *testing.T) {
	runWithPolicy(t, func(t *testing.T, by map[probes.Condition]*probe, w *withPolicy) {
		before := w.lookups.Load()
		by[probes.MemoryPressure].set(probes.Degraded)
		time.Sleep(4500 * time.Millisecond) // a period and 100 ms
		if !w.has(memoryStandIn) {
			t.Error("no stand-in")
		}
		w.tells(t, "taint taintlet.dev/memory-pressure:NoSchedule")
		time.Sleep(time.Hour)
		if asked := w.lookups.Load() - before; asked != 1 {
			t.Errorf("%d lookups in an hour with a stand-in", asked)
		}
	})
}

// While nobody answers, nothing else is written in its place; the stand-in is set once
// there is an answer.
func TestAStandInWaitsForTheAnswer(t *testing.T) {
	runWithPolicy(t, func(t *testing.T, by map[probes.Condition]*probe, w *withPolicy) {
		w.isSilent.Store(true)
		by[probes.MemoryPressure].set(probes.Degraded)
		time.Sleep(time.Minute)
		if w.everHad(memoryStandIn) {
			t.Error("a stand-in without an answer")
		}
		w.isSilent.Store(false)
		time.Sleep(13 * time.Second) // a pause between two tries
		if !w.has(memoryStandIn) {
			t.Error("no stand-in after the answer")
		}
	})
}

// A policy that is there and keeps no taint fails, however long the answer takes that it is
// there.
func TestAPolicyThatFailsIsTold(t *testing.T) {
	runWithPolicy(t, func(t *testing.T, by map[probes.Condition]*probe, w *withPolicy) {
		w.isSlow.Store(true)
		w.losesKept(t, by, true)
		events := w.told.Take()
		if len(events) != 1 || !strings.HasPrefix(events[0], "Warning KeepPolicyFails the policy taintlet-keep fails: the node-lifecycle-controller removed node.kubernetes.io/memory-pressure:NoSchedule") {
			t.Errorf("Events %q", events)
		}
	})
}

// A policy that is gone does not fail: before anything is told it is looked up.
func TestAPolicyThatIsGoneDoesNotFail(t *testing.T) {
	runWithPolicy(t, func(t *testing.T, by map[probes.Condition]*probe, w *withPolicy) {
		w.losesKept(t, by, false)
		if events := w.told.Take(); len(events) > 0 {
			t.Errorf("Events %q", events)
		}
	})
}
