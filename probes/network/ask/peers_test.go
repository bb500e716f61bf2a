package ask

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// serve answers HTTP on loopback.
func serve(t testing.TB, handler http.HandlerFunc) netip.AddrPort {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String())
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

func TestAskPeer(t *testing.T) {
	t.Parallel()
	closed := closedPort(t)
	redirected := false
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { redirected = true })
	for _, test := range []struct {
		name    string
		peer    netip.AddrPort
		reached bool
		answer  string
	}{
		{"an answer", serve(t, says(`{"version":1,"classes":{"dns":false},"lossy":3,"levels":{"MemoryPressure":"Degraded"},"more":1}`)), true, "map[dns:false] 3 map[MemoryPressure:Degraded]"},
		{"another version", serve(t, says(`{"version":2,"lossy":3}`)), true, "none"},
		{"no version", serve(t, says(`{"lossy":3}`)), true, "none"},
		{"no JSON", serve(t, says(`well`)), true, "none"},
		{"two answers", serve(t, says(`{"version":1}{"version":1}`)), true, "none"},
		{"a level that is none", serve(t, says(`{"version":1,"levels":{"MemoryPressure":"Bad"}}`)), true, "none"},
		{"no percentage", serve(t, says(`{"version":1,"lossy":101}`)), true, "none"},
		{"a negative percentage", serve(t, says(`{"version":1,"lossy":-2}`)), true, "none"},
		{"too long", serve(t, says(`{"version":1,"lossy":3`+strings.Repeat(" ", longestAnswer)+`}`)), true, "none"},
		{"not found", serve(t, http.NotFound), true, "none"},
		{"elsewhere", serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+elsewhere.String(), http.StatusFound)
		}), true, "none"},
		{"garbage", serveRaw(t, "\x00\x01\r\n\r\n"), true, "none"},
		{"a head without end", serveRaw(t, "HTTP/1.1 200 OK\r\nA: "+strings.Repeat("x", 3*longestAnswer)), true, "none"},
		{"closed at once", serveRaw(t, ""), true, "none"},
		{"refused", closed, true, "none"},
		{"hangs", serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), true, "none"},
	} {
		got := NewPeers(testPeriod).askOne(t.Context(), verdict.Peer{Node: "a", Address: test.peer}, time.Second)
		answer := "none"
		if a := got.Answer; a != nil {
			answer = fmt.Sprint(a.Classes, a.Lossy, a.Levels)
		}
		if hangs := test.name == "hangs"; got.Reached != test.reached || got.Hangs != hangs || answer != test.answer {
			t.Errorf("%s: reached %t, answer %v, want %t and %s", test.name, got.Reached, answer, test.reached, test.answer)
		}
	}
	if redirected {
		t.Error("a redirect was followed")
	}
}

func closedPort(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing went through it
	return netip.MustParseAddrPort(l.Addr().String())
}

// serveRaw sends a text to everybody and closes.
func serveRaw(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(text))
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return netip.MustParseAddrPort(l.Addr().String())
}

// refusing is a peer whose ports are closed when a test says so.
type refusing struct {
	verdict.Peer
	agent   *httptest.Server
	kubelet net.Listener
}

func newRefusing(t *testing.T, i int) *refusing {
	t.Helper()
	r := &refusing{agent: httptest.NewServer(says(`{"version":1,"lossy":-1,"reach":100}`)), kubelet: listen(t, "127.0.0.1:0")}
	t.Cleanup(r.agent.Close)
	t.Cleanup(func() { _ = r.kubelet.Close() }) // and not when it is collected as garbage
	r.Peer = verdict.Peer{
		Node: fmt.Sprint("node-", i), Address: netip.MustParseAddrPort(r.agent.Listener.Addr().String()),
		Other: netip.MustParseAddrPort(r.kubelet.Addr().String()).Port(),
	}
	return r
}

// Who refuses is there. But where nearly all refuse at both ports, of which one was open
// before, somebody between refuses for them.
func TestRefusalsOfAll(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                   string
		agents, kubelets, want int // closed, closed, reached of 7
	}{
		{"all refuse at both ports", 7, 7, 0},
		{"nearly all", 6, 6, 1},
		{"only the agents are gone", 7, 0, 7},
		{"some hosts refuse at both ports", 5, 5, 7},
		{"some of all", 7, 3, 4},
	} {
		p := &Peers{turns: verdict.NewRotation(testPeriod)}
		var all []*refusing
		var peers []verdict.Peer
		for i := range 7 {
			all = append(all, newRefusing(t, i))
			peers = append(peers, all[i].Peer)
		}
		in := &verdict.Surroundings{Peers: peers}
		if got := p.Ask(t.Context(), in, time.Second); got.Detail != "reached 7 of 7 peers" {
			t.Fatalf("%s: at first %+v", test.name, got)
		}
		for i, r := range all {
			if i < test.agents {
				r.agent.Close()
			}
			if i < test.kubelets {
				_ = r.kubelet.Close()
			}
		}
		for range 3 {
			p.Ask(t.Context(), in, time.Second)
			reached := 0
			for _, peer := range p.Found {
				if peer.Reached || peer.ReachedOther {
					reached++
				}
			}
			if reached != test.want || len(p.Found) != 7 {
				t.Errorf("%s: reached %d of %d, want %d", test.name, reached, len(p.Found), test.want)
			}
		}
	}
}

// A peer that takes its time and answers has its second port asked when it is reached first,
// and not again.
func TestSlowPeersKubeletIsSpared(t *testing.T) {
	t.Parallel()
	slow := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(otherAfter + 100*time.Millisecond)
		fmt.Fprint(w, `{"version":1}`)
	})
	var asked atomic.Int32
	kubelet := httptest.NewUnstartedServer(http.NotFoundHandler())
	kubelet.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			asked.Add(1)
		}
	}
	kubelet.Start()
	t.Cleanup(kubelet.Close)
	other := netip.MustParseAddrPort(kubelet.Listener.Addr().String()).Port()
	p, in := &Peers{turns: verdict.NewRotation(testPeriod)}, &verdict.Surroundings{Peers: []verdict.Peer{{Node: "a", Address: slow, Other: other}}}
	for i := range 5 {
		if p.Ask(t.Context(), in, patience); len(p.Found) != 1 || !p.Found[0].Reached {
			t.Errorf("round %d: %+v", i, p.Found)
		}
	}
	kubelet.Close() // it takes what was accepted
	if n := asked.Load(); n != 1 {
		t.Errorf("the second port was asked %d times in 5 rounds, want 1", n)
	}
}

func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte(`{"version":1,"classes":{"dns":false},"lossy":3,"levels":{"MemoryPressure":"Degraded"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if a := parseAnswer(body); a != nil && (a.Version != verdict.AnswerVersion || a.Lossy < -1 || a.Lossy > 100) {
			t.Errorf("%q is %+v", body, a)
		}
	})
}
