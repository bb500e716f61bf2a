package network

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/probetest"
)

var update = flag.Bool("update", false, "write what the probe says into testdata/messages.golden")

// Every row of the verdict's table says what it says in the words of the checks, and
// so does every other way to come to a row.
func TestMessages(t *testing.T) { //nolint:paralleltest // it may write its file
	var said []probes.Observation
	for _, row := range rows() {
		s := newScript()
		s.play(1)
		said = append(said, examples()[row.reason](s))
	}
	after := func(rounds int, changes ...change) probes.Observation {
		s := newScript()
		s.play(1)
		return s.play(rounds, changes...)
	}
	route := func(ways ...way) change { return told(Route, routeTold(ways)) }
	alone := newScript()
	alone.size = 0
	said = append(said,
		after(1, route(way{target: outside, lost: "no route to 192.0.2.1 (network is unreachable), no route to 2001:db8::1 (network is unreachable)"})),
		after(1, route(carrierOf(t, "up\n"))), after(1, route(carrierOf(t, ""))), after(1, route(way{target: outside, err: fmt.Errorf("asking the kernel for routes: %w", syscall.EPERM)})),
		after(13, onlyPod(12, 4)), after(13, onlyPod(12, 6)), after(1, onlyPod(12, 4)),
		after(1, told(Pods, podsTold(false))), alone.play(1, closedTo(12)), after(63, closedTo(4)),
		after(1, told(Conntrack, dropped())), after(1, reachOnly(6)),
		after(7, told(DNS, dnsTold(true)), class(API, Failed, "")), after(21, told(Local, Result{Outcome: Failed, Detail: localFails}), late),
		alone.play(1), alone.play(7, told(DNS, dnsTold(true))),
	)
	back := newScript()
	back.play(2, told(DNS, dnsTold(true)))
	said = append(said, back.play(1, told(DNS, Result{Outcome: Well, Detail: "10.96.0.10 answered"})))
	probetest.Golden(t, *update, said...)
}

// told makes a class have the result of its check.
func told(c Class, result Result) change { return func(r *Round) { r.Results[c] = result } }

// localFails is what the check of the daemons says of one that is not well.
const localFails = "kube-proxy on port 10256: /livez: status 503"

// routeTold is what the check says of these ways, after a default route was there once.
func routeTold(ways []way) Result {
	r := newRouteCheck(thisHost, nowhere)
	r.judge([]way{{target: outside, by: "eth0"}})
	return r.judge(ways)
}

// carrierOf is the way over an interface whose file has that text; empty: it cannot be
// read.
func carrierOf(t *testing.T, text string) way {
	t.Helper()
	const path = "sys/class/net/eth0/carrier"
	h := probetest.CopyOfHealthy(t)
	if probetest.Write(t, h, path, text); text == "" {
		probetest.Block(t, h, path)
	}
	_, err := readCarrier(h, "eth0")
	if err == nil {
		t.Fatalf("carrier %q is read", text)
	}
	return way{target: outside, err: pathless{err, h.Root}}
}

// pathless is an error that names files as on a host.
type pathless struct {
	error
	root string
}

func (e pathless) Error() string { return strings.ReplaceAll(e.error.Error(), e.root, "") }

// noCarrier is what the kernel's answers come to on a host whose only interface is down.
const noCarrier = "no carrier on eth0, the way to 192.0.2.1, no carrier on eth0, the way to 2001:db8::1"

func dropped() Result { return (&conntrackCheck{known: true}).judge(812) }

// dnsTold is what the check says of a nameserver that does not answer, and did once.
func dnsTold(once bool) Result {
	server := netip.MustParseAddrPort("10.96.0.10:53")
	d := &dnsCheck{seen: reached[netip.AddrPort]{server: once}}
	return d.judge([]netip.AddrPort{server}, []error{context.DeadlineExceeded})
}

// podsTold is the same of two pods.
func podsTold(once bool) Result {
	pods := []netip.AddrPort{netip.MustParseAddrPort("10.244.3.2:53"), netip.MustParseAddrPort("10.244.7.5:53")}
	p := &podsCheck{seen: reached[netip.AddrPort]{pods[0]: once, pods[1]: once}}
	return p.judge(pods, []error{context.DeadlineExceeded, syscall.EHOSTUNREACH})
}
