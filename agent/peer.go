package agent

import (
	"net/http"
	"strconv"

	"golang.org/x/time/rate"

	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/probes"
)

// Bounds of /peer, for all who ask together. 12 agents ask on average, every 5 s,
// and every second when they suspect themselves. The only Node of a zone is asked
// by all who know it, some 300.
const (
	peerRate  = 200 // answers a second
	peerBurst = 200
)

// peerHandler answers GET /peer: a page that is already there. What is over the
// bounds is counted and refused, with an end of its connection.
type peerHandler struct {
	fleet   *fleet.Fleet
	limiter *rate.Limiter
	metrics *metrics
}

func newPeerHandler(f *fleet.Fleet, m *metrics) *peerHandler {
	return &peerHandler{f, rate.NewLimiter(peerRate, peerBurst), m}
}

// ServeHTTP answers one request. Its body is not read.
func (h *peerHandler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if !h.limiter.Allow() {
		h.metrics.fleet.requests.WithLabelValues("refused").Inc()
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	h.metrics.fleet.requests.WithLabelValues("answered").Inc()
	page := h.fleet.Page()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	w.Write(page) //nolint:errcheck // nobody is left to be told
}

// tellFleet passes on what the peers are to be told, and shows what is known of
// them.
func (l *loop) tellFleet() {
	levels := make(map[probes.Condition]probes.Level, len(l.cfg.Conditions))
	for i := range l.cfg.Conditions {
		name := l.cfg.Conditions[i].Name
		levels[name] = l.state.Requested(name)
	}
	l.fleet.Tell(levels)
	l.metrics.fleet.show(l.fleet.Status(), l.fleet.Said().Shares, l.cfg)
}
