package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network"
)

func askPeer(h http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/peer", nil))
	return w
}

// 10,000 requests a second for 10 s: 200 at once and 200 a second are answered, the
// others are refused, counted, and lose their connection.
func TestPeerIsRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, f := newMetrics("test"), fleet.Alone()
		f.Tell(map[probes.Condition]probes.Level{probes.MemoryPressure: probes.OK})
		h := newPeerHandler(f, m)
		codes := map[int]int{}
		const seconds, each = 10, 10_000
		for range seconds * each / 10 {
			for range 10 {
				w := askPeer(h)
				codes[w.Code]++
				if refused := w.Code == http.StatusTooManyRequests; refused != (w.Header().Get("Connection") == "close") || refused != (w.Body.Len() == 0) {
					t.Fatalf("%d %v %q", w.Code, w.Header(), w.Body)
				}
			}
			time.Sleep(time.Second / (each / 10))
		}
		if got, want := codes[http.StatusOK], 200+seconds*200; got < want-10 || got > want+1 {
			t.Errorf("%d answered, want %d", got, want)
		}
		counted := func(result string) int { return peerRequests(t, m, result) }
		if counted("answered") != codes[200] || counted("refused") != codes[429] || codes[200]+codes[429] != seconds*each {
			t.Errorf("counted %d and %d of %v", counted("answered"), counted("refused"), codes)
		}
	})
}

// peerRequests is how many were counted with a result.
func peerRequests(t *testing.T, m *metrics, result string) int {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			if family.GetName() == "taintlet_peer_requests_total" && series.GetLabel()[0].GetValue() == result {
				return int(series.GetCounter().GetValue())
			}
		}
	}
	return 0
}

// What the agent answers is what a peer reads.
func TestPeerAnswers(t *testing.T) {
	f := fleet.Alone()
	f.Says(network.Answer{Classes: map[network.Class]bool{network.DNS: true}, Lossy: -1})
	w := askPeer(newPeerHandler(f, newMetrics("test")))
	const want = `{"version":1,"classes":{"dns":true},"lossy":-1}`
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
	f.Says(network.Answer{Classes: map[network.Class]bool{network.DNS: true, network.Pods: true, network.Local: true}, Lossy: 0})
	f.Tell(map[probes.Condition]probes.Level{probes.MemoryPressure: probes.OK, probes.DiskPressure: probes.OK, probes.PIDPressure: probes.OK, probes.NetworkUnavailable: probes.OK})
	h := newPeerHandler(f, newMetrics("test"))
	h.limiter.SetLimit(1e9)
	mux := http.NewServeMux()
	mux.Handle("GET /peer", h)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server{listener, mux, slog.New(slog.DiscardHandler)}.run(ctx) }()
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

// What a request costs the agent: the answer alone, and refused.
func BenchmarkPeerHandler(b *testing.B) {
	for name, limit := range map[string]bool{"answered": false, "refused": true} {
		b.Run(name, func(b *testing.B) {
			h := newPeerHandler(fleet.Alone(), newMetrics("test"))
			h.limiter.SetBurst(0)
			if !limit {
				h.limiter.SetLimit(1e12)
				h.limiter.SetBurst(1 << 30)
			}
			request := httptest.NewRequest(http.MethodGet, "/peer", nil)
			for b.Loop() {
				h.ServeHTTP(httptest.NewRecorder(), request)
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

// A new configuration waits for up to 10 s for each EndpointSlice of the agents, 5
// min at most.
func TestJitterOfAReload(t *testing.T) {
	for slices, want := range map[int]time.Duration{0: 10 * time.Second, 1: 10 * time.Second, 7: 70 * time.Second, 30: 5 * time.Minute, 1000: 5 * time.Minute} {
		r := &reloader{slices: func() int { return slices }}
		if got := r.jitter(); got != want {
			t.Errorf("%d slices: %s, want %s", slices, got, want)
		}
	}
}
