// Package fleet knows the agents on other Nodes: their addresses, their answers, and this agent's
// answer to them. It reads the API server.
package fleet

import (
	"cmp"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/taintlet/taintlet/agent/fleet/dnspods"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints/pace"
)

const (
	// MaxPeers is how many peers an agent asks.
	MaxPeers = 12
	// maxDNSPods is how many DNS pods it asks.
	maxDNSPods = 6
	// kubeletPort is open on every Node that has pods.
	kubeletPort = 10250
)

// Options select a fleet.
type Options struct {
	// Node is the name of the own Node, HostIP an address of it; the zero value: not known.
	Node   string
	HostIP netip.Addr
	// Listen is where this agent answers; the zero value: nowhere. On loopback it has no peers.
	Listen netip.AddrPort
	// Namespace and Service of the agents.
	Namespace, Service string
	// DNSPods selects the pods of the cluster's DNS; the zero value: dnspods.Default.
	DNSPods dnspods.Where
	// APIServer is its host and port, as it is configured.
	APIServer string
	// Source reads the API server; nil: there is none.
	Source Source
	Log    *slog.Logger
}

// The lists that are read.
const (
	agentList     = "agents"
	dnsList       = "dns-pods"
	apiServerList = "api-servers"
)

// Fleet is the fleet as one agent knows it.
type Fleet struct {
	options Options

	// reading is held while the API server is asked. It guards the fields down to askDue.
	reading     sync.Mutex
	agents, dns service
	readAt      time.Time
	askPause    time.Duration
	askDue      time.Time

	// dnsAgain and peersAgain say when these lists are read outside of their turn.
	dnsAgain, peersAgain again

	// mu guards all below. Its lists are replaced, never changed.
	mu          sync.Mutex
	isRead      bool                 // the agents, or it was tried at least
	slices      int                  // of the agents
	in          verdict.Surroundings // what is read of it
	zone        string               // of the own Node; empty: not known
	zones       map[string]string    // of the peers, by Node
	agentsAt    map[netip.Addr]bool  // the addresses of all agents whose slices were read
	maintenance []string             // types of Node conditions by which a Node is under maintenance
	unread      map[string]bool      // lists by whether the last try to read them failed
	own         verdict.Answer       // to the peers
	classes     map[verdict.Class]bool
	// heard is what each peer said, and when. rounds counts.
	heard  map[string]heard
	rounds uint64
}

// New returns a fleet that does not know any peer yet. Run reads the API server.
func New(o Options) *Fleet {
	dns := cmp.Or(o.DNSPods, dnspods.Default())
	dnsPorts := []uint16{53, 5353} // the second one is that of OpenShift's pods, which listen without privileges
	f := &Fleet{
		options: o, own: verdict.Answer{Version: verdict.AnswerVersion, Lossy: -1, Reach: -1}, heard: map[string]heard{}, unread: map[string]bool{agentList: false, dnsList: false, apiServerList: false},
		dnsAgain: again{due: make(chan struct{}, 1)}, peersAgain: again{due: make(chan struct{}, 1)},
		agents: service{source: o.Source, namespace: o.Namespace, selectors: []string{dnspods.OfService(o.Service)}, ports: []uint16{o.Listen.Port()}, own: o.Node},
		dns:    service{source: o.Source, namespace: dns.Namespace, selectors: dns.Selectors(), ports: dnsPorts, own: o.Node},
	}
	f.isRead = !f.hasPeers()
	return f
}

// Joiner is a probe whose samples depend on the hosts around its own.
type Joiner interface{ Join(cluster verdict.Cluster) }

var _ verdict.Cluster = (*Fleet)(nil)

// Alone returns a fleet of one agent.
func Alone() *Fleet { return New(Options{}) }

// hasPeers reports whether this agent asks others, and is asked.
func (f *Fleet) hasPeers() bool {
	return f.options.Source != nil && f.options.Listen.IsValid() && !f.options.Listen.Addr().IsLoopback()
}

// Surroundings returns the present knowledge of the cluster around this host.
func (f *Fleet) Surroundings() verdict.Surroundings {
	f.mu.Lock()
	defer f.mu.Unlock()
	in := f.in
	in.Self, in.APIServer = f.selfAddress(), cmp.Or(in.APIServer, f.options.APIServer)
	for _, level := range f.own.Levels {
		in.Troubled = in.Troubled || level >= probes.Degraded
	}
	return in
}

// IsAgent reports whether an agent is known to be at an address. Of a large fleet only some are.
func (f *Fleet) IsAgent(address netip.Addr) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.agentsAt[address]
}

// Crowd is the time in which all agents of the fleet write once; 0: its size is not known.
func (f *Fleet) Crowd() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return pace.Crowd(f.slices)
}

// selfAddress is an address of the own Node at which this agent listens.
func (f *Fleet) selfAddress() netip.AddrPort {
	listen := f.options.Listen
	switch {
	case !listen.IsValid() || listen.Addr().IsLoopback():
		return netip.AddrPort{}
	case !listen.Addr().IsUnspecified():
		return listen
	case f.options.HostIP.IsValid():
		return netip.AddrPortFrom(f.options.HostIP, listen.Port())
	}
	return netip.AddrPort{}
}

// Status has the figures of a fleet for the metrics.
type Status struct {
	// Known peers, and how many of these answered within the last minute.
	Known, Answered int
	// Unread says of each list whether the last try to read it failed. The earlier list then stays
	// in use.
	Unread map[string]bool
	// Classes holds the known classes of network checks; true: healthy.
	Classes map[verdict.Class]bool
}

// Status returns the figures for the metrics. Its classes must not be changed.
func (f *Fleet) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Status{Known: len(f.zones), Answered: f.answeredWithin(freshFor), Unread: maps.Clone(f.unread), Classes: f.classes}
}
