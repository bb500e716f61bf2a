package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/probes"
	checks "github.com/taintlet/taintlet/probes/network/ask"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

func askPeer(h http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/peer", nil))
	return w
}

// looping asks again as soon as it is answered, on as many connections as one source
// may have, for that long. It returns how many answers of each code there were.
func looping(t *testing.T, h http.Handler, r *http.Request, length time.Duration) map[int]int {
	t.Helper()
	var mu sync.Mutex
	codes, end := map[int]int{}, time.Now().Add(length)
	var connections sync.WaitGroup
	for range maxPerSource {
		connections.Go(func() {
			for time.Now().Before(end) {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if refused := w.Code == http.StatusTooManyRequests; refused != (w.Header().Get("Connection") == "close") || refused && w.Body.Len() > 0 {
					t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
				}
				mu.Lock()
				codes[w.Code]++
				mu.Unlock()
			}
		})
	}
	connections.Wait()
	return codes
}

// A client that loops for 10 s gets 20 answers a second. The others are refused
// and lose their connection: two a second on each, so that refusing costs little.
func TestPeerIsRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleet.Alone()
		f.SetDecided(map[probes.Condition]probes.Level{probes.MemoryPressure: probes.OK}, false, nil)
		h := newPeerHandler(f)
		const seconds = 10
		codes := looping(t, h, httptest.NewRequest(http.MethodGet, "/peer", nil), seconds*time.Second)
		if got, want := codes[http.StatusOK], seconds*defaultAnswers().toSource; got != want {
			t.Errorf("%d answered, want %d", got, want)
		}
		if got, want := codes[http.StatusTooManyRequests], seconds*maxPerSource*int(time.Second/refuseAfter); got != want {
			t.Errorf("%d refused, want %d", got, want)
		}
		if len(codes) != 2 {
			t.Errorf("answers were %v", codes)
		}
	})
}

// However many ask from however many addresses, the agents of the fleet and the host
// itself are answered; and one source or one block leaves answers to all others.
func TestNobodySilencesPeer(t *testing.T) {
	w, now := window{most: defaultAnswers()}, time.Unix(1000, 0)
	ask := func(count int, isAgent bool, address func(i int) netip.Addr) (answered int) {
		for i := range count {
			if w.allows(address(i), isAgent, now) {
				answered++
			}
		}
		return answered
	}
	in := func(a, b byte) func(int) netip.Addr {
		return func(i int) netip.Addr { return netip.AddrFrom4([4]byte{a, b, byte(i >> 8), byte(i)}) }
	}
	if n := ask(100_000, false, func(int) netip.Addr { return netip.MustParseAddr("203.0.113.9") }); n != w.most.toSource {
		t.Errorf("one source gets %d answers", n)
	}
	if n := ask(100_000, false, func(i int) netip.Addr { return in(203, 0)(113<<8 | i%256) }); n != w.most.toBlock-w.most.toSource {
		t.Errorf("the others of its block get %d answers", n)
	}
	if n := ask(10, false, in(198, 51)); n != 10 {
		t.Errorf("of 10 other requests, %d are answered", n)
	}
	if n := ask(1<<16, false, in(100, 64)); n >= w.most.toOthers {
		t.Errorf("all others get %d answers", n)
	}
	if n := ask(300, true, in(198, 18)); n != 300 {
		t.Errorf("of 300 agents, %d are answered", n)
	}
	if len(w.by) > 2*(w.most.toAgents+w.most.toOthers) {
		t.Errorf("%d addresses are kept", len(w.by))
	}
	now = now.Add(time.Second)
	if n := ask(40, false, in(198, 51)); n != 40 {
		t.Errorf("a second later, %d of 40 are answered", n)
	}
}

// A client that loops gets a page 4 times a second. The host itself is not refused,
// nor is another client at the same time.
func TestScrapesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := scraped(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		from := func(source string) *http.Request {
			r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			r.RemoteAddr = source
			return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tcp("192.0.2.1")))
		}
		const seconds = 10
		loop := make(chan map[int]int)
		go func() { loop <- looping(t, h, from("203.0.113.9:1"), seconds*time.Second) }()
		for i := range 100 {
			time.Sleep(seconds * time.Second / 200)
			ask := func(source string) int {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, from(source))
				return w.Code
			}
			if code := ask("192.0.2.1:1"); code != http.StatusOK {
				t.Errorf("%d to the host", code)
			}
			if i%10 > 0 {
				continue
			}
			if code := ask("198.51.100.1:1"); code != http.StatusOK {
				t.Errorf("%d to another client", code)
			}
		}
		codes := <-loop
		if got, want := codes[http.StatusOK], seconds*4; got != want {
			t.Errorf("%d answered, want %d", got, want)
		}
		if got, most := codes[http.StatusTooManyRequests], seconds*maxPerSource*int(time.Second/refuseAfter); got > most {
			t.Errorf("%d refused, at most %d", got, most)
		}
	})
}

