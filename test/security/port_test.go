package security

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func portAttacks() []attack {
	return []attack{{
		name: "connections to the HTTP port", guarded: true,
		what: "idle connections, unfinished and slow headers, answers that nobody reads, pipelined requests, long URLs, wrong methods and TLS, from 32 addresses at a time",
		run:  attackPort,
	}}
}

const (
	attackers = 32 // source addresses
	// maxOpenFiles is far above what the agent needs, and far below what the
	// connections of an attack would be without a bound.
	maxOpenFiles = 128
)

// attackPort makes connections of all forms, as many at a time as it can.
func attackPort(t *testing.T, c *scene) (attempts, denied int) {
	var group sync.WaitGroup
	var next, served, mostFiles atomic.Int64
	all, atOnce := int64(shortOr(1000, 10_000)), shortOr(1000, 2000)
	forms := hostileForms()
	for range atOnce {
		group.Go(func() {
			for i := next.Add(1); i <= all; i = next.Add(1) {
				source := net.IPv4(127, 0, 0, byte(2+i%attackers))
				if connect(c.address, source, forms[int(i)%len(forms)]) {
					served.Add(1)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			if most := mostFiles.Load(); most > maxOpenFiles {
				t.Errorf("the agent had %d open files", most)
			}
			t.Logf("%d of %d connections were served, at most %d files were open", served.Load(), all, mostFiles.Load())
			return int(all), int(all - served.Load())
		case <-tick.C:
			files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.attacked.Process.PID()))
			if err != nil {
				t.Error(err)
			}
			mostFiles.Store(max(mostFiles.Load(), int64(len(files))))
		}
	}
}

// hostileForms are what is done with a connection. None waits for long: the agent
// has to end it by itself, or has done so.
func hostileForms() []func(net.Conn) {
	const metrics = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
	send := func(text string) func(net.Conn) {
		return func(conn net.Conn) { io.WriteString(conn, text) } //nolint:errcheck // the agent may have closed it
	}
	return []func(net.Conn){
		func(net.Conn) {}, // idle
		send("GET /metrics HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 64<<10)), // unfinished
		send("GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: a\r\n\r\n"),
		send("GET /metrics?" + strings.Repeat("a=b&", 10_000) + " HTTP/1.1\r\nHost: a\r\n\r\n"),
		send(strings.Repeat("GET /metrics HTTP/1.1\r\nHost: a\r\n"+strings.Repeat("X: y\r\n", 100)+"\r\n", 100)), // pipelined
		send(strings.Repeat(metrics, 2000)),                                                                      // pipelined, and nobody reads
		send("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n" + strings.Repeat("x", 64<<10)),
		send("POST /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n" + strings.Repeat("x", 64<<10)),
		send("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00\xff", 300)), // TLS
		send(strings.Repeat("\x00", 64<<10)),
		send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\x00\x00\x00\x04\x00\x00\x00\x00\x00", 1000)),
		send("DELETE /readyz HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n"),
		send("GET /debug/pprof/heap HTTP/1.1\r\nHost: a\r\n\r\n"),
		func(conn net.Conn) { // slowly, a header at a time
			io.WriteString(conn, "GET /healthz HTTP/1.1\r\n") //nolint:errcheck // see above
			for i := range 10 {
				if _, err := fmt.Fprintf(conn, "X-%d: y\r\n", i); err != nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		},
	}
}

// connect opens a connection from a source, does something with it and holds it.
// It reports whether the agent answered a request of it with success.
func connect(address string, source net.IP, form func(net.Conn)) (served bool) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: source}, Timeout: 5 * time.Second}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()                                 //nolint:errcheck // nobody is left to be told
	conn.(*net.TCPConn).SetReadBuffer(4096)            //nolint:errcheck // a small window fills soon
	conn.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // a connection that is there takes it
	form(conn)
	hold := time.NewTimer(time.Second) // the answer is not read for so long
	defer hold.Stop()
	if isClosed(conn) {
		return false
	}
	<-hold.C
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return false
	}
	defer answer.Body.Close() //nolint:errcheck // only the status matters
	return answer.StatusCode == http.StatusOK
}

// isClosed reports whether the other side has closed a connection from which
// nothing was read.
func isClosed(conn net.Conn) bool {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return true
	}
	time.Sleep(50 * time.Millisecond) // a connection that is refused is closed by then
	closed := false
	if err := raw.Read(func(fd uintptr) bool {
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		closed = n == 0 && err == nil || err != nil && !errors.Is(err, syscall.EAGAIN)
		return true
	}); err != nil {
		return true
	}
	return closed
}
