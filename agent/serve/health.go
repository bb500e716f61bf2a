package serve

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
)

// Health knows when the loop last took in a sample of each probe, and whether
// the Node can be written.
type Health struct {
	mu     sync.Mutex
	rounds map[probes.Condition]round
	// notReady says why not; empty when ready.
	notReady string
}

// round is when a probe last gave a sample, and how long it may take to the
// next one.
type round struct {
	at    time.Time
	limit time.Duration
}

// minHealthLimit is the least time without a round before /healthz fails.
const minHealthLimit = 2 * time.Minute

// NewHealth returns the Health of an agent that starts now.
func NewHealth(cfg *config.Config, now time.Time) *Health {
	h := &Health{rounds: map[probes.Condition]round{}, notReady: "starting"}
	for _, c := range cfg.Conditions {
		h.Expect(c, now)
	}
	return h
}

// Expect expects samples of a condition from now on, at least one in each of its periods.
func (h *Health) Expect(c config.Condition, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rounds[c.Name] = round{now, max(minHealthLimit, 10*c.Common().Period.Duration)}
}

// Forget expects no sample of a condition any more.
func (h *Health) Forget(name probes.Condition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.rounds, name)
}

// Sampled notes that a probe returned a sample.
func (h *Health) Sampled(name probes.Condition, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rounds[name] = round{now, h.rounds[name].limit}
}

// SetReady sets the cause why the agent is not ready; empty: it is ready.
func (h *Health) SetReady(whyNot string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notReady = whyNot
}

// healthy is an error when a probe has given no sample for too long.
func (h *Health) healthy(now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(h.rounds)) {
		if since := now.Sub(h.rounds[name].at); since > h.rounds[name].limit {
			return fmt.Errorf("no sample of %s for %s (limit %s)", name, since.Round(time.Second), h.rounds[name].limit)
		}
	}
	return nil
}

func (h *Health) ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.notReady != "" {
		return fmt.Errorf("not ready: %s", h.notReady)
	}
	return nil
}
