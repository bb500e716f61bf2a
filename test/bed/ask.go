package bed

import (
	"context"
	"encoding/binary"
	"errors"
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

// Reach is Dial for those who want nothing but to know.
func (s *Space) Reach(to netip.AddrPort) error {
	connection, err := s.Dial(to)
	if err != nil {
		return fmt.Errorf("from %s: %w", s.name, err)
	}
	return connection.Close()
}

// Resolve asks a DNS server by UDP for the address of the Service kubernetes.
func (s *Space) Resolve(server netip.AddrPort) error {
	var connection net.Conn
	err := s.Do(func() (err error) {
		connection, err = dial("udp", server)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return err
	}
	const id = 4242
	if _, err := connection.Write(query(id, "kubernetes.default.svc.cluster.local")); err != nil {
		return err
	}
	answer := make([]byte, 512)
	n, err := connection.Read(answer)
	if err != nil {
		return fmt.Errorf("from %s: %w", s.name, err)
	}
	if n < 12 || binary.BigEndian.Uint16(answer) != id || binary.BigEndian.Uint16(answer[6:]) != 1 {
		return errors.New("the answer has no address")
	}
	return nil
}

// query is a question for an address, type A, by RFC 1035.
func query(id uint16, name string) []byte {
	message := binary.BigEndian.AppendUint16(nil, id)
	message = append(message, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0) // recursion desired, one question
	for label := range strings.SplitSeq(name, ".") {
		message = append(append(message, byte(len(label))), label...)
	}
	return append(message, 0, 0, 1, 0, 1)
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
