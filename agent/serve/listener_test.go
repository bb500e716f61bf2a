package serve

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// queue is a listener whose clients come from where the test says.
type queue struct {
	net.Listener
	clients []net.Conn
}

func (q *queue) Accept() (net.Conn, error) {
	if len(q.clients) == 0 {
		return nil, errors.New("nobody else")
	}
	next := q.clients[0]
	q.clients = q.clients[1:]
	return next, nil
}

// client is a connection from an address to this host.
type client struct {
	net.Conn
	from   string
	to     string // empty: 192.0.2.1
	closed atomic.Bool
}

func (c *client) Close() error         { c.closed.Store(true); return nil }
func (c *client) LocalAddr() net.Addr  { return tcp(cmp.Or(c.to, "192.0.2.1")) }
func (c *client) RemoteAddr() net.Addr { return tcp(c.from) }

func tcp(address string) net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 4242))
}

// Who connects and says nothing wakes nobody.
func TestSilentConnectionsAreNotAccepted(t *testing.T) {
	t.Parallel()
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nobody listens any more
	silent, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // it said nothing
	asking, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer asking.Close() //nolint:errcheck // all was read
	if _, err := asking.Write([]byte("a request")); err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close() //nolint:errcheck // see above
	if accepted.RemoteAddr().String() != asking.LocalAddr().String() {
		t.Error("the silent connection was accepted before the one with a request")
	}
}

// Of a client that connects again and again, the connections beyond 40 a second are not
// served. The first of them are reset after half a second, so that the client waits. The
// host itself is served.
func TestWhoeverConnectsTooOftenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		l := newBoundedListener(q, func(netip.Addr) bool { return false })
		all := make([]*client, 1000)
		for i := range all {
			all[i] = &client{from: "203.0.113.9"}
			q.clients = append(q.clients, all[i])
		}
		served := 0
		for ; ; served++ {
			if _, err := l.Accept(); err != nil {
				break
			}
		}
		open := func() (count int) {
			for _, c := range all {
				if !c.closed.Load() {
					count++
				}
			}
			return count
		}
		if served != newConnections().toSource || open() != maxPerSource+maxParked {
			t.Errorf("%d of 1000 are served, %d are open", served, open())
		}
		for range 100 {
			q.clients = append(q.clients, &client{from: "192.0.2.1"})
			if _, err := l.Accept(); err != nil {
				t.Error("the host is not served:", err)
			}
		}
		time.Sleep(refuseAfter)
		synctest.Wait()
		if n := open(); n != maxPerSource {
			t.Errorf("%d are open half a second later", n)
		}
	})
}

// No address has more than its share, all together no more than the agent can
// bear, and whoever comes last gets through: the kubelet of the host, agents of the
// fleet and Prometheus, while others hold connections open.
func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, testConnectionsAreBounded)
}

func testConnectionsAreBounded(t *testing.T) {
	q := &queue{}
	agents := netip.MustParsePrefix("198.18.0.0/16")
	l := newBoundedListener(q, agents.Contains)
	// open opens connections from the addresses, and returns those.
	open := func(n int, address func(i int) string) []*client {
		all := make([]*client, n)
		for i := range all {
			all[i] = &client{from: address(i)}
			if address(i) == "127.0.0.1" {
				all[i].to = "127.0.0.1"
			}
			q.clients = append(q.clients, all[i])
			time.Sleep(time.Second / 30) // slowly enough for each to be served
			if _, err := l.Accept(); err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	stand := func(all ...[]*client) (count int) {
		for _, c := range slices.Concat(all...) {
			if !c.closed.Load() {
				count++
			}
		}
		return count
	}
	one := func(address string) func(int) string { return func(int) string { return address } }

	attacker := open(1000, one("203.0.113.9"))
	mapped := open(10, one("::ffff:203.0.113.9"))
	if n := stand(attacker, mapped); n != maxPerSource {
		t.Errorf("one address has %d connections", n)
	}
	neighbour := append(open(maxPerSource, one("fe80::9%eth0")), open(10, one("fe80::9%eth1"))...)
	if n := stand(neighbour); n != maxPerSource {
		t.Errorf("a neighbour has %d connections by two interfaces", n)
	}
	block := open(1000, func(i int) string { return fmt.Sprintf("203.0.113.%d", i%200+1) })
	prometheus, curl := open(2, one("192.0.2.77")), open(1, one("127.0.0.2"))
	block = append(block, open(1000, func(i int) string { return fmt.Sprintf("203.0.113.%d", i%200+1) })...)
	if stand(prometheus) != 2 || stand(curl) != 1 {
		t.Error("others lost their connections to those of one block")
	}
	if n := stand(attacker, mapped, neighbour, block, prometheus, curl); n != maxConnections {
		t.Errorf("all together have %d connections", n)
	}
	peers := open(50, func(i int) string { return fmt.Sprintf("198.18.0.%d", i) })
	kubelet, host := open(5, one("127.0.0.1")), open(5, one("192.0.2.1")) // by the address of its interface
	everybody := open(1000, func(i int) string { return fmt.Sprintf("100.64.%d.1", i%250) })
	if n := stand(kubelet, host); n != maxPerSource || stand(host) != 5 {
		t.Errorf("the host has %d connections while the port is full", n)
	}
	if n := stand(peers); n != 50 {
		t.Errorf("of 50 agents, %d have a connection while the port is full", n)
	}
	late := open(1, one("192.0.2.78"))
	if stand(late) != 1 || len(l.open) != maxConnections+50+maxPerSource {
		t.Errorf("the last one has %d connections, all %d", stand(late), len(l.open))
	}
	for range 2 { // closing twice gives one place back
		for _, c := range slices.Clone(l.open) {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := stand(everybody, peers, kubelet, late); n != 0 || len(l.open) != 0 {
		t.Errorf("%d stand after all were closed, %d are kept", n, len(l.open))
	}
}
