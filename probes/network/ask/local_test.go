package ask

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// fickle is a daemon whose answer a test changes.
func fickle(t *testing.T, handler http.HandlerFunc) (uint16, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String()).Port(), server
}

func TestDaemonsAreFoundByTheirHealth(t *testing.T) {
	t.Parallel()
	var status, asked atomic.Int32
	port, server := fickle(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/livez" || r.Header.Get("Brief") != "true" {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(int(status.Load()))
		_, _ = w.Write([]byte(strings.Repeat("long ", longestAnswer)))
	})
	never := closedPort(t).Port()
	l := &Local{daemons: []daemon{
		{name: "here", port: port, path: "/livez", header: "brief: true\r\n"},
		{name: "not here", port: never, path: "/livez"},
	}, known: map[string]seenDaemon{}}
	for _, step := range []struct {
		name   string
		status int32
		want   verdict.Outcome
		detail string
	}{
		{"another program", http.StatusForbidden, verdict.NotKnown, "no network daemon was healthy yet"},
		{"well", http.StatusOK, verdict.Well, "here is healthy"},
		{"ill", http.StatusServiceUnavailable, verdict.Failed, "/livez: status 503"},
		{"well again", http.StatusOK, verdict.Well, "here is healthy"},
	} {
		for ; !l.known["here"].well && l.rounds%seekEvery != 0; l.Ask(t.Context(), nil, time.Second) {
			if n := asked.Load(); n != 1 { // in the first round
				t.Errorf("a daemon that was never well was asked %d times in %d rounds", n, l.rounds)
			}
		}
		status.Store(step.status)
		got := l.Ask(t.Context(), nil, time.Second)
		if got.Outcome != step.want || !strings.Contains(got.Detail, step.detail) || strings.Contains(got.Detail, "not here") {
			t.Errorf("%s: %+v, want %v with %q", step.name, got, step.want, step.detail)
		}
	}
	server.Close()
	if got := l.Ask(t.Context(), nil, time.Second); got.Outcome != verdict.NotKnown || got.Never {
		t.Errorf("gone: %+v", got)
	}
}

