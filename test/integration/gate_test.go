package integration

import (
	"io"
	"net"
	"sync"
	"testing"
)

// gate is a TCP address that refuses connections until it is opened, and then
// passes them on.
type gate struct {
	t       *testing.T
	address string
	target  string
	group   sync.WaitGroup
}

// newGate reserves an address by listening on it for a moment.
func newGate(t *testing.T, target string) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing went through it
	return &gate{t: t, address: listener.Addr().String(), target: target}
}

func (g *gate) open() {
	g.t.Helper()
	listener, err := net.Listen("tcp", g.address)
	if err != nil {
		g.t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	track := func(c net.Conn) net.Conn {
		mu.Lock()
		defer mu.Unlock()
		open = append(open, c)
		return c
	}
	g.t.Cleanup(func() {
		listener.Close() //nolint:errcheck // ends the loop below
		mu.Lock()
		for _, c := range open {
			c.Close() //nolint:errcheck // ends the copies
		}
		mu.Unlock()
		g.group.Wait()
	})
	g.group.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", g.target)
			if err != nil {
				in.Close() //nolint:errcheck // the agent tries again
				continue
			}
			track(in)
			track(out)
			g.group.Go(func() { pipe(in, out) })
			g.group.Go(func() { pipe(out, in) })
		}
	})
}

func pipe(to, from net.Conn) {
	io.Copy(to, from) //nolint:errcheck // either side may end it
	to.Close()        //nolint:errcheck // as above
}
