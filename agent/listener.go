package agent

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// deferAccept is for how many seconds the kernel keeps a connection to itself
// that sends nothing.
const deferAccept = 1

// Listen listens on a TCP address. The kernel hands a connection over when its
// request is there, or when deferAccept is over (TCP_DEFER_ACCEPT, tcp(7)). So the
// request of a peer wakes the agent once and not twice, and the control probe of
// the network, which only connects, does not wake it at all.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	// The server ends idle connections long before a keep-alive would.
	config := net.ListenConfig{KeepAlive: -1, Control: func(_, _ string, c syscall.RawConn) error {
		var set error
		err := c.Control(func(fd uintptr) {
			set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, deferAccept)
		})
		return errors.Join(err, set)
	}}
	return config.Listen(ctx, "tcp", address)
}

// Bounds of the connections to the HTTP port, which anybody may reach who reaches
// the host. Prometheus and a person with curl need one each, a kubelet two.
const (
	// maxPerSource is how many connections one address may have. Those of the
	// host itself, where the kubelet is, count as one more source, so that nobody
	// else can keep it from asking for the agent's health.
	maxPerSource = 8
	// maxConnections is how many there may be in all, without those of the host.
	maxConnections = 64
)

// boundedListener closes connections beyond its bounds at once. A listener that
// did not accept them would leave the kubelet's waiting in the same queue.
type boundedListener struct {
	net.Listener

	mu       sync.Mutex
	all      int
	bySource map[netip.Addr]int
}

func newBoundedListener(l net.Listener) *boundedListener {
	return &boundedListener{Listener: l, bySource: map[netip.Addr]int{}}
}

// Accept returns the next connection that is within the bounds.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		source := sourceOf(conn)
		if l.take(source) {
			return &boundedConn{Conn: conn, giveBack: sync.OnceFunc(func() { l.giveBack(source) })}, nil
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			tcp.SetLinger(0) //nolint:errcheck // a reset leaves nothing behind in the kernel
		}
		conn.Close() //nolint:errcheck // nobody is left to be told
	}
}

// sourceOf is the address of the other side. Who reaches the port from the very
// address that it asks is the host itself, as its kubelet does; all of those are
// one. Another loopback address is nobody's whom the host depends on.
func sourceOf(conn net.Conn) netip.Addr {
	source := hostOf(conn.RemoteAddr())
	if source.IsValid() && source == hostOf(conn.LocalAddr()) {
		return netip.IPv6Loopback()
	}
	return source
}

// hostOf returns the host of a TCP address; the zero value where it is none.
func hostOf(address net.Addr) netip.Addr {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

func (l *boundedListener) take(source netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ofHost := source == netip.IPv6Loopback()
	if l.bySource[source] >= maxPerSource || !ofHost && l.all >= maxConnections {
		return false
	}
	l.bySource[source]++
	if !ofHost {
		l.all++
	}
	return true
}

func (l *boundedListener) giveBack(source netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bySource[source]--; l.bySource[source] == 0 {
		delete(l.bySource, source)
	}
	if source != netip.IPv6Loopback() {
		l.all--
	}
}

// boundedConn gives its place back when it is closed.
type boundedConn struct {
	net.Conn
	giveBack func()
}

// Close closes the connection.
func (c *boundedConn) Close() error {
	c.giveBack()
	return c.Conn.Close()
}
