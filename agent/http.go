package agent

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/pace"
	"github.com/taintlet/taintlet/probes"
)

// handler serves /metrics, /healthz, /readyz and /peer, and nothing else.
func (l *loop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", scraped(promhttp.HandlerFor(l.metrics.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes, Timeout: answerTimeout,
		// A compressor takes 0.8 MiB, more than all else that the agent keeps, to save
		// 26 KB of a scrape.
		DisableCompression: true,
	})))
	mux.Handle("GET /healthz", scraped(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, l.health.healthy(l.Now()))
	})))
	mux.Handle("GET /readyz", scraped(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, l.health.ready())
	})))
	mux.Handle("GET /peer", newPeerHandler(l.fleet, l.metrics))
	return mux
}

// scraped bounds how often a page is rendered for others than the host itself: one
// client in a loop would take more than half of a core.
func scraped(next http.Handler) http.Handler {
	scrapes := &window{most: answers{toSource: 4, toBlock: 8, toOthers: 16}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if source := sourceOfRequest(r); source != hostItself && !scrapes.allows(source, false, time.Now()) {
			refuse(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuseAfter is how long a refusal takes. Without a pause, a client that asks again at
// once takes a quarter of a core with refusals alone. With one, it gets 16 a second on
// the 8 connections that it may have.
const refuseAfter = 500 * time.Millisecond

// refuse answers 429, after a while, and ends the connection.
func refuse(w http.ResponseWriter, r *http.Request) {
	pace.Sleep(r.Context(), refuseAfter) // less where the client is gone, or the agent ends
	w.Header().Set("Connection", "close")
	w.WriteHeader(http.StatusTooManyRequests)
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// Bounds of what a client may cost: everybody who reaches the host's port is one.
const (
	maxHeader     = 8 << 10 // bytes
	maxScrapes    = 4       // of /metrics at the same time
	readTimeout   = 5 * time.Second
	answerTimeout = 10 * time.Second
	idleTimeout   = 20 * time.Second
)

// server serves HTTP on a listener.
type server struct {
	listener net.Listener
	handler  http.Handler
	log      *slog.Logger
	// isAgent reports whether an address is that of an agent of the fleet.
	isAgent func(netip.Addr) bool
}

// run serves until the context ends.
func (s server) run(ctx context.Context) error {
	server := &http.Server{
		Handler: s.handler, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout,
		// What clients do wrong is for whoever asks for details.
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() {
		server.Close() //nolint:errcheck // nobody is left to be told
	})
	defer stop()
	return server.Serve(newBoundedListener(s.listener, s.isAgent))
}

// health knows when the loop last took in a sample of each probe, and whether
// the Node can be written.
type health struct {
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

func newHealth(cfg *config.Config, now time.Time) *health {
	h := &health{rounds: map[probes.Condition]round{}, notReady: "starting"}
	for _, c := range cfg.Conditions {
		h.expect(c, now)
	}
	return h
}

// expect samples of a probe from now on, in its period.
func (h *health) expect(c config.Condition, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rounds[c.Name] = round{now, max(minHealthLimit, 10*c.Common().Period.Duration)}
}

func (h *health) round(name probes.Condition, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rounds[name] = round{now, h.rounds[name].limit}
}

// setReady takes why the agent is not ready; empty: it is.
func (h *health) setReady(whyNot string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notReady = whyNot
}

// healthy is an error when a probe has given no sample for too long.
func (h *health) healthy(now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(h.rounds)) {
		if since := now.Sub(h.rounds[name].at); since > h.rounds[name].limit {
			return fmt.Errorf("no sample of %s for %s (limit %s)", name, since.Round(time.Second), h.rounds[name].limit)
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
