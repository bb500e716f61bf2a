// Package network is the probe of NetworkUnavailable. It samples default routes
// and the carrier of their interfaces.
package network

import (
	"context"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// Probe watches whether the host has a default route, IPv4 or IPv6, over an
// interface with carrier. It reports OK and Degraded, never Critical. No default
// route is Degraded only if there was one since the probe started.
//
// It sees the main routing table of its own network namespace, which must be
// the host's. Of an IPv4 route with several next hops the kernel's file shows
// only the first (fib_route_seq_show in net/ipv4/fib_trie.c).
type Probe struct {
	probes.PeriodOnly

	host probes.Host
	seen bool // there was a default route since the start
	// call reads a sample. It may hang: reading carrier takes the kernel's rtnl
	// lock, which a driver in trouble may hold for long.
	call hostfile.SoleCall[answer]
}

type answer struct {
	sample sample
	err    error
}

var _ probes.Probe = (*Probe)(nil)

// New returns the probe of the host's own network. It reads net/route and
// net/ipv6_route in h.Proc and class/net/<interface>/carrier in h.Sys.
func New(h probes.Host) *Probe { return &Probe{host: h} }

// Condition returns NetworkUnavailable.
func (*Probe) Condition() probes.Condition { return probes.NetworkUnavailable }

// Observe takes a sample of routes and carriers and judges it.
func (p *Probe) Observe(ctx context.Context) probes.Observation {
	p.call.Start(func() answer {
		s, err := readSample(p.host)
		return answer{s, err}
	})
	answer, ok := p.call.Wait(ctx)
	if !ok {
		return probes.UnknownBecause(probes.NetworkUnavailable, probes.Because("NetworkReadBlocked",
			"reading routes and carriers: no answer for %s", p.call.OutFor()))
	}
	if answer.err != nil {
		return probes.UnknownBecause(probes.NetworkUnavailable, answer.err)
	}
	p.seen = p.seen || len(answer.sample.links) > 0
	return answer.sample.judge(p.seen)
}
