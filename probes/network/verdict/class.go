package verdict

import "net/netip"

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

// Outcome is what a class found in one round.
type Outcome int8

const (
	// NotKnown says that the class is off, has nothing to ask, could not tell, or
	// was never Well since the probe started. It is neither good nor bad.
	NotKnown Outcome = iota
	// Well says that the check passed.
	Well
	// Failed says that the check passed before and does not now.
	Failed
)

// String returns the word for people.
func (o Outcome) String() string {
	switch o {
	case Well:
		return "well"
	case Failed:
		return "failed"
	default:
		return "not known"
	}
}

// Result is what one class found in one round.
type Result struct {
	Outcome Outcome
	// Detail says in a few words what was asked and what came, for people.
	Detail string
	// Pods has the DNS pods that were asked, of those that were reached since the
	// start: true, it was reached now. Only class Pods has them.
	Pods map[netip.AddrPort]bool
	// Never goes with NotKnown only. The check fails and was never Well since the
	// start: it may be meant so, such as a closed port, or the fault is older than
	// the agent. A restart of the agent must not clear the taint of such a host.
	Never bool
	// IsError: no nameserver gives an answer, and one answers with an error, such as
	// SERVFAIL. Only class DNS has it.
	IsError bool
}
