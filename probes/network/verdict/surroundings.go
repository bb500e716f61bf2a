package verdict

import (
	"context"
	"net/netip"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// Peer is an agent on another Node, at one of its addresses. A Node with both families is two Peers.
type Peer struct {
	Node string
	// Address and port where the agent answers /peer.
	Address netip.AddrPort
	// Other is a second port of the same host, such as the kubelet's; 0: none.
	Other uint16
}

// Nodes returns how many Nodes these peers are on. The peers of one Node follow one another.
func Nodes(peers []Peer) (n int) {
	for i := range peers {
		if !isSecond(peers, i) {
			n++
		}
	}
	return n
}

// isSecond reports whether a peer is the Node of the one before, by its other family.
func isSecond(peers []Peer, i int) bool {
	return i > 0 && peers[i].Node == peers[i-1].Node && peers[i].Address.Addr().Is4() != peers[i-1].Address.Addr().Is4()
}

// Surroundings are the facts that a round needs about the cluster around its host: a snapshot that
// never changes.
type Surroundings struct {
	// Peers are the agents on other Nodes that this one asks.
	Peers []Peer
	// DNSPods are the DNS pods on other Nodes.
	DNSPods []netip.AddrPort
	// Self is an address of the own Node at which this agent listens; the zero value: not known.
	Self netip.AddrPort
	// APIServer is the host and port of an API server, on another Node if possible; empty: not known.
	APIServer string
	// APIServers are the own addresses of those on other Nodes, asked while APIServer does not answer.
	APIServers []netip.AddrPort
	// Troubled: a condition of this host is bad, or would be without the fleet brake. The brake
	// then needs the answers of all peers.
	Troubled bool
	// Suspected: this host suspected itself when the agent before this one ended.
	Suspected bool
}

// Cluster is the knowledge of a host about the other hosts.
type Cluster interface {
	Surroundings() Surroundings
	// Consult takes in a verdict, and returns the Standings that it requests; nil: there are none.
	Consult(context.Context, *Verdict) []Standing
}

// Standing is the state that a Node reports of itself in the API server.
type Standing struct {
	Node string
	// Excuse says in a few words why the Node does not count; empty: it counts. A Node does not
	// count if it is not ready or about to be removed, or if it is Cordoned or Maintained.
	Excuse string
	// Renewed is when the Node's Lease was renewed, by the Node's clock; the zero value: not known
	// or not read. A Node without power is Ready for most of a minute.
	Renewed time.Time
	// Suspects: its agent reports that it suspects itself, or that its network is Degraded.
	Suspects bool
}

// Excuses of Nodes whose Leases are read. A Cordoned Node is about to be drained and its host switched
// off, and a Maintained one is being drained or repaired.
const (
	Cordoned   = "is cordoned"
	Maintained = "is under maintenance"
)

// Answer is what an agent answers to GET /peer, as JSON. Fields are only ever
// added within a version.
type Answer struct {
	Version int `json:"version"`
	// Classes holds the known classes by name; true: healthy.
	Classes map[Class]bool `json:"classes,omitempty"`
	// Full counts the agent's successful exchanges of full packets since its start: a change means that
	// one succeeded. -1: full packets to many peers are lost. 0: not known.
	Full int `json:"full,omitempty"`
	// Pods are the DNS pods queried in the agent's newest round that it had reached before; true:
	// it reached this one.
	Pods map[netip.AddrPort]bool `json:"pods,omitempty"`
	// Lossy is the share of connections with retransmits over the last 30 s, or of the newest if that is more, in
	// percent, -1 when too few were made.
	Lossy int `json:"lossy"`
	// Reach is the share of its peers reached in its newest round, in percent; -1: it asks fewer than two.
	Reach int `json:"reach"`
	// Levels are the decided levels, by condition.
	Levels map[probes.Condition]probes.Level `json:"levels,omitempty"`
	// Maintenance: the agent's Node is under maintenance. Its report can prevent taints of other
	// hosts, and never cause one.
	Maintenance bool `json:"maintenance,omitempty"`
}

// AnswerVersion is the version of Answer that this agent writes. Other versions are not read.
const AnswerVersion = 1

// PaddingHeader asks for an answer as long as the request to /peer. Older agents ignore it.
const PaddingHeader = "Padding"

// LongestPadded is the largest size of a padded request and of its answer, in bytes. Where packets
// hold more (jumbo frames), these packets are not full. They still find most holes there, because
// such a path mostly loses packets above the usual 1,500 bytes.
const LongestPadded = 4000
