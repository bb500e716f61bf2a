package ask

import (
	"context"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// Every class forgets what was well.
func TestEveryClassForgets(t *testing.T) {
	t.Parallel()
	var gone atomic.Bool
	port, _ := fickle(t, func(w http.ResponseWriter, _ *http.Request) {
		if gone.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	l := NewLocal()
	l.daemons = []daemon{{name: "a", port: port, path: "/"}}
	address := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:53")}
	fails := []error{context.DeadlineExceeded}
	pods, dns := &Pods{seen: reached{}}, &DNS{seen: reached{}}
	peers := &Peers{turns: verdict.NewRotation(testPeriod)}
	peer, route := verdict.Peer{Node: "a"}, NewRoute(thisHost)
	for _, test := range []struct {
		class verdict.Class
		Check
		well, fail func() verdict.Result
		never      bool
	}{
		{verdict.Pods, pods, func() verdict.Result { return pods.evaluate(address, []error{nil}) }, func() verdict.Result { return pods.evaluate(address, fails) }, true},
		{verdict.DNS, dns, func() verdict.Result { return dns.evaluate(address, []error{nil}) }, func() verdict.Result { return dns.evaluate(address, fails) }, true},
		{verdict.Local, l, func() verdict.Result { gone.Store(false); return l.Ask(t.Context(), nil, time.Second) }, func() verdict.Result { gone.Store(true); return l.Ask(t.Context(), nil, time.Second) }, true},
		{verdict.Peers, peers, func() verdict.Result { return peers.took(peer, true) }, func() verdict.Result { return peers.took(peer, false) }, true},
		{verdict.Route, route, func() verdict.Result { return route.evaluate([]way{{target: outside, by: "eth0"}}) }, func() verdict.Result { return route.evaluate([]way{noCarrier}) }, true},
	} {
		if first, second := test.well(), test.fail(); first.Outcome != verdict.Well || second.Outcome != verdict.Failed {
			t.Errorf("%s: %+v, then %+v", test.class, first, second)
		}
		test.Check.(interface{ Forget() }).Forget()
		if got := test.fail(); got.Outcome != verdict.NotKnown || got.Never != test.never {
			t.Errorf("%s after a gap: %+v", test.class, got)
		}
	}
}

// took is what the class finds of one peer.
func (p *Peers) took(peer verdict.Peer, reached bool) verdict.Result {
	p.turns.Choose([]verdict.Peer{peer}, true)
	p.turns.Take(peer, verdict.PeerResult{Node: peer.Node, Reached: reached})
	p.Found = p.turns.Results([]verdict.Peer{peer})
	return verdict.PeersResult(p.Found, []verdict.Peer{peer}, p.Never)
}
