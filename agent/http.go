package agent

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
)

// handler serves /metrics, /healthz and /readyz, and nothing else.
func (l *loop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(l.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, l.health.healthy(l.Now()))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, l.health.ready())
	})
	return mux
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// health knows when the loop last took in a look of each probe, and whether
// the Node can be written.
type health struct {
	mu     sync.Mutex
	limits map[probes.Condition]time.Duration
	rounds map[probes.Condition]time.Time
	// notReady says why not; empty when ready.
	notReady string
}

// minHealthLimit is the least time without a round before /healthz fails.
const minHealthLimit = 2 * time.Minute

func newHealth(cfg *config.Config, now time.Time) *health {
	h := &health{limits: map[probes.Condition]time.Duration{}, rounds: map[probes.Condition]time.Time{}, notReady: "starting"}
	for _, c := range probes.Conditions() {
		h.expect(c, cfg, now)
	}
	return h
}

// expect rounds of a probe from now on, in its period.
func (h *health) expect(c probes.Condition, cfg *config.Config, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.limits[c] = max(minHealthLimit, 10*cfg.Period(c))
	h.rounds[c] = now
}

func (h *health) round(c probes.Condition, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rounds[c] = now
}

// setReady takes why the agent is not ready; empty: it is.
func (h *health) setReady(whyNot string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notReady = whyNot
}

// healthy is an error when a probe has had no round for too long.
func (h *health) healthy(now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range probes.Conditions() {
		if since := now.Sub(h.rounds[c]); since > h.limits[c] {
			return fmt.Errorf("no look at %s for %s (limit %s)", c, since.Round(time.Second), h.limits[c])
		}
	}
	return nil
}

func (h *health) ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.notReady != "" {
		return fmt.Errorf("not ready: %s", h.notReady)
	}
	return nil
}
