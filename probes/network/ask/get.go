package ask

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// longestAnswer is how many bytes of an answer are read, with its head.
const longestAnswer = 4 << 10

// reply is what came of a GET.
type reply struct {
	status int
	body   []byte
	bytes  int // with the head
	// connected: there was a connection, and retransmits counts the segments of
	// it that were sent again.
	connected   bool
	retransmits int
}

// get asks for a path over a new connection. With an error, r still describes the connection.
func get(ctx context.Context, from netip.AddrPort, path, header string) (r reply, err error) {
	c, err := dial(ctx, from, true)
	if err != nil {
		return r, err
	}
	return exchange(ctx, c, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, from, header))
}

// exchange sends a request over a connection, reads the answer and closes the connection.
//
// package net/http is used for the bytes only: its client hides the connection.
func exchange(ctx context.Context, c *net.TCPConn, request string) (r reply, err error) {
	defer c.Close() //nolint:errcheck // everything was read
	r.connected = true
	defer func() { r.retransmits = int(infoOf(c).Total_retrans) }() // its SYN included
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(c, request); err != nil {
		return r, err
	}
	bounded := &io.LimitedReader{R: c, N: longestAnswer}
	answer, err := http.ReadResponse(bufio.NewReaderSize(bounded, 1<<10), nil)
	if err != nil {
		return r, err
	}
	defer answer.Body.Close() //nolint:errcheck // read to its end
	r.status = answer.StatusCode
	r.body, err = io.ReadAll(answer.Body)
	r.bytes = longestAnswer - int(bounded.N)
	return r, err
}

// infoOf returns what the kernel knows of a connection (struct tcp_info in
// include/uapi/linux/tcp.h); the zero value: nothing.
func infoOf(c *net.TCPConn) (info unix.TCPInfo) {
	raw, err := c.SyscallConn()
	if err != nil {
		return info
	}
	_ = raw.Control(func(fd uintptr) {
		if found, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			info = *found
		}
	})
	return info
}

// answer returns what a peer said; nil: nothing that can be read.
func (r *reply) answer() *verdict.Answer {
	if r.status != http.StatusOK {
		return nil
	}
	return parseAnswer(r.body)
}

// parseAnswer reads what a peer said; nil: another version, or impossible values.
func parseAnswer(body []byte) *verdict.Answer {
	var a verdict.Answer
	if json.Unmarshal(body, &a) != nil || a.Version != verdict.AnswerVersion || a.Lossy < -1 || a.Lossy > 100 {
		return nil
	}
	return &a
}
