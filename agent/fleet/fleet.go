// Package fleet is what an agent knows of the agents on other Nodes: where they
// are, what they answered, and what it answers them. It reads the API server.
package fleet

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/fleet/dnspods"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

const (
	// MaxPeers is how many peers an agent asks.
	MaxPeers = 12
	// maxDNSPods is how many DNS pods it asks.
	maxDNSPods = 6
	// kubeletPort is open on every Node that has pods.
	kubeletPort = 10250

	// refreshEvery is how often EndpointSlices are read, ±10 %; those of the agents of a
	// large fleet less often (turn.go). While fewer than
	// enough peers are known, as when the fleet has just been installed, they are
	// read after refreshSoonest and then after twice the time before.
	refreshEvery   = 10 * time.Minute
	refreshSoonest = 30 * time.Second
	enough         = 5
	// requestTimeout bounds one refresh.
	requestTimeout = 10 * time.Second
)

// Options say where a fleet is.
type Options struct {
	// Node is the name of the own Node, HostIP an address of it; the zero value:
	// not known.
	Node   string
	HostIP netip.Addr
	// Listen is where this agent answers; the zero value: nowhere. On loopback
	// nobody hears it, and it has no peers.
	Listen netip.AddrPort
	// Namespace and Service of the agents.
	Namespace, Service string
	// DNSPods says where the pods of the cluster's DNS are; the zero value:
	// dnspods.Default.
	DNSPods dnspods.Where
	// APIServer is its URL, or host and port, as it is configured.
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

// agentPort is the name of the agents' port in their Service.
const agentPort = "metrics"

// dnsPort is where DNS pods are asked: at the port of DNS, or that of OpenShift's pods,
// which listen without privileges. The chart of CoreDNS, which RKE2 uses, names it
// tcp-53.
func dnsPort() port { return port{"dns-tcp", []uint16{53, 5353}} }

// Fleet is the fleet as one agent knows it.
type Fleet struct {
	options Options

	// reading is held while the API server is asked. It guards the Services, when the
	// agents were read, and when Standings may ask.
	reading     sync.Mutex
	agents, dns service
	readAt      time.Time
	turn        int // refreshes since the agents were read
	asking      asking

	// mu guards what was found. Its lists are replaced, never changed.
	mu             sync.Mutex
	isRead         bool // the agents, or it was tried at least
	slices         int  // of the agents
	peers          []verdict.Peer
	agentsAt       map[netip.Addr]bool // the addresses of all agents whose slices were read
	dnsPods        []netip.AddrPort
	otherAPIServer string // empty: the configured one
	noted          map[string]noted
	unread         map[string]bool // lists by whether the last try to read them failed

	dnsAgain, peersAgain again

	talk talk
}

// New returns a fleet that knows nobody yet. Run reads the API server.
func New(o Options) *Fleet {
	f := &Fleet{
		options: o, noted: map[string]noted{}, unread: map[string]bool{agentList: false, dnsList: false, apiServerList: false},
		dnsAgain: newAgain(), peersAgain: newAgain(),
	}
	f.talk.heard = map[string]heard{}
	f.talk.own = verdict.Answer{Version: verdict.AnswerVersion, Lossy: -1, Reach: -1}
	f.agents = service{source: o.Source, namespace: o.Namespace, selectors: []string{dnspods.OfService(o.Service)}, port: port{agentPort, []uint16{o.Listen.Port()}}, own: o.Node}
	dns := cmp.Or(o.DNSPods, dnspods.Default())
	f.dns = service{source: o.Source, namespace: dns.Namespace, selectors: dns.Selectors(), port: dnsPort(), own: o.Node}
	f.isRead = !f.hasPeers()
	return f
}

// Alone returns a fleet of one agent.
func Alone() *Fleet { return New(Options{}) }

// hasPeers reports whether this agent asks others, and is asked.
func (f *Fleet) hasPeers() bool {
	return f.options.Source != nil && f.options.Listen.IsValid() && !f.options.Listen.Addr().IsLoopback()
}

// Run keeps the lists of peers and DNS pods up to date until the context ends.
// What cannot be read stays as it was.
func (f *Fleet) Run(ctx context.Context) error {
	pause := refreshSoonest
	for f.options.Source != nil {
		err := f.refresh(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			f.options.Log.Warn("cannot read where the other agents and the DNS pods are; what is known of them stays", "error", err)
		}
		if err == nil && (!f.hasPeers() || len(f.Surroundings().Peers) >= enough) {
			pause = refreshEvery
		}
		if err := f.pause(ctx, jittered(pause)); err != nil {
			return err
		}
		pause = min(2*pause, refreshEvery)
	}
	<-ctx.Done()
	return ctx.Err()
}

// pause waits, and meanwhile reads where the DNS pods and the peers are as often as
// they fail.
func (f *Fleet) pause(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case <-f.dnsAgain.due:
			if err := f.reread(ctx, f.readDNS); err != nil {
				f.options.Log.Warn("cannot read where the DNS pods are; what is known of them stays", "error", err)
			}
		case <-f.peersAgain.due:
			if err := f.reread(ctx, f.freshPeers); err != nil {
				f.options.Log.Warn("cannot read where the other agents are; what is known of them stays", "error", err)
			}
		}
	}
}

func jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64())) //nolint:gosec // not a secret
}

// refresh reads everything.
func (f *Fleet) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	f.reading.Lock()
	defer f.reading.Unlock()
	var errs [3]error
	if f.hasPeers() && f.isAgentsTurn() {
		errs[0] = f.refreshPeers(ctx)
	}
	errs[1] = f.readDNS(ctx)
	errs[2] = f.tried(apiServerList, f.refreshAPIServer(ctx))
	return errors.Join(errs[:]...)
}

// tried keeps whether a list could be read, for metrics, and returns its error.
func (f *Fleet) tried(list string, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if failed := err != nil; f.unread[list] != failed {
		f.unread = maps.Clone(f.unread)
		f.unread[list] = failed
	}
	return err
}

// refreshPeers reads where the agents are and chooses those to ask.
func (f *Fleet) refreshPeers(ctx context.Context) error {
	err := f.tried(agentList, f.agents.refresh(ctx))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isRead = true
	if err != nil {
		return err
	}
	f.readAt, f.turn, f.slices, f.peers = time.Now(), 0, f.agents.count, nil
	agents := f.agents.endpoints()
	f.agentsAt = make(map[netip.Addr]bool, len(agents))
	for _, e := range agents {
		f.agentsAt[e.address.Addr()] = true
	}
	for _, e := range choose(f.options.Node, agents, MaxPeers) {
		f.peers = append(f.peers, verdict.Peer{Node: e.node, Address: e.address, Other: kubeletPort})
	}
	return nil
}

// readDNS reads where the DNS pods are and chooses those to ask.
func (f *Fleet) readDNS(ctx context.Context) error {
	err := f.tried(dnsList, f.dns.refresh(ctx))
	if err == nil {
		f.setDNSPods(choose(f.options.Node, f.dns.endpoints(), maxDNSPods))
	}
	return err
}

func (f *Fleet) setDNSPods(chosen []endpoint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dnsPods = nil
	for _, e := range chosen {
		f.dnsPods = append(f.dnsPods, e.address)
	}
}

// refreshAPIServer finds, on a Node with an API server, the one of another Node:
// the own one says nothing of the network.
func (f *Fleet) refreshAPIServer(ctx context.Context) error {
	if !f.options.HostIP.IsValid() {
		return nil
	}
	// The API servers keep this EndpointSlice themselves, under this name.
	slice, err := f.options.Source.GetSlice(ctx, metav1.NamespaceDefault, "kubernetes")
	if apierrors.IsNotFound(err) {
		return nil // some providers have none
	}
	if err != nil {
		return err
	}
	var others []string
	isHere := false
	port := port{name: "https"}.of(slice)
	for _, e := range slice.Endpoints {
		for _, text := range e.Addresses {
			address := addressIn(slice, text)
			if !address.IsValid() || port == 0 {
				continue
			}
			if address == f.options.HostIP || isOwn(netip.AddrPortFrom(address, port)) {
				isHere = true
				continue
			}
			others = append(others, netip.AddrPortFrom(address, port).String())
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.otherAPIServer = ""
	if isHere && len(others) > 0 {
		f.otherAPIServer = first(f.options.Node, others, 1)[0]
	}
	return nil
}

// Surroundings returns what is known now of the cluster around this host.
func (f *Fleet) Surroundings() verdict.Surroundings {
	isTroubled := f.isTroubled()
	f.mu.Lock()
	defer f.mu.Unlock()
	return verdict.Surroundings{
		Peers: f.peers, DNSPods: f.dnsPods, Self: f.selfAddress(), APIServer: f.apiServer(), Troubled: isTroubled,
	}
}

// IsAgent reports whether an agent of the fleet is known to be at an address. Of a
// large fleet only some are known.
func (f *Fleet) IsAgent(address netip.Addr) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.agentsAt[address]
}

// Slices returns how many EndpointSlices the agents have, and so the size of the
// fleet in hundreds; 0: not known.
func (f *Fleet) Slices() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.slices
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

// apiServer is the host and port of an API server, on another Node where there is
// a choice. The caller holds the lock.
func (f *Fleet) apiServer() string {
	if f.otherAPIServer != "" {
		return f.otherAPIServer
	}
	return hostAndPort(f.options.APIServer)
}

// hostAndPort returns those of a URL, or of a host and port.
func hostAndPort(address string) string {
	if !strings.Contains(address, "://") {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return ""
		}
		return address
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return ""
	}
	if parsed.Port() != "" {
		return parsed.Host
	}
	port := "443"
	if parsed.Scheme == "http" {
		port = "80"
	}
	return net.JoinHostPort(parsed.Hostname(), port)
}
