package faults

import (
	"net"
	"sync"
	"sync/atomic"
)

// wire accepts the agent's connections. It can make them silent, below TLS and HTTP: what
// comes is acknowledged by the kernel and read by nobody, and no answer ever leaves.
type wire struct {
	net.Listener

	mu       sync.Mutex
	isSilent bool // so are new connections
	open     map[*wireConn]bool
	accepted int
}

func newWire(listener net.Listener) *wire {
	return &wire{Listener: listener, open: map[*wireConn]bool{}}
}

// Accept returns the next connection.
func (w *wire) Accept() (net.Conn, error) {
	accepted, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &wireConn{Conn: accepted, of: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	c.isSilent.Store(w.isSilent)
	w.open[c] = true
	w.accepted++
	return c, nil
}

// count is how many connections there were.
func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.accepted
}

// silence makes all connections silent for good, and as long as it is on also new ones.
func (w *wire) silence(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isSilent = on; on {
		for c := range w.open {
			c.isSilent.Store(true)
		}
	}
}

// wireConn is one of them.
type wireConn struct {
	net.Conn

	of       *wire
	isSilent atomic.Bool
}

// Read returns nothing of what comes while it is silent, but for the end.
func (c *wireConn) Read(into []byte) (int, error) {
	for {
		n, err := c.Conn.Read(into)
		if err != nil || !c.isSilent.Load() {
			return n, err
		}
	}
}

func (c *wireConn) Write(from []byte) (int, error) {
	if c.isSilent.Load() {
		return len(from), nil
	}
	return c.Conn.Write(from)
}

// Close closes it.
func (c *wireConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// fallSilent has the agents' connections give no sign of life any more. Those that are made
// in this time stay so.
func (s *scene) fallSilent(uint64) (end func()) {
	for _, a := range s.running() {
		a.proxy.wire.silence(true)
	}
	return func() {
		for _, a := range s.running() {
			a.proxy.wire.silence(false)
		}
	}
}
