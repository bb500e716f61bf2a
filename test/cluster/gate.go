package cluster

import (
	"net"
	"sync"
	"testing"
)

// Gate is a TCP address in front of an API server that can be taken away.
type Gate struct {
	// Address is where the API server is reached through the gate.
	Address string

	t      testing.TB
	target string
	group  sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener      // nil: connections are refused
	silent   bool              // connections are accepted and nothing is said
	links    map[*link]bool    // that pass on, or have become silent
	waiting  map[net.Conn]bool // accepted while silent
}

// link is one connection through the gate.
type link struct{ in, out net.Conn }

// NewGate reserves an address. The gate refuses connections until it is opened.
func NewGate(t testing.TB, target string) *Gate {
	t.Helper()
	return NewGateAt(t, "127.0.0.1:0", target)
}

// NewGateAt is NewGate for an address that is known. A port that the kernel does not give to
// clients cannot be taken while the gate refuses connections.
func NewGateAt(t testing.TB, address, target string) *Gate {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing went through it
	g := &Gate{t: t, Address: listener.Addr().String(), target: target, links: map[*link]bool{}, waiting: map[net.Conn]bool{}}
	t.Cleanup(g.end)
	return g
}

// Open passes connections on from now on. Those that became silent stay so: what
// is in between has forgotten them.
func (g *Gate) Open() {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.silent = false
	if g.listener != nil {
		return
	}
	listener, err := new(net.ListenConfig).Listen(g.t.Context(), "tcp", g.Address)
	if err != nil {
		g.t.Fatal(err)
	}
	g.listener = listener
	g.group.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			g.admit(in)
		}
	})
}

// Refuse resets all connections and refuses new ones, as a host does on which no
// API server runs.
func (g *Gate) Refuse() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != nil {
		g.listener.Close() //nolint:errcheck // ends the loop
		g.listener = nil
	}
	g.cut()
}

// Hush lets connections stand and says nothing any more, on those that are there
// for ever, as a host does that has vanished from the network.
func (g *Gate) Hush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.silent = true
	for l := range g.links {
		l.out.Close() //nolint:errcheck // its pipe ends and leaves the other side open
	}
}

func (g *Gate) admit(in net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.silent {
		g.waiting[in] = true
		return
	}
	out, err := new(net.Dialer).DialContext(g.t.Context(), "tcp", g.target)
	if err != nil {
		in.Close() //nolint:errcheck // the agent tries again
		return
	}
	l := &link{in, out}
	g.links[l] = true
	g.group.Go(func() { g.pipe(l, out, in) })
	g.group.Go(func() { g.pipe(l, in, out) })
}

// pipe passes on until either side ends. Once the link is silent, nothing is said
// to the agent any more, not even that it has ended.
func (g *Gate) pipe(l *link, to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err == nil {
			continue
		}
		g.mu.Lock()
		if !g.silent && g.links[l] {
			l.in.Close()  //nolint:errcheck // ends the other direction
			l.out.Close() //nolint:errcheck // the same
			delete(g.links, l)
		}
		g.mu.Unlock()
		return
	}
}

// cut closes all connections.
func (g *Gate) cut() {
	for l := range g.links {
		l.in.Close()  //nolint:errcheck // nobody is left to be told
		l.out.Close() //nolint:errcheck // the same
		delete(g.links, l)
	}
	for c := range g.waiting {
		c.Close() //nolint:errcheck // the same
		delete(g.waiting, c)
	}
}

func (g *Gate) end() {
	g.Refuse()
	g.group.Wait()
}
