package agent_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// restored is an API server whose etcd can be restored from a backup. As with a real
// one, a watch tells only versions beyond the one that it began with, and a patch is
// made on what is stored.
type restored struct {
	*client
	mu      sync.Mutex
	stored  *taints.Node
	watches int
	writes  int
	changed chan struct{}
}

func newRestored(version int) *restored {
	return &restored{changed: make(chan struct{}, 100), stored: &taints.Node{Name: "host", UID: "1", ResourceVersion: fmt.Sprint(version)}}
}

func (r *restored) version() int {
	n, _ := strconv.Atoi(r.stored.ResourceVersion)
	return n
}

func (r *restored) Watch(ctx context.Context, nodes chan<- *taints.Node) error {
	r.mu.Lock()
	r.watches++
	r.mu.Unlock()
	for told := -1; ; {
		r.mu.Lock()
		node, version := r.stored.Clone(), r.version()
		r.mu.Unlock()
		if version > told {
			told = version
			select {
			case nodes <- node:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		select {
		case <-r.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *restored) Apply(_ context.Context, base *taints.Node, desired taints.Desired) (*taints.Node, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	next := r.stored.Clone()
	if _, differs := desired.Differs(base); differs { // as Client.Apply: or only conditions are patched
		next = desired.ApplyTo(r.stored)
	}
	next.ResourceVersion = fmt.Sprint(r.version() + 1)
	r.stored = next
	r.changed <- struct{}{}
	return next.Clone(), nil
}

// After etcd was restored, the Node is older than the one that the agent knows, and
// the watch says nothing of it. The agent sees that by its next write, takes the Node
// as it is, and watches anew.
func TestRestoredNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, by := newRestored(5000), map[probes.Condition]*probe{}
		a := &agent.Agent{Config: config.Default(), Recorder: &agent.Told{}, Client: server, NewProbe: func(c config.Condition) probes.Probe { return by[c.Name] }}
		runInBubble(t, a, by, func(t *testing.T, _ map[probes.Condition]*probe, _ *client) { testRestored(t, by, server) })
	})
}

func testRestored(t *testing.T, by map[probes.Condition]*probe, server *restored) {
	t.Helper()
	key := taints.Pair{Key: corev1.TaintNodeMemoryPressure, Effect: taints.NoSchedule}
	has := func() bool {
		server.mu.Lock()
		defer server.mu.Unlock()
		return server.stored.Has(key)
	}
	by[probes.MemoryPressure].set(probes.Degraded)
	time.Sleep(time.Minute)
	if !has() {
		t.Fatal("no taint before the restore")
	}
	server.mu.Lock()
	server.stored = &taints.Node{Name: "host", UID: "1", ResourceVersion: "100"}
	watches, writes := server.watches, server.writes
	server.mu.Unlock()
	time.Sleep(10 * time.Minute) // two heartbeats
	if !has() {
		t.Error("no taint after the restore")
	}
	time.Sleep(time.Hour)
	server.mu.Lock()
	defer server.mu.Unlock()
	if server.watches == watches {
		t.Error("the watch that is deaf goes on")
	}
	if n := server.writes - writes; n > 40 {
		t.Errorf("%d writes in 70 min", n)
	}
}
