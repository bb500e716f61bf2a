package network

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/taintlet/taintlet/probes"
)

// village is a Cluster whose hosts are addresses of lo. Its servers are real.
type village struct {
	peers      []Peer
	pods       []netip.AddrPort
	self       netip.AddrPort
	api        string
	standings  func(context.Context, []string) ([]Standing, error)
	heard      map[string]Answer
	said       Answer
	handshakes atomic.Int32
}

func (v *village) Peers() []Peer                   { return v.peers }
func (v *village) DNSPods() []netip.AddrPort       { return v.pods }
func (v *village) SelfAddress() netip.AddrPort     { return v.self }
func (v *village) APIServer() string               { return v.api }
func (v *village) Heard(answers map[string]Answer) { v.heard = answers }
func (v *village) Says(own Answer)                 { v.said = own }
func (v *village) Standings(ctx context.Context, nodes []string) ([]Standing, error) {
	return v.standings(ctx, nodes)
}

// The ports of the village.
const (
	peerPort  = 9410
	otherPort = 10250 // nobody listens there: refused is reached
	podPort   = 53
	apiPort   = 6443
)

func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func start(t testing.TB, address string, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	_ = server.Listener.Close()
	server.Listener = listen(t, address)
	return server
}

// settle builds a village with so many peers: 127.1.0.N. Its API server is
// 127.2.0.1, its DNS pod 127.3.0.1, its nameserver 127.4.0.1, the own address
// 127.1.0.0, and kube-proxy runs. It needs a network namespace of its own.
func settle(t testing.TB, peers int) *village {
	t.Helper()
	v := &village{
		pods: []netip.AddrPort{netip.MustParseAddrPort(fmt.Sprintf("127.3.0.1:%d", podPort))},
		self: netip.MustParseAddrPort(fmt.Sprintf("127.1.0.0:%d", peerPort)),
		api:  fmt.Sprintf("127.2.0.1:%d", apiPort),
	}
	answer := says(`{"version":1,"classes":{"route":true,"self":true,"api":true,"local":true,"pods":true,"dns":true,"conntrack":true},"lossy":0,"levels":{"MemoryPressure":"OK","DiskPressure":"OK","PIDPressure":"OK","NetworkUnavailable":"OK"}}`)
	for i := range peers + 1 {
		address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, 0, byte(i)}), peerPort)
		server := start(t, address.String(), answer)
		server.Start()
		t.Cleanup(server.Close)
		if i > 0 {
			v.peers = append(v.peers, Peer{Node: fmt.Sprintf("node-%02d", i), Address: address, Other: otherPort})
		}
	}
	api := start(t, v.api, http.NotFoundHandler())
	api.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			v.handshakes.Add(1)
		}
	}
	api.StartTLS()
	t.Cleanup(api.Close)
	pod := start(t, v.pods[0].String(), http.NotFoundHandler())
	pod.Start()
	t.Cleanup(pod.Close)
	v.kubeProxy(t)
	serveDNS(t, "127.4.0.1:53", reply3)
	return v
}

// kubeProxy is well until it is closed.
func (*village) kubeProxy(t testing.TB) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/livez", func(http.ResponseWriter, *http.Request) {})
	proxy := start(t, "127.0.0.1:10256", mux)
	proxy.Start()
	t.Cleanup(proxy.Close)
	return proxy
}

// probe is the probe of a host in the village.
func (v *village) probe(t testing.TB, h probes.Host, disabled ...Class) *Probe {
	t.Helper()
	p := New(h, Options{Cluster: v, Disabled: disabled})
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte("search svc.cluster.local\nnameserver 127.4.0.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range p.checks {
		if d, ok := c.(*dnsCheck); ok {
			d.path = path
		}
	}
	return p
}
