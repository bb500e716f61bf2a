package ask

import (
	"bytes"
	"fmt"
	"log"
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

// tlsServer counts the requests that it gets, which ought to be none.
func tlsServer(t *testing.T) (address netip.AddrPort, requests *atomic.Int32, logged *bytes.Buffer) {
	t.Helper()
	requests, logged = &atomic.Int32{}, &bytes.Buffer{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(logged, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(server.Listener.Addr().String()), requests, logged
}

// The certificate is one that nobody trusts. The server logs nothing.
func TestAPIServerIsGreeted(t *testing.T) {
	t.Parallel()
	address, requests, logged := tlsServer(t)
	a, in := &API{}, verdict.Surroundings{APIServer: address.String()}
	for range 3 {
		if got := a.Ask(t.Context(), &in, time.Second); got.Outcome != verdict.Well {
			t.Errorf("%+v", got)
		}
	}
	in.APIServer = fmt.Sprintf("localhost:%d", address.Port())
	if got := a.Ask(t.Context(), &in, time.Second); got.Outcome != verdict.Well {
		t.Errorf("by its name: %+v", got)
	}
	time.Sleep(50 * time.Millisecond) // nothing tells that a server will log nothing
	if requests.Load() != 0 || logged.Len() != 0 {
		t.Errorf("%d requests, logged %s", requests.Load(), logged)
	}
}

// While the configured address does not answer, an API server that does is enough.
func TestAPIServerElsewhere(t *testing.T) {
	t.Parallel()
	configured, _, _ := tlsServer(t)
	other, _, _ := tlsServer(t)
	closed := closedPort(t)
	for _, test := range []struct {
		server    netip.AddrPort
		others    []netip.AddrPort
		want      verdict.Outcome
		elsewhere bool
	}{
		{configured, []netip.AddrPort{other}, verdict.Well, false},
		{closed, []netip.AddrPort{closedPort(t), other}, verdict.Well, true},
		{closed, []netip.AddrPort{closed}, verdict.Failed, false},
		{closed, nil, verdict.Failed, false},
	} {
		a, in := &API{}, &verdict.Surroundings{APIServer: test.server.String(), APIServers: test.others}
		if got := a.Ask(t.Context(), in, time.Second); got.Outcome != test.want || got.Elsewhere != test.elsewhere {
			t.Errorf("%+v: %+v", test, got)
		}
	}
}

// A name that is not resolved any more is no fault of the server.
func TestAPIServerWhoseNameIsNotResolved(t *testing.T) {
	t.Parallel()
	address, _, _ := tlsServer(t)
	server := fmt.Sprintf("api.invalid:%d", address.Port())
	a, in := &API{}, verdict.Surroundings{APIServer: server}
	if got := a.Ask(t.Context(), &in, 4*time.Second); got.Outcome != verdict.Failed || !strings.Contains(got.Detail, "api.invalid") {
		t.Errorf("never reached: %+v", got)
	}
	a.address = map[string]netip.AddrPort{server: address}
	if got := a.Ask(t.Context(), &in, 4*time.Second); got.Outcome != verdict.Well {
		t.Errorf("reached before: %+v", got)
	}
}

func TestAPIServerThatIsNone(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // nothing went through it
	for _, test := range []struct{ name, server, detail string }{
		{"no TLS", serve(t, says("x")).String(), "first record does not look like a TLS handshake"},
		{"refused", closedPort(t).String(), "connection refused"},
		{"silent", silent.Addr().String(), "no answer in time"},
		{"no port", "10.0.0.1", "missing port"},
		{"garbled port", "localhost:x", "unknown port"},
	} {
		a, in := &API{}, verdict.Surroundings{APIServer: test.server}
		if got := a.Ask(t.Context(), &in, 300*time.Millisecond); got.Outcome != verdict.Failed || !strings.Contains(got.Detail, test.detail) {
			t.Errorf("%s: %+v, want %q", test.name, got, test.detail)
		}
	}
	a := &API{}
	if got := a.Ask(t.Context(), &verdict.Surroundings{}, time.Second); got.Outcome != verdict.NotKnown {
		t.Errorf("no server: %+v", got)
	}
}
