package serve

import (
	"bytes"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// peerHandler answers GET /peer: a page that is already there. What is over the
// bounds is refused, with an end of its connection.
type peerHandler struct {
	fleet  *fleet.Fleet
	window window
}

func newPeerHandler(f *fleet.Fleet) *peerHandler {
	return &peerHandler{fleet: f, window: window{most: defaultAnswers()}}
}

// ServeHTTP answers one request. Its body is not read.
func (h *peerHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	source := sourceOfRequest(r)
	if !h.window.allows(source, source == hostItself || h.fleet.IsAgent(source), time.Now()) {
		refuse(w, r)
		return
	}
	page := padTo(h.fleet.Page(), r)
	w.Header()["Date"] = nil // nobody reads it, and it is a tenth of the answer
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	w.Write(page) //nolint:errcheck // nobody is left to be told
}

// padTo returns the page with as many spaces as make the answer as long as a request that asks
// for that. No answer is longer than such a request, so nobody gets more than is sent.
func padTo(page []byte, r *http.Request) []byte {
	padding := r.Header.Get(verdict.PaddingHeader)
	if padding == "" {
		return page
	}
	request := min(verdict.LongestPadded, len("GET  HTTP/1.1\r\nHost: \r\n: \r\n\r\n")+len(r.RequestURI)+len(r.Host)+len(verdict.PaddingHeader)+len(padding))
	head := len("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1234\r\n\r\n")
	missing := request - head - len(page)
	if missing <= 0 || request-head < 1000 { // the length has four digits
		return page
	}
	return append(slices.Clip(page), bytes.Repeat([]byte(" "), missing)...)
}

// hostItself stands for the host as a source, by whichever of its addresses.
var hostItself = netip.IPv6Loopback() //nolint:gochecknoglobals // a constant

// sourceOf returns the remote address of a connection, or hostItself where that is the
// local address too: so the kubelet asks. No other loopback address is treated like
// that, because the host depends on nobody who uses one.
func sourceOf(remote string, local net.Addr) netip.Addr {
	from, _ := netip.ParseAddrPort(remote) // the zero value where it is none
	source := from.Addr().Unmap().WithZone("")
	to, isTCP := local.(*net.TCPAddr)
	if source.IsValid() && isTCP && source == to.AddrPort().Addr().Unmap().WithZone("") {
		return hostItself
	}
	return source
}

// sourceOfRequest is sourceOf the request's connection.
func sourceOfRequest(r *http.Request) netip.Addr {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return sourceOf(r.RemoteAddr, local)
}