// What the agent answers is what a peer reads.
func TestPeerAnswers(t *testing.T) {
	f := fleet.Alone()
	f.Consult(t.Context(), &verdict.Verdict{Own: verdict.Answer{Classes: map[verdict.Class]bool{verdict.DNS: true}, Lossy: -1}})
	w := askPeer(newPeerHandler(f))
	const want = `{"version":1,"classes":{"dns":true},"lossy":-1,"reach":0}`
	if w.Code != http.StatusOK || w.Body.String() != want || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// peerServer serves /peer without a limit of the rate, behind the bounds of the
// listener.
func peerServer(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := fleet.Alone()
	f.Consult(t.Context(), &verdict.Verdict{Own: verdict.Answer{Classes: map[verdict.Class]bool{verdict.DNS: true, verdict.Pods: true, verdict.Local: true}, Lossy: 0}})
	f.SetDecided(map[probes.Condition]probes.Level{probes.MemoryPressure: probes.OK, probes.DiskPressure: probes.OK, probes.PIDPressure: probes.OK, probes.NetworkUnavailable: probes.OK}, false, nil)
	h := newPeerHandler(f)
	h.window.most = answers{1 << 30, 1 << 30, 1 << 30, 1 << 30}
	mux := http.NewServeMux()
	mux.Handle("GET /peer", h)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- (&Server{Listener: listener, Fleet: f, Log: slog.New(slog.DiscardHandler)}).serve(ctx, mux)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String() + "/peer"
}

func ask(t testing.TB, client *http.Client, url string) int {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}

// Thousands of connections, one after the other, leave nothing in memory.
func TestPeerKeepsNothing(t *testing.T) {
	url := peerServer(t)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	inUse := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse
	}
	for range 200 {
		ask(t, client, url)
	}
	before := inUse()
	for range 2000 {
		if code := ask(t, client, url); code != http.StatusOK {
			t.Fatal(code)
		}
	}
	if after := inUse(); after > before+2<<20 {
		t.Errorf("%d bytes of heap before 2000 connections, %d after", before, after)
	}
}

// What a request costs the agent: the answer alone, and refused. The client of a refused
// one has gone, so that nobody waits for the pause before it.
func BenchmarkPeerHandler(b *testing.B) {
	for name, limit := range map[string]bool{"answered": false, "refused": true} {
		b.Run(name, func(b *testing.B) {
			h := newPeerHandler(fleet.Alone())
			h.window.most = answers{}
			if !limit {
				h.window.most = answers{1 << 60, 1 << 60, 1 << 60, 1 << 60}
			}
			gone, leave := context.WithCancel(b.Context())
			leave()
			request, want := httptest.NewRequest(http.MethodGet, "/peer", nil), http.StatusOK
			if limit {
				request, want = request.WithContext(gone), http.StatusTooManyRequests
			}
			for b.Loop() {
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, request); w.Code != want {
					b.Fatal(w.Code)
				}
			}
		})
	}
}

// Client and server in one process: a new connection for each request, as the
// agents ask, and one that is kept.
func BenchmarkPeerServer(b *testing.B) {
	for name, anew := range map[string]bool{"new connection": true, "kept connection": false} {
		b.Run(name, func(b *testing.B) {
			url := peerServer(b)
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: anew}}
			for b.Loop() {
				ask(b, client, url)
			}
		})
	}
}

// The answer to a padded request is as long as the request, to the byte, so that each of
// them fills a packet. It is never longer.
func TestPaddedAnswers(t *testing.T) {
	f := fleet.Alone()
	f.SetDecided(map[probes.Condition]probes.Level{probes.MemoryPressure: probes.OK}, false, nil)
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: newPeerHandler(f)} //nolint:gosec // for this test
	go server.Serve(l)                                 //nolint:errcheck // it ends with the test
	t.Cleanup(func() { _ = server.Close() })
	bare := len(answerTo(t, l.Addr(), "GET /peer HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
	for _, size := range []int{100, 1000, 1072, 1073, 1074, 1220, 1448, 4000, 4001, 9000} {
		const begin, end = "GET /peer HTTP/1.1\r\nHost: 10.0.0.1:4808\r\nPadding: ", "\r\n\r\n"
		request := begin + strings.Repeat("x", size-len(begin)-len(end)) + end
		got := len(answerTo(t, l.Addr(), request))
		want := min(size, verdict.LongestPadded)
		if size < 1073 {
			want = bare - len("Connection: close\r\n")
		}
		if got != want {
			t.Errorf("a request of %d bytes is answered with %d, want %d", size, got, want)
		}
	}
}

// answerTo sends a request and returns what comes until it was read or nothing more comes.
func answerTo(t *testing.T, to net.Addr, request string) []byte {
	t.Helper()
	c, err := net.Dial(to.Network(), to.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // everything was read
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	counted := &bytes.Buffer{}
	answer, err := http.ReadResponse(bufio.NewReader(io.TeeReader(c, counted)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it is read to its end
	body, err := io.ReadAll(answer.Body)
	if err != nil || !json.Valid(body) {
		t.Fatalf("%q: %v", body, err)
	}
	return counted.Bytes()
}

// Agents exchange full packets with one another: the probe's own question and the answer.
func TestAgentsExchangeFullPackets(t *testing.T) {
	f := fleet.Alone()
	f.SetDecided(map[probes.Condition]probes.Level{probes.MemoryPressure: probes.OK}, false, nil)
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: newPeerHandler(f)} //nolint:gosec // for this test
	go server.Serve(l)                                 //nolint:errcheck // it ends with the test
	t.Cleanup(func() { _ = server.Close() })
	in := &verdict.Surroundings{Peers: []verdict.Peer{{Node: "a", Address: netip.MustParseAddrPort(l.Addr().String())}}}
	p := checks.NewPeers(5 * time.Second)
	for range 2 { // one that was reached is asked with a full packet
		p.Ask(t.Context(), in, 10*time.Second)
	}
	if len(p.Found) != 1 || p.Found[0].Full != verdict.Passed || p.Found[0].Answer == nil {
		t.Errorf("%+v", p.Found)
	}
}
