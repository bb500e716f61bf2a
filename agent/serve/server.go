// Package serve answers HTTP for an agent: /metrics, /healthz, /readyz and /peer. It bounds the
// cost of each client.
package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/agent/metrics"
)

// Server serves the pages of one agent.
type Server struct {
	Listener net.Listener
	Metrics  *metrics.Metrics
	Health   *Health
	Fleet    *fleet.Fleet
	// Now is the clock of Health.
	Now func() time.Time
	Log *slog.Logger
}

// Run serves until the context ends.
func (s *Server) Run(ctx context.Context) error { return s.serve(ctx, s.Handler()) }

// Bounds of a client's cost: every program that reaches the host's port is a client.
const (
	maxHeader     = 8 << 10 // bytes
	maxScrapes    = 4       // of /metrics at the same time
	readTimeout   = 5 * time.Second
	answerTimeout = 10 * time.Second
	idleTimeout   = 20 * time.Second
)

func (s *Server) serve(ctx context.Context, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout,
		// Errors of clients are logged only at the debug level.
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() {
		server.Close() //nolint:errcheck // nobody is left to be told
	})
	defer stop()
	return server.Serve(newBoundedListener(s.Listener, s.Fleet.IsAgent))
}

// Handler serves the pages, and nothing else.
func (s *Server) Handler() http.Handler {
	mux := s.healthPages()
	mux.Handle("GET /metrics", scraped(promhttp.HandlerFor(s.Metrics.Gatherer(), promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes, Timeout: answerTimeout,
		// A compressor takes 0.8 MiB, more than all else that the agent keeps, to save
		// 18 KB of a scrape.
		DisableCompression: true,
	})))
	mux.Handle("GET /peer", newPeerHandler(s.Fleet))
	return mux
}

// healthPages serves what the kubelet asks for.
func (s *Server) healthPages() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", scraped(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, s.Health.healthy(s.Now()))
	})))
	mux.Handle("GET /readyz", scraped(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, s.Health.ready())
	})))
	return mux
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
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
