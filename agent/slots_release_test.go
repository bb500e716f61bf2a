package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/fixtures"
)

// slowSlots answers a release late: the API server has done it, the answer is
// on its way.
type slowSlots struct {
	*leases
	late time.Duration
	gone time.Time // when the API server released it
}

func (s *slowSlots) Release(ctx context.Context) error {
	s.set(func(*leases) { s.gone = time.Now() })
	err := s.leases.Release(ctx)
	select {
	case <-time.After(s.late):
	case <-ctx.Done():
	}
	return err
}

func (s *slowSlots) goneAt() (at time.Time) {
	s.set(func(*leases) { at = s.gone })
	return at
}

// atOnce makes evictions follow one another quickly.
func atOnce(cfg *config.Config) {
	cfg.Eviction.Interval.Duration = 0
	fixtures.Section[*config.Memory](cfg).Debounce.CriticalAfter.Duration = 0
}

// No NoExecute taint is added while the slot is being released.
func TestNoEvictionWhileTheSlotIsReleased(t *testing.T) {
	s := &slowSlots{leases: &leases{free: true}, late: 8 * time.Second}
	runEvictingBy(t, s, atOnce, func(t *testing.T, memory *probe, c *client) {
		memory.set(probes.Critical)
		time.Sleep(10 * time.Second)
		if !c.carries(evict()) {
			t.Error("no eviction")
		}
		memory.set(probes.Degraded)
		for s.goneAt().IsZero() {
			time.Sleep(100 * time.Millisecond)
		}
		memory.set(probes.Critical)
		for range 80 { // 8 s: as long as the answer takes
			time.Sleep(100 * time.Millisecond)
			if c.carries(evict()) && !s.seen().holding {
				t.Errorf("NoExecute was added %s after the slot was released", time.Since(s.goneAt()))
				break
			}
		}
	})
}

// The cooldown of the slot begins when the taint is gone, also when another
// eviction was requested in between and came to nothing.
func TestCooldownAlsoAfterARequestThatCameToNothing(t *testing.T) {
	s := &leases{free: true}
	runEvictingBy(t, s, func(cfg *config.Config) {
		atOnce(cfg)
		cfg.WriteBudget.Burst, cfg.WriteBudget.Interval.Duration = 1, 24*time.Hour
	}, func(t *testing.T, memory *probe, c *client) {
		memory.set(probes.Critical)
		time.Sleep(10 * time.Second)
		if !c.carries(evict()) {
			t.Error("no eviction")
		}
		c.setRefuse(errors.New("503 Service Unavailable")) // the step down takes a while
		memory.set(probes.Degraded)
		time.Sleep(1100 * time.Millisecond)
		memory.set(probes.Critical) // no token is left
		time.Sleep(2 * time.Second)
		c.setRefuse(nil)
		for c.carries(evict()) {
			time.Sleep(100 * time.Millisecond)
		}
		gone := time.Now()
		time.Sleep(3 * time.Second)
		memory.set(probes.Degraded)
		time.Sleep(9 * time.Minute)
		if len(s.seen().released) > 0 {
			t.Errorf("released %s after the taint, not after the cooldown", s.seen().released[0].Sub(gone))
		}
	})
}

// Each eviction has an Event of its own, also of two conditions that become
// critical while the API server is slow.
func TestEachEvictionIsAnnounced(t *testing.T) {
	s := &leases{free: true}
	cfg := config.Default()
	cfg.Rules = config.Default().Policy().BuiltInRules()
	cfg.Eviction.Slots = 1
	cfg.Eviction.Interval.Duration = 0
	by := map[probes.Condition]*probe{}
	a := &agent.Agent{
		Config: cfg, Slots: s, Recorder: &agent.Told{}, Log: slog.New(slog.DiscardHandler),
		NewProbe: func(c config.Condition) probes.Probe { return by[c.Name] },
	}
	runAgent(t, a, by, func(t *testing.T, by map[probes.Condition]*probe, c *client) {
		by[probes.MemoryPressure].set(probes.Critical)
		by[probes.PIDPressure].set(probes.Critical)
		time.Sleep(55 * time.Second)
		by[probes.DiskPressure].set(probes.Degraded)
		c.setRefuse(errors.New("503 Service Unavailable"))
		time.Sleep(30 * time.Second)
		c.setRefuse(nil)
		time.Sleep(2 * time.Minute)
		evicting := c.carries(evict())
		c.mu.Lock()
		defer c.mu.Unlock()
		if !evicting || len(c.reasons) != 2 {
			t.Errorf("2 evictions, Events %v", c.reasons)
		}
	})
}
