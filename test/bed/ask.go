package bed

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// askTimeout is short: nothing is lost unless all is.
const askTimeout = time.Second

// Dial connects from this host, and is back when the connection is made. Refused
// is an error too.
func (s *Space) Dial(to netip.AddrPort) (connection net.Conn, err error) {
	err = s.Do(func() (err error) {
		connection, err = dial("tcp", to)
		return err
	})
	return connection, err
}

// dial connects from the network namespace of this thread.
func dial(protocol string, to netip.AddrPort) (net.Conn, error) {
	return (&net.Dialer{Timeout: askTimeout}).DialContext(context.Background(), protocol, to.String())
}

// Get asks an HTTP server, of which nothing but the text of the answer matters.
// Any other answer than 200 OK is an error.
func (s *Space) Get(server netip.AddrPort, path string) (string, error) {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return s.Dial(server) },
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*askTimeout)
	defer cancel()
	body, err := process.Get(ctx, &http.Client{Transport: transport}, "http://"+server.String()+path)
	return string(body), err
}

// PortsTo returns the ports from which this host has connections to a server.
func (s *Space) PortsTo(server netip.AddrPort) ([]string, error) {
	out, err := s.Output("", "ss", "-Htn", "state", "established", "dst", server.String())
	if err != nil {
		return nil, err
	}
	var ports []string
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) >= 4 {
			ports = append(ports, fields[2][strings.LastIndexByte(fields[2], ':')+1:])
		}
	}
	if len(ports) == 0 {
		return nil, fmt.Errorf("%s has no connection to %s:\n%s", s.name, server, out)
	}
	return ports, nil
}
