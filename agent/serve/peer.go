package serve

import (
	"net/http"
	"strconv"
	"time"

	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/agent/metrics"
)

// peerHandler answers GET /peer: a page that is already there. What is over the
// bounds is counted and refused, with an end of its connection.
type peerHandler struct {
	fleet   *fleet.Fleet
	window  window
	metrics *metrics.Metrics
}

func newPeerHandler(f *fleet.Fleet, m *metrics.Metrics) *peerHandler {
	return &peerHandler{fleet: f, window: window{most: defaultAnswers()}, metrics: m}
}

// ServeHTTP answers one request. Its body is not read.
func (h *peerHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	source := sourceOfRequest(r)
	if !h.window.allows(source, source == hostItself || h.fleet.IsAgent(source), time.Now()) {
		h.metrics.PeerRequest(false)
		refuse(w, r)
		return
	}
	h.metrics.PeerRequest(true)
	page := h.fleet.Page()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	w.Write(page) //nolint:errcheck // nobody is left to be told
}
