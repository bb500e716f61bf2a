package fleet

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints/pace"
)

const (
	// requestTimeout bounds one reading.
	requestTimeout = 10 * time.Second
	// rereadAfter is how old the list of agents may be when freshPeers does not read it.
	rereadAfter = 10 * time.Second
)

// Run keeps the lists up to date until the context ends, and reads some sooner (see again). A slice
// that cannot be read stays as it was.
func (f *Fleet) Run(ctx context.Context) error {
	if f.options.Source == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	due, pause := time.NewTimer(0), refreshSoonest
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-due.C:
			err := f.read(ctx, "the other agents and the DNS pods", f.refresh)
			if err == nil && (!f.hasPeers() || f.Status().Known >= enough) {
				pause = refreshEvery
			}
			due.Reset(pace.Jittered(pause))
			pause = min(2*pause, refreshEvery)
		case <-f.dnsAgain.due:
			_ = f.read(ctx, "the DNS pods", f.readDNS)
		case <-f.peersAgain.due:
			_ = f.read(ctx, "the other agents", f.freshPeers)
		}
	}
}

// read asks the API server where these are. A failure is logged, unless it is the end of the agent.
func (f *Fleet) read(ctx context.Context, these string, ask func(context.Context) error) error {
	asking, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	f.reading.Lock()
	err := ask(asking)
	f.reading.Unlock()
	if err != nil && ctx.Err() == nil {
		f.options.Log.Warn("cannot read the addresses of "+these+"; the earlier list stays in use", "error", err)
	}
	return err
}

// refresh reads everything within one deadline, first the endpoints of the API server: they are the
// only way to it when the default route is lost. The caller holds reading.
func (f *Fleet) refresh(ctx context.Context) error {
	err := f.tried(apiServerList, f.refreshAPIServer(ctx))
	known := f.Status()
	isTurn := time.Since(f.readAt) >= refreshEvery*time.Duration(turnsBetween(f.agents.count))-refreshEvery/2
	if f.hasPeers() && (isTurn || known.Known < enough || known.Answered < known.Known) {
		err = errors.Join(err, f.refreshPeers(ctx))
	}
	return errors.Join(err, f.readDNS(ctx))
}

// tried keeps whether a list could be read, for metrics, and returns its error.
func (f *Fleet) tried(list string, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unread[list] = err != nil
	return err
}

// refreshPeers reads where the agents are and chooses those to ask. The caller holds reading.
func (f *Fleet) refreshPeers(ctx context.Context) error {
	err := f.tried(agentList, f.agents.refresh(ctx))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isRead = true
	if err != nil {
		return err
	}
	f.readAt, f.slices = time.Now(), f.agents.count
	f.takePeers()
	return nil
}

// takePeers chooses the peers among the agents that were read. The caller holds the lock.
func (f *Fleet) takePeers() {
	agents := f.agents.endpoints()
	f.in.Peers, f.zones, f.agentsAt = nil, map[string]string{}, map[netip.Addr]bool{}
	for _, e := range agents {
		f.agentsAt[e.address.Addr()] = true
	}
	for _, e := range choose(f.options.Node, f.zone, agents, MaxPeers) {
		f.zones[e.node] = e.zone
		f.in.Peers = append(f.in.Peers, verdict.Peer{Node: e.node, Address: e.address, Other: kubeletPort})
		if e.second.IsValid() {
			f.in.Peers = append(f.in.Peers, verdict.Peer{Node: e.node, Address: e.second, Other: kubeletPort})
		}
	}
}

// freshPeers is refreshPeers, unless that was done a moment ago. The caller holds reading.
func (f *Fleet) freshPeers(ctx context.Context) error {
	if time.Since(f.readAt) <= rereadAfter {
		return nil
	}
	return f.refreshPeers(ctx)
}

// readDNS reads where the DNS pods are and chooses those to ask.
func (f *Fleet) readDNS(ctx context.Context) error {
	if err := f.tried(dnsList, f.dns.refresh(ctx)); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.in.DNSPods = nil
	for _, e := range choose(f.options.Node, "", f.dns.endpoints(), maxDNSPods) {
		f.in.DNSPods = append(f.in.DNSPods, e.address)
	}
	return nil
}

// maxAPIServers is how many endpoints of the API server are kept.
const maxAPIServers = 3

