package serve

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// deferAccept is for how many seconds the kernel keeps a connection to itself
// that sends nothing.
const deferAccept = 1

// Listen listens on a TCP address. The kernel hands a connection over when its request has arrived,
// or after deferAccept (TCP_DEFER_ACCEPT, tcp(7)). The request of a peer therefore wakes the agent
// once and not twice, and the control probe of the network, which only connects, does not wake it
// at all.
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
	// maxConnections is how many the agents of the fleet may have in all, and as many
	// all others, without those of the host.
	maxConnections = 64
)

// maxParked is how many connections are kept without being served.
const maxParked = 32

// newConnections are how many connections are served in a second: twice as many as there
// are answers, so that no client loses an answer for want of a connection.
func newConnections() answers {
	a := defaultAnswers()
	return answers{toSource: 2 * a.toSource, toBlock: 2 * a.toBlock, toAgents: 2 * a.toAgents, toOthers: 2 * a.toOthers}
}

// boundedListener closes connections beyond its bounds at once: not the new one, whose
// request is there already, but the oldest of those who have most. So whoever keeps
// connections open or sends slowly loses them, and keeps nobody out. A listener that
// did not accept them would leave the kubelet's waiting in the same queue.
type boundedListener struct {
	net.Listener
	isAgent func(netip.Addr) bool

	opened window

	mu     sync.Mutex
	open   []*boundedConn // the oldest first
	parked int
}

func newBoundedListener(l net.Listener, isAgent func(netip.Addr) bool) *boundedListener {
	return &boundedListener{Listener: l, isAgent: isAgent, opened: window{most: newConnections()}}
}

// Accept returns the next connection that is served.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &boundedConn{Conn: conn, listener: l, source: sourceOf(conn.RemoteAddr().String(), conn.LocalAddr())}
		if c.source != hostItself {
			c.isAgent = l.isAgent(c.source)
			c.share = blockOf(c.source)
			if !l.opened.allows(c.source, c.isAgent, time.Now()) {
				l.park(conn)
				continue
			}
		}
		if over := l.add(c); over != nil {
			reset(over.Conn)
		}
		return c, nil
	}
}

// park resets a connection after a while. A client that connects again at once would
// take half of a core otherwise.
func (l *boundedListener) park(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.parked == maxParked {
		reset(conn)
		return
	}
	l.parked++
	time.AfterFunc(refuseAfter, func() {
		reset(conn)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.parked--
	})
}

// reset closes a connection so that nothing of it is left behind in the kernel.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0) //nolint:errcheck // it is closed in any case
	}
	conn.Close() //nolint:errcheck // nobody is left to be told
}

// add adds a connection, and returns the connection that must be closed for it; nil: none.
func (l *boundedListener) add(c *boundedConn) (over *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, c)
	ofSource, all, byShare := 0, 0, map[netip.Prefix]int{}
	for _, o := range l.open {
		if o.source == c.source {
			ofSource++
		}
		if o.source != hostItself && o.isAgent == c.isAgent {
			all++
			byShare[o.share]++
		}
	}
	isOver := func(o *boundedConn) bool { return o.source == c.source }
	switch {
	case ofSource > maxPerSource:
	case c.source != hostItself && all > maxConnections:
		most := slices.Max(slices.Collect(maps.Values(byShare)))
		isOver = func(o *boundedConn) bool {
			return o.source != hostItself && o.isAgent == c.isAgent && byShare[o.share] == most
		}
	default:
		return nil
	}
	at := slices.IndexFunc(l.open, isOver)
	over = l.open[at]
	l.open = slices.Delete(l.open, at, at+1)
	return over
}

// remove forgets a connection that was closed.
func (l *boundedListener) remove(c *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.Index(l.open, c); at >= 0 {
		l.open = slices.Delete(l.open, at, at+1)
	}
}

// boundedConn gives its place back when it is closed.
type boundedConn struct {
	net.Conn
	listener *boundedListener
	source   netip.Addr
	share    netip.Prefix // the block of addresses that it is counted for
	isAgent  bool
}

// Close closes the connection.
func (c *boundedConn) Close() error {
	c.listener.remove(c)
	return c.Conn.Close()
}
