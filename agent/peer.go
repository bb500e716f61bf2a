package agent

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/probes"
)

// peerHandler answers GET /peer: a page that is already there. What is over the
// bounds is counted and refused, with an end of its connection.
type peerHandler struct {
	fleet   *fleet.Fleet
	window  window
	metrics *metrics
}

func newPeerHandler(f *fleet.Fleet, m *metrics) *peerHandler {
	return &peerHandler{fleet: f, window: window{most: defaultAnswers()}, metrics: m}
}

// ServeHTTP answers one request. Its body is not read.
func (h *peerHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	source := sourceOfRequest(r)
	if !h.window.allows(source, source == hostItself || h.fleet.IsAgent(source), time.Now()) {
		h.metrics.fleet.requests.WithLabelValues("refused").Inc()
		refuse(w, r)
		return
	}
	h.metrics.fleet.requests.WithLabelValues("answered").Inc()
	page := h.fleet.Page()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	w.Write(page) //nolint:errcheck // nobody is left to be told
}

// sourceOfRequest is sourceOf the request's connection.
func sourceOfRequest(r *http.Request) netip.Addr {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return sourceOf(net.TCPAddrFromAddrPort(from), local)
}

// tellFleet passes on what the peers are to be told, and shows what is known of
// them.
func (l *loop) tellFleet() {
	levels := make(map[probes.Condition]probes.Level, len(l.cfg.Conditions))
	for i := range l.cfg.Conditions {
		name := l.cfg.Conditions[i].Name
		levels[name] = l.state.Shared(name)
	}
	l.fleet.SetLevels(levels)
	l.metrics.fleet.show(l.fleet.Status(), l.fleet.Peers().Shares, l.cfg)
}
