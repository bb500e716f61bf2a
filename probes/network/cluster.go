package network

import (
	"context"
	"net/netip"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// Cluster is what the probe knows of the cluster around its host. All methods
// may be called from several goroutines and return at once, but for Note and Standings.
type Cluster interface {
	// Peers returns the agents on other Nodes that this one asks.
	Peers() []verdict.Peer
	// DNSPods returns the DNS pods on other Nodes.
	DNSPods() []netip.AddrPort
	// SelfAddress is an address of the own Node at which this agent listens; the
	// zero value: not known.
	SelfAddress() netip.AddrPort
	// APIServer is the host and port of an API server, on another Node where
	// there is a choice; empty: not known.
	APIServer() string
	// Note reads when the Nodes' Leases were renewed, so that Standings can tell
	// later which have been renewed since.
	Note(ctx context.Context, nodes []string) error
	// Standings asks the API server what the Nodes say of themselves.
	Standings(ctx context.Context, nodes []string) ([]verdict.Standing, error)
	// IsTroubled reports whether a condition of this host is bad, or would be but for
	// the fleet brake. The brake then needs the word of all peers.
	IsTroubled() bool
	// Heard takes what the peers answered in one round, by Node.
	Heard(answers map[string]verdict.Answer)
	// Says takes what this host is to answer its peers about the classes.
	Says(own verdict.Answer)
}
