package agent_test

import (
	"context"
	"fmt"
	"slices"
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
	// damages: another client damages each record that is written. The agent sees that before the
	// answer, which shows it too: the conditions are patched after the record.
	damages bool
	// swallows: patches are answered with the Node as it is, for example because a proxy redirects
	// them, and the client then reads.
	swallows bool
}

func newRestored(version int) *restored {
	return &restored{changed: make(chan struct{}, 100), stored: &taints.Node{Name: "host", UID: "1", ResourceVersion: fmt.Sprint(version)}}
}

// change changes what the server does or stores.
func (r *restored) change(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
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
	r.writes++
	next := r.stored.Clone()
	if r.swallows {
		defer r.mu.Unlock()
		return next, nil
	}
	if _, differs := desired.Differs(base); differs { // as Client.Apply: or only conditions are patched
		next = desired.ApplyTo(r.stored)
	}
	next.ResourceVersion = fmt.Sprint(r.version() + 1)
	r.stored = next
	damages := r.damages && next.Annotations[taints.RecordAnnotation] != ""
	if damages {
		r.stored = next.Clone()
		r.stored.Annotations[taints.RecordAnnotation] = "nonsense"
		r.stored.ResourceVersion = fmt.Sprint(r.version() + 1)
		next = r.stored
	}
	r.changed <- struct{}{}
	r.mu.Unlock()
	if damages {
		time.Sleep(time.Second)
	}
	return next.Clone(), nil
}

// runRestored runs an agent on such an API server, whose Node begins with that version.
func runRestored(t *testing.T, version int, cfg *config.Config, test func(t *testing.T, by map[probes.Condition]*probe, server *restored)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, by := newRestored(version), map[probes.Condition]*probe{}
		a := &agent.Agent{Config: cfg, Recorder: &agent.Told{}, Client: server, NewProbe: func(c config.Condition) probes.Probe { return by[c.Name] }}
		runInBubble(t, a, by, func(t *testing.T, _ map[probes.Condition]*probe, _ *client) { test(t, by, server) })
	})
}

// What was accepted and not stored is written again, and nobody is said to have removed it.
func TestSwallowedWriteIsRepeated(t *testing.T) {
	runRestored(t, 1, config.Default(), func(t *testing.T, by map[probes.Condition]*probe, server *restored) {
		time.Sleep(time.Minute)
		server.change(func() { server.swallows = true })
		by[probes.MemoryPressure].set(probes.Degraded)
		time.Sleep(15 * time.Second)
		server.change(func() { server.swallows = false })
		time.Sleep(5 * time.Minute)
		server.mu.Lock()
		defer server.mu.Unlock()
		if !server.stored.Has(memoryPressure) {
			t.Errorf("no taint; the record is %s", server.stored.Annotations[taints.RecordAnnotation])
		}
	})
}

// Another client damages the record as soon as it is written, so that the agent never sees what it
// wrote. The taint is its own all the same, and goes when the condition clears.
func TestRecordDamagedBeforeTheAnswer(t *testing.T) {
	cfg, err := config.HostSchema().Decode([]byte(header + "keys: Own\n"))
	if err != nil {
		t.Fatal(err)
	}
	runRestored(t, 1, cfg, func(t *testing.T, by map[probes.Condition]*probe, server *restored) {
		taintsAre := func(want ...string) {
			t.Helper()
			server.mu.Lock()
			defer server.mu.Unlock()
			var keys []string
			for _, taint := range server.stored.Taints {
				keys = append(keys, taint.Key)
			}
			if !slices.Equal(keys, want) {
				t.Errorf("the Node has the taints %q, want %q", keys, want)
			}
		}
		server.change(func() { server.damages = true })
		by[probes.MemoryPressure].set(probes.Degraded)
		time.Sleep(15 * time.Second)
		server.change(func() { server.damages = false })
		taintsAre("taintlet.dev/memory-pressure")
		by[probes.MemoryPressure].set(probes.OK)
		time.Sleep(10 * time.Minute)
		taintsAre()
	})
}

// After etcd was restored, the Node is older than the one that the agent knows, and
// the watch says nothing of it. The agent sees that by its next write, takes the Node
// as it is, and watches anew.
func TestRestoredNode(t *testing.T) { runRestored(t, 5000, config.Default(), testRestored) }

var memoryPressure = taints.Pair{Key: corev1.TaintNodeMemoryPressure, Effect: taints.NoSchedule}

func testRestored(t *testing.T, by map[probes.Condition]*probe, server *restored) {
	t.Helper()
	has := func() bool {
		server.mu.Lock()
		defer server.mu.Unlock()
		return server.stored.Has(memoryPressure)
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
