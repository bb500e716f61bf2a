package agent_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/node"
	"github.com/taintlet/taintlet/agent/slots"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// leases is a fleet's slots as one Node sees them.
type leases struct {
	mu       sync.Mutex
	number   int // of the slot that is got
	free     bool
	err      error
	holding  bool
	acquired []time.Time
	renewed  []time.Time
	released []time.Time
}

func (s *leases) Acquire(context.Context, int, time.Duration, func(taints.Pair) bool) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acquired = append(s.acquired, time.Now())
	s.holding = s.err == nil && s.free
	return s.holding, s.err
}

func (s *leases) Renew(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.renewed = append(s.renewed, time.Now())
	}
	return s.holding, s.err
}

func (s *leases) Release(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released, s.holding = append(s.released, time.Now()), false
	return s.err
}

func (s *leases) IsBeyond(count int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holding && s.number >= count
}

// seen is a copy of what has happened so far.
func (s *leases) seen() (seen struct {
	holding                     bool
	acquired, renewed, released []time.Time
},
) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen.holding = s.holding
	seen.acquired, seen.renewed, seen.released = slices.Clone(s.acquired), slices.Clone(s.renewed), slices.Clone(s.released)
	return seen
}

func (s *leases) set(change func(*leases)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func evict() taints.Pair {
	return taints.Pair{Key: corev1.TaintNodeMemoryPressure, Effect: taints.NoExecute}
}

func (c *client) carries(p taints.Pair) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.node != nil && c.node.Has(p)
}

func runEvicting(t *testing.T, s *leases, test func(t *testing.T, memory *probe, c *client)) {
	t.Helper()
	runEvictingBy(t, s, func(*config.Config) {}, test)
}

// runEvictingBy is runEvicting by another configuration.
func runEvictingBy(t *testing.T, s slots.Client, change func(*config.Config), test func(t *testing.T, memory *probe, c *client)) {
	t.Helper()
	runEvictingOn(t, nil, s, change, func(t *testing.T, by map[probes.Condition]*probe, c *client) { test(t, by[probes.MemoryPressure], c) })
}

// runEvictingOn runs an agent that evicts, on a Node of its own or on that of
// the client.
func runEvictingOn(t *testing.T, on node.Client, s slots.Client, change func(*config.Config), test func(t *testing.T, by map[probes.Condition]*probe, c *client)) {
	t.Helper()
	cfg := config.Default()
	cfg.Rules = config.Default().Policy().BuiltInRules()
	cfg.Eviction.Slots = 1
	change(cfg)
	by := map[probes.Condition]*probe{}
	a := &agent.Agent{
		Config: cfg, Client: on, Slots: s, Recorder: &agent.Told{},
		NewProbe: func(c config.Condition) probes.Probe { return by[c.Name] },
	}
	runAgent(t, a, by, test)
}

// A slot is asked for only when nothing else is missing, renewed while it is
// used, and released when the taint has been gone for the cooldown.
func TestSlotIsHeldFromBeforeTheTaintUntilAfterTheCooldown(t *testing.T) {
	s := &leases{free: true}
	runEvicting(t, s, func(t *testing.T, memory *probe, c *client) {
		memory.set(probes.Critical)
		time.Sleep(50 * time.Second)
		if len(s.seen().acquired) > 0 || c.carries(evict()) {
			t.Fatal("a slot was asked for before the minute was over")
		}
		time.Sleep(20 * time.Second) // a sample begins and ends the minute, and a write may wait: up to 65.2 s in all
		if len(s.seen().acquired) != 1 || !c.carries(evict()) {
			t.Fatalf("slot asked for %d times, evicting %t", len(s.seen().acquired), c.carries(evict()))
		}
		time.Sleep(time.Hour)
		if len(s.seen().renewed) < 25 || len(s.seen().released) > 0 {
			t.Errorf("renewed %d times in an hour, released %d times", len(s.seen().renewed), len(s.seen().released))
		}
		memory.set(probes.OK)
		time.Sleep(5 * time.Second)
		if c.carries(evict()) {
			t.Fatal("still evicting after recovery")
		}
		gone := time.Now()
		time.Sleep(15 * time.Minute)
		if len(s.seen().released) != 1 || s.seen().released[0].Sub(gone) < 9*time.Minute {
			t.Errorf("released at %v, the taint was gone at %v", s.seen().released, gone)
		}
	})
}

