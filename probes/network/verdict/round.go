package verdict

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// PeerResult is the result of one peer in one round.
type PeerResult struct {
	// Node is the name of the peer's Node.
	Node string
	// Reached: a connection was made or refused, unless nearly all refuse at both ports.
	Reached bool
	// Refused: no connection was made. OtherOpen: one was made to the second port, now or before.
	Refused, OtherOpen bool
	// ReachedOther: the peer's second port was reached. It is tried only when the first was not.
	// OtherKnown: it has been reached since this peer was chosen. If it does not answer now, more
	// than our port is blocked.
	ReachedOther, OtherKnown bool
	// Retransmits is how many segments of this connection were sent again
	// (tcpi_total_retrans in struct tcp_info, include/uapi/linux/tcp.h).
	Retransmits int
	// Answer is the peer's answer; nil: there was no readable answer.
	Answer *Answer
	// Hangs: a connection was made, and no answer came over it in time.
	Hangs bool
	// Full is the result of the newest exchange of full packets. FullNow: it took place in this
	// round, with FullBytes.
	Full      Passage
	FullNow   bool
	FullBytes int
	// Also is the result by the address of the other family; nil: the Node has none, or was never
	// reached there.
	Also *PeerResult
	// Carried: the peer was not asked in this round, and this is its newest result.
	Carried bool
}

// Round has the results of one round.
type Round struct {
	// At is when the round began, by CLOCK_BOOTTIME.
	At time.Time
	// Late: the ticker or the control probe came late. Failures on such a slow host are not
	// evidence.
	Late bool
	// Results of the classes that are on; a class that is missing is NotKnown.
	Results map[Class]Result
	// Peers are the results of those that count, from this round or before. NeverReached is how
	// many others were chosen and never reached.
	Peers        []PeerResult
	NeverReached int
	// Standings are those that the verdict of this round requested; nil: none were requested, or
	// there was no answer.
	Standings []Standing
}

// Outcome returns the result of a class.
func (r *Round) Outcome(c Class) Outcome { return r.Results[c].Outcome }

// Known returns the classes whose health is known: the compared classes as the peers read them, the
// other classes as in this round.
func (r *Round) Known(own *Answer) map[Class]bool {
	known := make(map[Class]bool, len(r.Results))
	maps.Copy(known, own.Classes)
	for c, result := range r.Results {
		if _, compared := known[c]; !compared && result.Outcome != NotKnown {
			known[c] = result.Outcome == Well
		}
	}
	return known
}

// Of the peers that count, at most a fifth reached makes a host suspect itself, and at least four
// fifths is well. What lies between says nothing of this host: the others may be in trouble.
const (
	fewestPeers = 2
	lowPercent  = 20
	wellPercent = 80
)

// HasFailure reports whether a check failed in this round. A few peers without an answer prove
// nothing about this host, and can stay in the list for long.
func (r *Round) HasFailure() bool {
	for _, result := range r.Results {
		if result.Outcome == Failed {
			return true
		}
	}
	n := reachOf(r.Peers)
	return !n.isMost() || n.hung > 0
}

// anyOfRoutes reports whether something holds of a class whose packets go by the host's routes.
func (r *Round) anyOfRoutes(holds func(Result) bool) bool {
	return slices.ContainsFunc([]Class{API, Pods, DNS, Peers}, func(c Class) bool { return holds(r.Results[c]) })
}

// isThere reports whether the peer's host answered at any port.
func (p *PeerResult) isThere() bool { return p.Reached || p.ReachedOther }

// isFew and isMost compare the peers that are so with all of them.
func isFew(n, all int) bool  { return 100*n <= lowPercent*all }
func isMost(n, all int) bool { return 100*n >= wellPercent*all }

// count returns how many peers are so.
func count(peers []PeerResult, is func(*PeerResult) bool) (n int) {
	for i := range peers {
		if is(&peers[i]) {
			n++
		}
	}
	return n
}

// Passage is how an exchange of full packets with a peer ended.
type Passage int8

const (
	// NotTried says that no exchange was made, or that the peer's agent does not support it.
	NotTried Passage = iota
	// Passed says that a full packet got there and a full one came back.
	Passed
	// Lost says that no full packet came back, although an exchange of small packets with the same
	// peer worked.
	Lost
)

// Class names one kind of check. A round asks all classes at the same time.
type Class string

// The classes, in the order in which they are shown.
const (
	Route     Class = "route"     // the kernel has a route, and its interface has carrier
	Self      Class = "self"      // control probe: the Node's own address answers in time
	API       Class = "api"       // a new connection to the API server
	Local     Class = "local"     // the Node's network daemons, on loopback
	Pods      Class = "pods"      // pods on other Nodes, through the overlay
	DNS       Class = "dns"       // the nameservers of the pod's resolv.conf
	Peers     Class = "peers"     // agents on other Nodes: reach and loss
	Conntrack Class = "conntrack" // packets that the connection table dropped
)

// Classes returns all classes.
func Classes() []Class {
	return []Class{Route, Self, API, Local, Pods, DNS, Peers, Conntrack}
}

// Outcome is the result of a class in one round.
type Outcome int8

const (
	// NotKnown says that the class is off, has nothing to check, got no clear result, or was never
	// Well.
	NotKnown Outcome = iota
	// Well says that the check passed.
	Well
	// Failed says that the check passed before and does not now.
	Failed
)

// Result is that of one class in one round.
type Result struct {
	Outcome Outcome
	// Detail describes the check and its result in a few words, for messages.
	Detail string
	// Never goes with NotKnown only. The check fails and was never Well since the start: either
	// that is intended, such as a closed port, or the fault is older than the agent. A restart of
	// the agent must not clear the taint of such a host.
	Never bool
	// Pods are the queried DNS pods that were reached at some time; true: it was reached now. Only
	// class Pods has them.
	Pods map[netip.AddrPort]bool
	// Elsewhere: the API server answers at its own address, not at the configured one. Only class API has it.
	Elsewhere bool
	// IsSure: the failure needs no second fact. There is no carrier, the routes to two targets are
	// gone, or packets were dropped. Only classes Route and Conntrack have it; Route with NotKnown
	// where carrier was never seen.
	IsSure bool
}
