package bed

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// ListenAsService takes the place of kube-proxy for the Service kubernetes: it
// passes connections at the Service's address on to the API server. The address
// is one of 127.0.0.0/8, all of which is this host's own already, so that nothing
// has to be set up, and nothing is left. A pod with hostNetwork reaches it.
func ListenAsService(t *testing.T) (ip string, connect func(to string)) {
	t.Helper()
	var listener net.Listener
	var err error
	for third := range 100 { // in 127.96.0.0/16; others may run this test too
		// The API server gives the Service the first address of its range.
		ip = fmt.Sprintf("127.96.%d.1", third)
		if listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(ip, "443")); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("no address for the Service kubernetes: %v", err)
	}
	var group sync.WaitGroup
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() { // after the kubelet's and the cluster's end
		stop()
		listener.Close() //nolint:errcheck // nothing depends on it any more
		group.Wait()
	})
	return ip, func(to string) {
		target, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for {
				client, err := listener.Accept()
				if err != nil {
					return
				}
				group.Go(func() { forward(ctx, client, target.Host) })
			}
		})
	}
}

// forward copies in both directions until both have ended.
func forward(ctx context.Context, client net.Conn, to string) {
	defer client.Close() //nolint:errcheck // both sides have seen the end
	server, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // both sides have seen the end
	defer context.AfterFunc(ctx, func() {
		client.Close() //nolint:errcheck // ends the copying
		server.Close() //nolint:errcheck // ends the copying
	})()
	var group sync.WaitGroup
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		group.Go(func() {
			io.Copy(pair[0], pair[1])           //nolint:errcheck // the other end sees it
			pair[0].(*net.TCPConn).CloseWrite() //nolint:errcheck // it may have ended
		})
	}
	group.Wait()
}