// Without a slot nothing is evicted, and one that comes free is noticed.
func TestNoSlotNoEviction(t *testing.T) {
	s := &leases{}
	runEvicting(t, s, func(t *testing.T, memory *probe, c *client) {
		memory.set(probes.Critical)
		time.Sleep(10 * time.Minute)
		if c.carries(evict()) {
			t.Error("evicting without a slot")
		}
		s.set(func(s *leases) { s.free = true })
		time.Sleep(70 * time.Second)
		if !c.carries(evict()) {
			t.Error("a free slot is not taken")
		}
	})
}

// All Nodes of a fleet may wait for a slot. So each asks at growing intervals, up to
// that at which it still reads every slot within a minute, and anew when it begins to
// wait anew.
func TestWaitingForASlotGetsSlower(t *testing.T) {
	for count, want := range map[int][]time.Duration{
		1:   {10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute},
		9:   {10 * time.Second, 20 * time.Second, 20 * time.Second, 20 * time.Second, 20 * time.Second},
		100: {10 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second},
	} {
		s := &leases{}
		runEvictingBy(t, s, func(c *config.Config) { c.Eviction.Slots = count }, func(t *testing.T, memory *probe, _ *client) {
			for range 2 {
				before := len(s.seen().acquired)
				memory.set(probes.Critical)
				time.Sleep(6 * time.Minute)
				memory.set(probes.OK)
				time.Sleep(10 * time.Minute) // it is OK and waits for nothing
				asked := s.seen().acquired[before:]
				if len(asked) <= len(want) {
					t.Fatalf("%d slots: asked %d times", count, len(asked))
				}
				for i, pause := range want {
					if got := asked[i+1].Sub(asked[i]); got < pause*9/10 || got > pause*11/10 {
						t.Errorf("%d slots: pause %d is %s, want %s ± 10 %%", count, i, got, pause)
					}
				}
			}
		})
	}
}

// Whoever lost the slot steps down; the NoSchedule taint stays.
func TestLostSlotStepsDown(t *testing.T) {
	s := &leases{free: true}
	runEvicting(t, s, func(t *testing.T, memory *probe, c *client) {
		memory.set(probes.Critical)
		time.Sleep(70 * time.Second)
		s.set(func(s *leases) { s.holding, s.free = false, false })
		time.Sleep(3 * time.Minute)
		if c.carries(evict()) || !c.has(corev1.TaintNodeMemoryPressure) {
			t.Error("the eviction goes on without a slot, or the lesser taint is gone too")
		}
	})
}

// While the API server is away the taint stays; a slot that could not be
// renewed for half of its cooldown evicts nothing new.
func TestSlotThatCannotBeRenewed(t *testing.T) {
	s := &leases{free: true}
	runEvicting(t, s, func(t *testing.T, memory *probe, c *client) {
		memory.set(probes.Critical)
		time.Sleep(70 * time.Second)
		s.set(func(s *leases) { s.err = errors.New("503 Service Unavailable") })
		time.Sleep(time.Hour)
		if !c.carries(evict()) {
			t.Error("the taint went because the API server was away")
		}
	})
	s = &leases{free: true}
	runEvicting(t, s, func(t *testing.T, memory *probe, c *client) {
		memory.set(probes.Critical)
		time.Sleep(50 * time.Second)
		c.setRefuse(errors.New("503 Service Unavailable"))
		time.Sleep(20 * time.Second) // the slot is there, the taint is not
		s.set(func(s *leases) { s.err = errors.New("503 Service Unavailable") })
		time.Sleep(6 * time.Minute)
		c.setRefuse(nil)
		time.Sleep(2 * time.Minute)
		if c.carries(evict()) {
			t.Error("a taint was added by a slot that others may have taken")
		}
		s.set(func(s *leases) { s.err = nil })
		time.Sleep(4 * time.Minute)
		if !c.carries(evict()) {
			t.Error("no eviction after the slot was renewed")
		}
	})
}

// The Event comes before the taint.
func TestEvictionIsAnnouncedFirst(t *testing.T) {
	s := &leases{free: true}
	runEvicting(t, s, func(t *testing.T, memory *probe, c *client) {
		memory.set(probes.Critical)
		time.Sleep(70 * time.Second)
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.announcedFirst {
			t.Error("the taint was added without an announcement before it")
		}
	})
}