// Who removes a daemon closes its port for good. One that crashes comes back, and one
// that was stuck before its port closed is no better.
func TestClosedPort(t *testing.T) {
	t.Parallel()
	const well, closed, stuck, absent, lost = "w", "c", "s", "-", "l"
	answer := map[string]error{
		well: nil, closed: syscall.ECONNREFUSED, stuck: statusError{"/livez", 503}, absent: statusError{"/livez", 404},
		lost: &net.OpError{Op: "dial", Err: context.DeadlineExceeded},
	}
	for _, test := range []struct {
		name, answers, want string
		pause               time.Duration // between two answers
	}{
		{"removed", "wwwcccccccccc", "wwwnnnnnnnnnn", 5 * time.Second},
		{"an answer cut off at its end", "wwsccccccc", "wwfnnnnnnn", 5 * time.Second},
		{"replaced in a roll-out", "wwccwwwwww", "wwnnwwwwww", 5 * time.Second},
		{"crashes again and again", "wwccwccwccc", "wwnnwffwfff", 5 * time.Second},
		{"a roll-out, and removed long after", "wwccwwcccc", "wwnnwwnnnn", backWithin},
		{"stuck, and then dead", "wwsssccccc", "wwffffffff", 5 * time.Second},
		{"stuck, dead, back, and removed long after", "wwssscwwcc", "wwffffwwnn", backWithin},
		{"never well, and dead", "ssscc", "NNNNN", 5 * time.Second},
		{"well, and packets are lost", "wlllww", "wfffww", 5 * time.Second},
		{"nobody there, and packets are lost", "cllllcc", "nnnnnnn", 5 * time.Second},
		{"another program on its port", "---ww-", "nnnwwf", 5 * time.Second},
	} {
		l := NewLocal()
		d := []daemon{{name: "a", path: "/livez"}}
		now, got := time.Unix(1000, 0), ""
		for _, a := range strings.Split(test.answers, "") {
			now = now.Add(test.pause)
			result := l.evaluate(d, []error{answer[a]}, now)
			switch {
			case result.Never:
				got += "N"
			default:
				got += map[verdict.Outcome]string{verdict.Well: "w", verdict.Failed: "f", verdict.NotKnown: "n"}[result.Outcome]
			}
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// kube-proxy's /healthz is 503 under ToBeDeletedByClusterAutoscaler. The ports are
// those of the daemons' documentation.
func TestKnownDaemons(t *testing.T) {
	t.Parallel()
	want := []daemon{
		{"kube-proxy", 10256, "/livez", ""},
		{"Cilium", 9879, "/healthz", "brief: true\r\n"},
		{"Calico", 9099, "/readiness", ""},
	}
	if got := daemons(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestDaemonOnIPv6Alone(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(says("well"))
	_ = server.Listener.Close()
	server.Listener = listen(t, "[::1]:0")
	server.Start()
	t.Cleanup(server.Close)
	d := daemon{port: netip.MustParseAddrPort(server.Listener.Addr().String()).Port(), path: "/"}
	if err := d.ask(t.Context()); err != nil {
		t.Error(err)
	}
}

// A daemon that answers and was never well is stuck, or starts. Whether other daemons
// are well or not: a restart of the agent must not clear the taint of such a host.
func TestStuckDaemonAfterARestart(t *testing.T) {
	t.Parallel()
	stuck, _ := fickle(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	hangs, _ := fickle(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	fine, _ := fickle(t, says("well"))
	for _, test := range []struct {
		name    string
		daemons []daemon
		never   bool
		detail  string
	}{
		{"stuck", []daemon{{name: "stuck", port: stuck, path: "/"}}, true, "status 503"},
		{"hangs", []daemon{{name: "hangs", port: hangs, path: "/"}}, true, "no answer in time"},
		{"one is well", []daemon{{name: "fine", port: fine, path: "/"}, {name: "stuck", port: stuck, path: "/"}}, true, "status 503"},
		{"closed", []daemon{{name: "closed", port: closedPort(t).Port(), path: "/"}}, false, "no network daemon"},
	} {
		l := NewLocal()
		l.daemons = test.daemons
		for round := range seekEvery + 1 {
			if got := l.Ask(t.Context(), nil, 200*time.Millisecond); got.Outcome != verdict.NotKnown || got.Never != test.never || !strings.Contains(got.Detail, test.detail) {
				t.Errorf("%s, round %d: %+v", test.name, round, got)
				break
			}
		}
	}
}

// While the connection table of a host is full, packets to ports that nobody listens on get
// lost. They are no sign of a daemon.
func TestLostOnLoopback(t *testing.T) {
	t.Parallel()
	port := fullPort(t)
	l := &Local{daemons: []daemon{{name: "not here", port: port, path: "/"}}, known: map[string]seenDaemon{}}
	for range illAnswers + 1 {
		l.rounds = 0 // seek it
		if got := l.Ask(t.Context(), nil, 100*time.Millisecond); got.Outcome != verdict.NotKnown || got.Never {
			t.Errorf("%+v", got)
		}
	}
}

// fullPort returns a port of loopback that drops the packets of each new connection: one
// waits there to be accepted, and no more may.
func fullPort(t *testing.T) uint16 {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(socket) })
	if err := errors.Join(unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(socket, 0)); err != nil {
		t.Fatal(err)
	}
	address, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(address.(*unix.SockaddrInet4).Port) //nolint:gosec // a port
	for range 10 {
		c, err := (&net.Dialer{Timeout: 200 * time.Millisecond}).DialContext(t.Context(), "tcp4", netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port).String())
		if err != nil {
			return port
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("a port without room takes connections")
	return 0
}
