package ask

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// thisHost is the host that the tests run on.
var thisHost = probes.Host{Root: "/", Proc: "/proc", Sys: "/sys"}

const (
	testPeriod = 5 * time.Second
	patience   = 1500 * time.Millisecond // as a round has it
)

func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestReachedForgetsOthers(t *testing.T) {
	t.Parallel()
	a, b, c := netip.MustParseAddrPort("10.0.0.1:53"), netip.MustParseAddrPort("10.0.0.2:53"), netip.MustParseAddrPort("10.0.0.3:53")
	r := reached{a: true, b: true}
	r.keep([]netip.AddrPort{b, c})
	if len(r) != 1 || !r[b] {
		t.Errorf("%v", r)
	}
}

func TestWhoRefusesIsThere(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err   error
		there bool
		why   string
	}{
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, true, "connection refused"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNRESET)}, true, "connection reset by peer"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}, false, "no route to host"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ETIMEDOUT)}, false, "no answer in time"},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, false, "no answer in time"},
		{context.DeadlineExceeded, false, "no answer in time"},
		{errors.New(strings.Repeat("x", 90)), false, strings.Repeat("x", 80) + "..."},
	} {
		if isThere(test.err) != test.there || why(test.err) != test.why {
			t.Errorf("%v: there %t, %q", test.err, isThere(test.err), why(test.err))
		}
	}
	if !isThere(nil) {
		t.Error("a connection is no sign of life")
	}
}

func TestPodsJudge(t *testing.T) {
	t.Parallel()
	a, b := netip.MustParseAddrPort("10.1.0.1:53"), netip.MustParseAddrPort("10.2.0.1:53")
	late := os.ErrDeadlineExceeded
	p := &Pods{seen: reached{}}
	for _, step := range []struct {
		name   string
		errs   []error
		want   verdict.Outcome
		detail string
		pods   map[netip.AddrPort]bool
	}{
		{"none at first", []error{late, late}, verdict.NotKnown, "was ever reached", nil},
		{"one", []error{late, nil}, verdict.Well, "reached 1 of 2 DNS pods", map[netip.AddrPort]bool{b: true}},
		{"none", []error{late, late}, verdict.Failed, "no DNS pod on another Node reached: 10.2.0.1:53: no answer in time", map[netip.AddrPort]bool{b: false}},
		{"one refuses", []error{syscall.ECONNREFUSED, late}, verdict.NotKnown, "1 of 2 DNS pods on other Nodes refuse", nil},
		{"both refuse", []error{syscall.ECONNREFUSED, syscall.ECONNRESET}, verdict.NotKnown, "2 of 2 DNS pods on other Nodes refuse, and none answers", nil},
		{"one refuses and one answers", []error{nil, syscall.ECONNREFUSED}, verdict.Well, "reached 1 of 2", map[netip.AddrPort]bool{a: true}},
		{"none of both", []error{late, late}, verdict.Failed, "10.1.0.1:53: no answer in time; 10.2.0.1:53", map[netip.AddrPort]bool{a: false, b: false}},
	} {
		got := p.evaluate([]netip.AddrPort{a, b}, step.errs)
		if got.Outcome != step.want || !strings.Contains(got.Detail, step.detail) || !maps.Equal(got.Pods, step.pods) {
			t.Errorf("%s: %+v, want %v with %q", step.name, got, step.want, step.detail)
		}
	}
	if got := p.evaluate(nil, nil); got.Outcome != verdict.NotKnown {
		t.Errorf("no pods: %+v", got)
	}
}

// A few pods are asked: those that were reached before, then any.
func TestPodsAreChosen(t *testing.T) {
	t.Parallel()
	var all []netip.AddrPort
	for i := range 10 {
		all = append(all, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 53))
	}
	p := &Pods{seen: reached{all[3]: true, all[7]: true}}
	others := map[netip.AddrPort]bool{}
	for range 200 {
		got := p.choose(all, podsAtOnce)
		if len(got) != podsAtOnce || !p.seen[got[0]] || !p.seen[got[1]] || got[0] == got[1] {
			t.Fatalf("chosen %v", got)
		}
		others[got[2]] = true
	}
	if len(others) != len(all)-2 {
		t.Errorf("only %d of the other pods are ever asked", len(others))
	}
	if got := p.choose(all[:1], podsAtOnce); len(got) != 1 {
		t.Errorf("chosen of one: %v", got)
	}
}

func TestSelfIsRefused(t *testing.T) {
	t.Parallel()
	address := closedPort(t)
	s, in := &Self{Took: time.Hour}, verdict.Surroundings{Self: address}
	if got := s.Ask(t.Context(), &in, time.Second); got.Outcome != verdict.Well || s.Took > time.Minute {
		t.Errorf("%+v after %v", got, s.Took)
	}
	in.Self = netip.AddrPort{}
	if got := s.Ask(t.Context(), &in, time.Second); got.Outcome != verdict.NotKnown {
		t.Errorf("no address: %+v", got)
	}
}
