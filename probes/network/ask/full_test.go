package ask

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

const smallAnswer = `{"version":1,"lossy":0,"reach":100}`

// Full packets are lost only if they get no answer and small ones do, from a peer with whom
// they passed before.
func TestFullPackets(t *testing.T) {
	t.Parallel()
	hangs := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	pads := func(w http.ResponseWriter, r *http.Request) {
		says(smallAnswer+strings.Repeat(" ", max(0, len(r.Header.Get(verdict.PaddingHeader))-100)))(w, r)
	}
	ifPadded := func(yes, no http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(verdict.PaddingHeader) != "" {
				yes(w, r)
				return
			}
			no(w, r)
		}
	}
	for _, test := range []struct {
		name     string
		peer     http.HandlerFunc
		want     verdict.Passage
		answered bool
	}{
		{"an answer as long", pads, verdict.Passed, true},
		{"an older agent", says(smallAnswer), verdict.NotTried, true},
		{"small ones only", ifPadded(hangs, says(smallAnswer)), verdict.Lost, true},
		{"full ones are refused", ifPadded(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, says(smallAnswer)), verdict.NotTried, true},
		{"neither", hangs, verdict.NotTried, false},
	} {
		peer := verdict.Peer{Node: "a", Address: serve(t, ifPadded(func(w http.ResponseWriter, r *http.Request) { test.peer(w, r) }, test.peer))}
		p := NewPeers(5 * time.Second)
		p.turns.Choose([]verdict.Peer{peer}, false)
		p.turns.Take(peer, verdict.PeerResult{Reached: true})
		got := p.askOne(t.Context(), peer, 300*time.Millisecond)
		if got.Full != test.want || (got.Answer != nil) != test.answered || !got.FullNow || !got.Reached || got.FullBytes != verdict.LongestPadded {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

// A peer that is not reached is asked as ever.
func TestFullPacketsToNobody(t *testing.T) {
	t.Parallel()
	peer := verdict.Peer{Node: "a", Address: closedPort(t)}
	var got verdict.PeerResult
	if _, err := askFull(t.Context(), peer, otherAfter, &got); err == nil || got != (verdict.PeerResult{}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A request is as long as a packet, neither longer than is allowed nor cut off.
func TestPadded(t *testing.T) {
	t.Parallel()
	peer := verdict.Peer{Address: netip.MustParseAddrPort("10.0.0.1:4808")}
	for bytes, want := range map[int]int{0: 54, 54: 54, 55: 55, 536: 536, 1448: 1448, 8948: verdict.LongestPadded} {
		if request := padded(peer, bytes); len(request) != want || !strings.HasSuffix(request, "\r\n\r\n") {
			t.Errorf("%d: %d bytes, want %d: %q", bytes, len(request), want, request)
		}
	}
}
