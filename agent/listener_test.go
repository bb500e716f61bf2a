package agent

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
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
	closed bool
}

func (c *client) Close() error         { c.closed = true; return nil }
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

// No address gets more than its share, all together no more than the agent can
// bear, and the host's own kubelet always gets through.
func TestConnectionsAreBounded(t *testing.T) {
	q := &queue{}
	l := newBoundedListener(q)
	to := ""
	// open returns how many of n connections from the addresses are accepted.
	open := func(n int, address func(i int) string) (accepted []net.Conn) {
		all := make([]*client, n)
		for i := range all {
			all[i] = &client{from: address(i), to: to}
			q.clients = append(q.clients, all[i])
		}
		for {
			conn, err := l.Accept()
			if err != nil {
				break
			}
			accepted = append(accepted, conn)
		}
		refused := 0
		for _, c := range all {
			if c.closed {
				refused++
			}
		}
		if refused+len(accepted) != n {
			t.Errorf("%d refused and %d accepted of %d", refused, len(accepted), n)
		}
		return accepted
	}
	one := func(address string) func(int) string { return func(int) string { return address } }
	each := func(i int) string { return fmt.Sprintf("198.51.100.%d", i%200+1) }

	attacker := open(1000, one("203.0.113.9"))
	if len(attacker) != maxPerSource {
		t.Errorf("one address has %d connections", len(attacker))
	}
	mapped := open(10, one("::ffff:203.0.113.9"))
	if len(mapped) != 0 {
		t.Errorf("%d more as an IPv4 address in IPv6", len(mapped))
	}
	neighbour := append(open(maxPerSource, one("fe80::9%eth0")), open(10, one("fe80::9%eth1"))...)
	if len(neighbour) != maxPerSource {
		t.Errorf("a neighbour has %d connections by two interfaces", len(neighbour))
	}
	attacker = append(attacker, neighbour...)
	crowd := open(1000, each)
	if len(crowd)+len(attacker) != maxConnections {
		t.Errorf("all together have %d connections", len(crowd)+len(attacker))
	}
	if others := open(5, one("127.0.0.2")); len(others) > 0 {
		t.Errorf("%d more from another loopback address", len(others))
	}
	to = "127.0.0.1"
	kubelet := open(5, one("127.0.0.1"))
	to = ""
	host := open(5, one("192.0.2.1")) // by the address of its interface
	if len(kubelet)+len(host) != maxPerSource {
		t.Errorf("the host has %d connections while the port is full", len(kubelet)+len(host))
	}
	for _, conn := range append(attacker, crowd...) {
		for range 2 { // closing twice gives one place back
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if again := open(1000, each); len(again) != maxConnections {
		t.Errorf("%d connections after all others were closed", len(again))
	}
}
