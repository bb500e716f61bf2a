package ask

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// longestAnswer is how many bytes of an answer are read, with its head.
const longestAnswer = 4 << 10

// reply is what came of a GET.
type reply struct {
	status int
	body   []byte
	// connected: there was a connection, and retransmits counts the segments of
	// it that were sent again.
	connected   bool
	retransmits int
}

// get asks for a path over a new connection. It follows no redirect, and returns
// what it saw of the connection with an error too.
//
// package net/http is used for the bytes only: its client hides the connection.
func get(ctx context.Context, from netip.AddrPort, path, header string) (r reply, err error) {
	c, err := dial(ctx, from)
	if err != nil {
		return r, err
	}
	defer c.Close() //nolint:errcheck // everything was read
	r.connected = true
	defer func() { r.retransmits = sentAgain(c) }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return r, err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, from, header); err != nil {
		return r, err
	}
	answer, err := http.ReadResponse(bufio.NewReaderSize(io.LimitReader(c, longestAnswer), 1<<10), nil)
	if err != nil {
		return r, err
	}
	defer answer.Body.Close() //nolint:errcheck // read to its end
	r.status = answer.StatusCode
	r.body, err = io.ReadAll(answer.Body)
	return r, err
}

// sentAgain returns how many segments of a connection were sent again, its SYN
// included (tcpi_total_retrans in struct tcp_info, include/uapi/linux/tcp.h).
func sentAgain(c *net.TCPConn) (n int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = int(info.Total_retrans)
		}
	})
	return n
}
