package probes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Network watches whether the host has a default route, IPv4 or IPv6, over an
// interface with carrier. It knows OK and Degraded. A host that never had a
// default route since the probe started is not accused of having none.
//
// It sees the main routing table of its own network namespace, which must be
// the host's. Of an IPv4 route with several next hops the kernel's file shows
// the first only (fib_route_seq_show in net/ipv4/fib_trie.c).
type Network struct {
	periodOnly

	host Host
	seen bool // there was a default route since the start
	// look is guarded because reading carrier takes the kernel's rtnl lock,
	// which a driver in trouble may hold for long.
	look soleCall[networkAnswer]
}

type networkAnswer struct {
	sample networkSample
	err    error
}

var _ Probe = (*Network)(nil)

// NewNetwork returns the probe of the host's own network. It reads net/route
// and net/ipv6_route in h.Proc and class/net/<interface>/carrier in h.Sys.
func NewNetwork(h Host) *Network { return &Network{host: h} }

// Condition is NetworkUnavailable.
func (*Network) Condition() Condition { return NetworkUnavailable }

// Observe reads routes and carriers and judges them.
func (n *Network) Observe(ctx context.Context) Observation {
	n.look.start(func() networkAnswer {
		sample, err := readNetwork(n.host)
		return networkAnswer{sample, err}
	})
	answer, ok := n.look.wait(ctx)
	if !ok {
		return unknownBecause(NetworkUnavailable, because("NetworkReadBlocked",
			"reading routes and carriers: no answer for %s", n.look.outFor()))
	}
	if answer.err != nil {
		return unknownBecause(NetworkUnavailable, answer.err)
	}
	n.seen = n.seen || len(answer.sample.links) > 0
	return answer.sample.judge(n.seen)
}

// networkSample is what one look at the network found: the interfaces that
// carry a default route, by name.
type networkSample struct{ links []link }

// link is an interface and whether it has carrier; err is why that is not
// known.
type link struct {
	name    string
	carrier bool
	err     error
}

// judge says what a sample means; seen: this or an earlier look found a
// default route. One interface with carrier is enough. Severity is 100 without
// any, else 50 times the share of interfaces without.
func (s networkSample) judge(seen bool) Observation {
	o := Observation{Condition: NetworkUnavailable, Level: OK}
	up, down, troubles := s.sorted()
	switch {
	case len(s.links) == 0 && !seen:
		// Neither good nor bad news: the probe may have been started after the
		// route was lost. Hysteresis keeps what is.
		o.Hysteresis, o.Reason = true, "NoDefaultRouteSeen"
		o.Message = "no default route, and none seen since the start: taken for how this host is meant to be"
	case len(s.links) == 0:
		o.Level, o.Severity, o.Reason = Degraded, 100, "DefaultRouteGone"
		o.Message = "no default route left, IPv4 or IPv6; there was one before"
	case len(up) == 0 && len(troubles) > 0:
		return unknownBecause(NetworkUnavailable, troubles[0])
	case len(up) == 0:
		o.Level, o.Severity, o.Reason = Degraded, 100, "NoCarrier"
		o.Message = "no carrier on " + strings.Join(down, ", ") + ", and no default route over another interface"
	case len(down) > 0:
		o.Severity, o.Reason = 50*len(down)/len(s.links), "SomeCarrierLost"
		o.Message = "default route over " + strings.Join(up, ", ") + " with carrier; no carrier on " + strings.Join(down, ", ")
	default:
		o.Reason, o.Message = "DefaultRouteUp", "default route over "+strings.Join(up, ", ")+" with carrier"
	}
	return o
}

// sorted sorts the links into those with carrier, those without, and why it is
// not known of the others.
func (s networkSample) sorted() (up, down []string, troubles []error) {
	for _, l := range s.links {
		switch {
		case l.err != nil:
			troubles = append(troubles, l.err)
		case l.carrier:
			up = append(up, l.name)
		default:
			down = append(down, l.name)
		}
	}
	return up, down, troubles
}

// readNetwork finds the interfaces that carry a default route, and their
// carriers.
func readNetwork(h Host) (s networkSample, err error) {
	names, err := readRoutes(filepath.Join(h.Proc, "net", "route"), "Route", parseRoutes)
	if err != nil {
		return s, err
	}
	names6, err := readRoutes(filepath.Join(h.Proc, "net", "ipv6_route"), "IPv6Route", parseIPv6Routes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the kernel may have no IPv6
		return s, err
	}
	names = append(names, names6...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		carrier, err := readCarrier(filepath.Join(h.Sys, "class", "net", name, "carrier"))
		s.links = append(s.links, link{name, carrier, err})
	}
	return s, nil
}

// readCarrier reads whether an interface has carrier
// (Documentation/ABI/testing/sysfs-class-net). The kernel answers EINVAL for an
// interface that is down.
func readCarrier(path string) (bool, error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, syscall.EINVAL):
		return false, nil
	case err != nil:
		return false, because("CarrierUnreadable", "reading carrier: %w", err)
	case string(text) == "1\n":
		return true, nil
	case string(text) == "0\n":
		return false, nil
	}
	return false, because("CarrierGarbled", "reading carrier: %s holds %s, not 0 or 1", path, excerpt(string(text)))
}

// excerpt quotes the start of a text that was not understood.
func excerpt(text string) string { return fmt.Sprintf("%.40q", text) }
