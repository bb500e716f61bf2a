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
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/ask"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// village is a host's surroundings, whose hosts are addresses of lo. Its servers are real.
type village struct {
	verdict.Surroundings
	host       probes.Host
	handshakes atomic.Int32
	page       atomic.Value // what the peers answer, a string
	// report is the verdict on the newest round; nil: none was told. standings answer it.
	report    *verdict.Verdict
	standings []verdict.Standing
}

// observe runs a round in the village.
func (v *village) observe(ctx context.Context, p *Probe) probes.Observation {
	v.report = nil
	p.Join(joined{v})
	return p.Observe(ctx)
}

// joined is a village that a probe asks.
type joined struct{ *village }

func (v joined) Surroundings() verdict.Surroundings { return v.village.Surroundings }

func (v joined) Consult(_ context.Context, report *verdict.Verdict) []verdict.Standing {
	v.report = report
	return v.standings
}

// thisHost is the host that the tests run on.
var thisHost = probes.Host{Root: "/", Proc: "/proc", Sys: "/sys"}

const testPeriod = 5 * time.Second

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

// addresses gives so many peers the addresses 127.1.0.N. The API server is
// 127.2.0.1, the DNS pod 127.3.0.1 and the own address 127.1.0.0.
func (v *village) addresses(peers int) {
	v.DNSPods = []netip.AddrPort{netip.MustParseAddrPort(fmt.Sprintf("127.3.0.1:%d", podPort))}
	v.Self = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, 0, 0}), peerPort)
	v.APIServer = fmt.Sprintf("127.2.0.1:%d", apiPort)
	for i := range peers {
		address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, 0, byte(i + 1)}), peerPort)
		v.Peers = append(v.Peers, verdict.Peer{Node: fmt.Sprintf("node-%02d", i+1), Address: address, Other: otherPort})
	}
}

// answer is what each peer says.
const answer = `{"version":1,"classes":{"route":true,"self":true,"api":true,"local":true,"pods":true,"dns":true,"conntrack":true},"lossy":0,"levels":{"MemoryPressure":"OK","DiskPressure":"OK","PIDPressure":"OK","NetworkUnavailable":"OK"}}`

// settle starts the servers of a village with so many peers, a nameserver at
// 127.4.0.1 and kube-proxy. It needs a network namespace of its own.
func settle(t testing.TB, peers int) *village {
	t.Helper()
	v := &village{}
	v.addresses(peers)
	v.page.Store(answer)
	serve := func(address string, secure bool) {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, v.page.Load())
		}))
		_ = server.Listener.Close()
		server.Listener = listen(t, address)
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if secure && state == http.StateNew {
				v.handshakes.Add(1)
			}
		}
		if secure {
			server.StartTLS()
		} else {
			server.Start()
		}
		t.Cleanup(server.Close)
	}
	serve(v.APIServer, true)
	serve(v.Self.String(), false)
	serve(v.DNSPods[0].String(), false)
	serve("127.0.0.1:10256", false)
	for _, peer := range v.Peers {
		serve(peer.Address.String(), false)
	}
	serveNames(t, "127.4.0.1:53")
	return v
}

// probe is the probe of a host in the village.
func (v *village) probe(t testing.TB, disabled ...verdict.Class) *Probe {
	t.Helper()
	p := New(v.host, testPeriod, disabled...)
	p.patience = 500 * time.Millisecond // there is no network to wait for
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte("search svc.cluster.local\nnameserver 127.4.0.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, isOn := p.checks[verdict.DNS]; isOn {
		p.checks[verdict.DNS] = ask.NewDNS(path)
	}
	return p
}

// serveNames answers every question that there is no such name (RCODE 3).
func serveNames(t testing.TB, address string) {
	t.Helper()
	c, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	go func() {
		buffer := make([]byte, 512)
		for {
			n, from, err := c.ReadFrom(buffer)
			if err != nil {
				return
			}
			buffer[2], buffer[3] = buffer[2]|0x80, 3
			_, _ = c.WriteTo(buffer[:n], from)
		}
	}()
}
