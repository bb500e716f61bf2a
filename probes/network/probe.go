// Package network is the probe of NetworkUnavailable.
package network

import (
	"context"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// Probe watches whether the host has a default route, IPv4 or IPv6, over an
// interface with carrier. It knows OK and Degraded. A host that never had a
// default route since the probe started is not accused of having none.
//
// It sees the main routing table of its own network namespace, which must be
// the host's. Of an IPv4 route with several next hops the kernel's file shows
// the first only (fib_route_seq_show in net/ipv4/fib_trie.c).
type Probe struct {
	probes.PeriodOnly

	host probes.Host
	seen bool // there was a default route since the start
	// call is guarded because reading carrier takes the kernel's rtnl lock,
	// which a driver in trouble may hold for long.
	call hostfile.SoleCall[answer]
}

type answer struct {
	sample sample
	err    error
}

// New returns the probe of the host's own network. It reads net/route
// and net/ipv6_route in h.Proc and class/net/<interface>/carrier in h.Sys.
func New(h probes.Host) *Probe { return &Probe{host: h} }

// Condition is NetworkUnavailable.
func (*Probe) Condition() probes.Condition { return probes.NetworkUnavailable }

// Observe reads routes and carriers and judges them.
func (n *Probe) Observe(ctx context.Context) probes.Observation {
	n.call.Start(func() answer {
		sample, err := readSample(n.host)
		return answer{sample, err}
	})
	answer, ok := n.call.Wait(ctx)
	if !ok {
		return probes.UnknownBecause(probes.NetworkUnavailable, probes.Because("NetworkReadBlocked",
			"reading routes and carriers: no answer for %s", n.call.OutFor()))
	}
	if answer.err != nil {
		return probes.UnknownBecause(probes.NetworkUnavailable, answer.err)
	}
	n.seen = n.seen || len(answer.sample.links) > 0
	return answer.sample.judge(n.seen)
}