// refreshAPIServer finds the endpoints of the API server. The own one says nothing of the network.
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
	var own []netip.AddrPort // at most one
	port := portOf(slice, nil)
	for _, e := range slice.Endpoints {
		for _, text := range e.Addresses {
			address := netip.AddrPortFrom(addressIn(slice, text), port)
			switch {
			case !address.IsValid() || port == 0:
			case address.Addr() == f.options.HostIP || isOwn(address):
				own = []netip.AddrPort{address}
			default:
				others = append(others, address.String())
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.in.APIServer, f.in.APIServers = "", nil
	for _, other := range first(f.options.Node, others, maxAPIServers) {
		f.in.APIServers = append(f.in.APIServers, netip.MustParseAddrPort(other))
	}
	if len(own) > 0 && len(f.in.APIServers) > 0 {
		f.in.APIServer = f.in.APIServers[0].String()
	}
	f.options.Source.SetEndpoints(append(own, f.in.APIServers...))
	return nil
}

const (
	// refreshEvery is how often EndpointSlices are read, ±10 %; those of the agents of a
	// large fleet less often (turnsBetween). While fewer than enough peers are known, as
	// when the fleet has just been installed, they are read after refreshSoonest and then
	// after twice the time before.
	refreshEvery   = 10 * time.Minute
	refreshSoonest = 30 * time.Second
	enough         = 5

	// slicesAtATime is up to how many EndpointSlices their metadata is read with each refresh. There is one
	// for each 100 agents, so that the answers to all agents grow with the square of the fleet.
	slicesAtATime = 10
	// mostTurns is in how many refreshes the metadata is read at least once: one hour.
	// An old list makes no agent taint its Node, and is read sooner when a peer is gone.
	// But no new Node, and none of a new zone, becomes a peer before the list is read.
	mostTurns = 6
)

// turnsBetween returns in how many refreshes the metadata of that many slices is read once.
func turnsBetween(slices int) int {
	return min(max(1, (slices+slicesAtATime/2)/slicesAtATime), mostTurns)
}

const (
	// dnsAgainAfter is how long the DNS pods must fail before their list is read
	// again. Those of a host without power stay in it for 55 s, and the probe reports
	// this host as failing after 60 s. The list is read in each round between, and
	// dnsAgainMost times at most: a longer failure is decided by then.
	dnsAgainAfter = 30 * time.Second
	dnsAgainMost  = 10

	// missedAfter is after how long without an answer a peer is missing: all are asked
	// within 20 s. At most fewMissing percent may be: with more the verdict on the
	// network says nothing of this host.
	missedAfter = 30 * time.Second
	fewMissing  = 20
	// peersAgainEach is the time between two readings of the list while peers are missing. Those of
	// a host without power stay in the list for 50 s, up to 55 s. From the fifth on, which such a
	// host does not need, the time doubles each time up to refreshEvery. A second for each slice is
	// added, at random: when a zone of a large fleet is gone, most of the others read.
	peersAgainEach = 15 * time.Second
	peersAgainSoon = 4
)

// again says when a list is read while its members fail. The lock of the Fleet guards all fields but due.
type again struct {
	due   chan struct{}
	next  time.Time // when the list is due next; zero: its members do not fail
	count int       // how often it was due since they began to fail
}

// observe takes in whether the members fail. wait is the pause before the list is due once more.
func (a *again) observe(fail bool, now time.Time, wait func(count int) time.Duration) {
	switch {
	case !fail:
		a.next, a.count = time.Time{}, 0
	case a.next.IsZero():
		a.next = now.Add(wait(0))
	case !now.Before(a.next) && len(a.due) == 0: // it is not due already
		a.due <- struct{}{}
		a.count++
		a.next = now.Add(wait(a.count))
	}
}

// dnsWait is the pause before the list of the DNS pods is due.
func dnsWait(count int) time.Duration {
	switch {
	case count == 0:
		return dnsAgainAfter
	case count < dnsAgainMost:
		return 0
	}
	return math.MaxInt64
}

// peersWait is the pause before the list of the agents is due, which has that many slices.
func (f *Fleet) peersWait(count int) time.Duration {
	wait := min(peersAgainEach<<min(max(0, count-peersAgainSoon), 10), refreshEvery)
	return wait + pace.UpTo(pace.Crowd(max(1, f.slices)))
}
