package main

import (
	"net/netip"
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// The model of the network: packets between two nodes are lost one by one, or
// all of them.

// passes reports whether a packet of a gets to b and its answer back.
func (f *fleet) passes(a, b *node, t time.Duration) bool {
	return !a.loses(a, t) && !b.loses(a, t)
}

// loses reports whether a packet of a, or the answer to it, is lost at n.
func (n *node) loses(a *node, t time.Duration) bool {
	return n.lossy.has(t) && (a.random.Float64() < n.loss || !n.oneWay && a.random.Float64() < n.loss)
}

// isCut reports whether nothing passes between two nodes.
func (f *fleet) isCut(a, b *node, t time.Duration) bool {
	return a.cut.has(t) || b.cut.has(t) || b.dead.has(t) || f.allCut.has(t) || f.split.has(t) && a.side != b.side
}

// connect is a connection from a to b with a request on it.
func (f *fleet) connect(a, b *node, t time.Duration) (p verdict.PeerResult) {
	p = verdict.PeerResult{Node: b.name, OtherKnown: a.secondPorts[b.name]}
	if f.isCut(a, b, t) {
		return p
	}
	if a.out.has(t) || b.in.has(t) {
		p.ReachedOther = !f.noSecond
		return p
	}
	defer func() { // the second port is asked once, when the first one is reached
		if p.Reached && !f.noSecond {
			a.secondPorts[b.name], p.OtherKnown = true, true
		}
	}()
	for try := range 2 { // at 0 and 1 s
		if p.Reached = f.passes(a, b, t); p.Reached {
			p.Retransmits = try
			break
		}
	}
	if !p.Reached {
		return p
	}
	for range 3 { // after 0.2, 0.6 and 1.4 s
		if f.passes(a, b, t) {
			answer := latest(b.answers, t).answer
			if answer.Version != 0 {
				p.Answer = &answer
			}
			break
		}
		p.Retransmits++
	}
	return p
}

// exchangeFull exchanges full packets between two nodes.
func (f *fleet) exchangeFull(a, b *node, t time.Duration, p *verdict.PeerResult) {
	p.Full, p.FullNow, p.FullBytes = verdict.Passed, true, 1448
	if a.hole.has(t) || b.hole.has(t) {
		p.Full = verdict.Lost
	}
}

// reachesAPI reports whether a node makes a connection to the API server: three
// exchanges.
func (f *fleet) reachesAPI(n *node, t time.Duration) bool {
	if n.api.has(t) || f.apiDown.has(t) || f.allCut.has(t) {
		return false
	}
	if !n.lossy.has(t) || !n.apiLoss {
		return true
	}
	for range 3 {
		lost := 0
		for lost < 3 && n.loses(n, t) {
			lost++
		}
		if lost == 3 {
			return false
		}
	}
	return true
}

// reachedPods are the DNS pods on other nodes that a node asks, and whether they
// answer through the overlay. Those of a Node that is not Ready are listed no more.
func (f *fleet) reachedPods(n *node, t time.Duration) map[netip.AddrPort]bool {
	pods := map[netip.AddrPort]bool{}
	for i, other := range f.withDNS {
		if other != n && f.ready(other, t-listed) {
			pods[netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, byte(i), 2}), 53)] = f.crosses(n, other, t, 2)
		}
	}
	return pods
}

// reachesDNS reports whether a query is answered, by the pod that the Service
// chooses, or by another at the second try.
func (f *fleet) reachesDNS(n *node, t time.Duration) bool {
	if f.dnsDown.has(t) || n.dns.has(t) {
		return false
	}
	for range 2 {
		if f.crosses(n, f.withDNS[n.random.IntN(len(f.withDNS))], t, 1) {
			return true
		}
	}
	return false
}

// crosses reports whether a packet crosses the overlay and comes back.
func (f *fleet) crosses(n, other *node, t time.Duration, tries int) bool {
	if n == other {
		return true
	}
	if n.vxlan.has(t) || other.vxlan.has(t) || f.isCut(n, other, t) {
		return false
	}
	for range tries {
		if f.passes(n, other, t) {
			return true
		}
	}
	return false
}
