// Package ask makes the checks of the network: it queries the kernel, servers and peers. Each class
// has a file. Package verdict evaluates the answers together.
package ask

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

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// Check makes the check of one class. It is called from one goroutine at a time.
type Check interface {
	// Ask returns the result when the context ends, at the latest. One answer may take patience.
	Ask(ctx context.Context, in *verdict.Surroundings, patience time.Duration) verdict.Result
}

// Together calls ask for all of these at the same time, and returns the answers in their order.
func Together[T, A any](all []T, ask func(T) A) []A {
	answers := make([]A, len(all))
	var group sync.WaitGroup
	for i, one := range all {
		group.Go(func() { answers[i] = ask(one) })
	}
	group.Wait()
	return answers
}

// reached remembers the targets ever reached. Another may be closed to us, and says nothing of this host.
type reached map[netip.AddrPort]bool

// keep forgets all others.
func (r reached) keep(targets []netip.AddrPort) {
	maps.DeleteFunc(r, func(target netip.AddrPort, _ bool) bool { return !slices.Contains(targets, target) })
}

// dial makes a new connection with a source port that the kernel chooses. asks: a request follows
// at once. It is then the third packet of the handshake, which saves one (TCP_QUICKACK, tcp(7)).
//
// Closing it sends RST instead of FIN. Each round makes a dozen connections, and
// a FIN would leave each of them for a minute in TIME_WAIT, and for two in the
// connection tracking of every host between.
func dial(ctx context.Context, to netip.AddrPort, asks bool) (*net.TCPConn, error) {
	dialer := net.Dialer{KeepAlive: -1}
	if asks {
		dialer.Control = func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) {
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 0) // without it there is a packet more
			})
		}
	}
	c, err := dialer.DialTCP(ctx, "tcp", netip.AddrPort{}, to)
	if err != nil {
		return nil, err
	}
	if err := c.SetLinger(0); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// knock makes a connection and ends it.
func knock(ctx context.Context, to netip.AddrPort, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := dial(ctx, to, false)
	if err != nil {
		return err
	}
	return c.Close()
}

// isThere reports whether the end of a dial shows that the target's host answered, if by a refusal.
func isThere(err error) bool {
	return err == nil || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
}

// why says in a few words why there was no answer, without the addresses of package net.
func why(err error) string {
	if isTimeout(err) {
		return "no answer in time"
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if text := err.Error(); len(text) > 80 {
		return text[:80] + "..."
	}
	return err.Error()
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// Self is the control probe: a connection to this host's own address, which needs no network. A
// late result therefore shows that this host is slow. It fails where the rule that looks up own
// addresses is lost.
type Self struct {
	// Took is how long the connection of this round took; 0: there was none.
	Took time.Duration
}

// Ask implements Check.
func (s *Self) Ask(ctx context.Context, in *verdict.Surroundings, patience time.Duration) verdict.Result {
	address := in.Self
	if !address.IsValid() {
		return verdict.Result{Detail: "the own address is not known"}
	}
	begin := time.Now()
	err := knock(ctx, address, patience)
	if !isThere(err) {
		return verdict.Result{Outcome: verdict.Failed, Detail: "own address " + address.String() + ": " + why(err)}
	}
	s.Took = time.Since(begin)
	return verdict.Result{Outcome: verdict.Well, Detail: "own address answered in " + s.Took.Round(10*time.Microsecond).String()}
}
