package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

const (
	period = 5 * time.Second
	// K is how many peers a node has.
	K = 12
	// start is when faults begin: every class was well before.
	start = time.Minute
	// patience is how long a round takes in which a check gets no answer. SYN packets
	// leave at 0 and 1 s. A peer's second port is asked after the first, and beside it
	// in the rounds that follow: the first bad round takes longer, and others less.
	patience = 1800 * time.Millisecond
	// fullPatience is how long a round takes in which a full packet is lost.
	fullPatience = time.Second + quick
	quick        = 20 * time.Millisecond
	// asking is how long it takes at most to ask the API server about others.
	asking = time.Second
	// listed is how long the DNS pods of a Node that is not Ready stay in the list
	// of who asks them: it is read again in each round then.
	listed  = 8 * time.Second
	dnsPods = 4
)

var epoch = time.Unix(0, 0) //nolint:gochecknoglobals // a constant

// fleet is a cluster of simulated nodes.
type fleet struct {
	nodes  []*node
	byName map[string]*node
	random *rand.Rand
	// withDNS have a DNS pod.
	withDNS []*node
	// Faults of all.
	split    span // sides do not reach one another
	allCut   span // nobody reaches anybody, nor the API server
	apiDown  span
	dnsDown  span
	noSecond bool // there is no second port to try
	// grace is when the control plane notices a host without power.
	grace time.Duration
}

// newFleet makes nodes in zones. Peers are spread over the zones.
func newFleet(size, zones int, seed uint64) *fleet {
	f := &fleet{grace: 52 * time.Second, random: rand.New(rand.NewPCG(seed, 1)), byName: map[string]*node{}}
	inZone := make([][]int, zones)
	for i := range size {
		n := &node{
			name: fmt.Sprintf("node-%d", i), zone: i % zones, accusedAt: never,
			random: rand.New(rand.NewPCG(seed, uint64(i)+2)), seed: seed<<20 + uint64(i),
		}
		n.startAgent()
		n.debounce.Level = probes.OK
		n.due = time.Duration(n.random.Int64N(int64(period)))
		n.kubelet = time.Duration(n.random.Int64N(int64(leaseRenewal)))
		f.nodes, f.byName[n.name] = append(f.nodes, n), n
		inZone[n.zone] = append(inZone[n.zone], i)
	}
	for _, i := range f.random.Perm(size)[:min(dnsPods, size)] {
		f.withDNS = append(f.withDNS, f.nodes[i])
	}
	for i, n := range f.nodes {
		n.peers = choose(i, inZone, n.random)
	}
	return f
}

// Of how many zones the agent takes how many peers of its own zone first (agent/fleet/choose.go).
const fewZones, neighbours = 4, 5

// choose draws peers for a node: one of each zone in turn, and neighbours first where there
// are few zones.
func choose(self int, inZone [][]int, random *rand.Rand) (peers []int) {
	shuffled := make([][]int, len(inZone))
	for z, all := range inZone {
		shuffled[z] = slices.Clone(all)
		random.Shuffle(len(all), func(i, k int) { shuffled[z][i], shuffled[z][k] = shuffled[z][k], shuffled[z][i] })
	}
	for own := self % len(inZone); len(inZone) > 1 && len(inZone) <= fewZones && len(shuffled[own]) > 0 && len(peers) < neighbours; {
		if i := shuffled[own][0]; i != self {
			peers = append(peers, i)
		}
		shuffled[own] = shuffled[own][1:]
	}
	for left := true; left && len(peers) < K; {
		left = false
		for _, z := range random.Perm(len(shuffled)) {
			for len(shuffled[z]) > 0 && len(peers) < K {
				i := shuffled[z][0]
				shuffled[z], left = shuffled[z][1:], true
				if i != self {
					peers = append(peers, i)
					break
				}
			}
		}
	}
	return peers
}

// run lets the fleet live until a time.
func (f *fleet) run(until time.Duration) {
	c, _ := config.Default().Policy().Condition(probes.NetworkUnavailable)
	debounce := c.Debounce
	queue := slices.Clone(f.nodes)
	for {
		slices.SortFunc(queue, func(a, b *node) int { return int(a.due - b.due) })
		// No round begins another within a second: whoever is due in this one runs in order.
		horizon := queue[0].due + time.Second
		if queue[0].due >= until {
			return
		}
		for _, n := range queue {
			if n.due >= horizon {
				break
			}
			f.round(n, debounce)
		}
	}
}

// round lets a node make a round.
func (f *fleet) round(n *node, debounce decide.Debounce) {
	t := n.due
	if n.dead.has(t) {
		n.startAgent()
		n.due += period
		return
	}
	r, took := f.look(n, t)
	v := n.judge.Next(r)
	done := t + took
	if v.Ask == nil && len(v.Leases) > 0 && f.reachesAPI(n, done) {
		r.Standings = f.leases(v.Leases, done)
		n.judge.Answered(r)
		done += quick
	}
	if len(v.Ask) > 0 && f.reachesAPI(n, done) {
		r.Standings = f.standings(v.Ask, done)
		done += time.Duration(n.random.Int64N(int64(asking)))
		v = n.judge.Answered(r)
	}
	if r.Outcome(verdict.API) == verdict.Well {
		n.publish(v.Observation, done)
	}
	n.results = r.Results
	n.alert = v.Observation.Level != probes.OK || v.Observation.Hysteresis
	if n.calm++; n.alert {
		n.calm = 0
	}
	n.decide(v.Observation, debounce, done)
	n.answers = push(n.answers, shown{at: done, answer: v.Own})
	n.due = max(done+time.Second/2, t+n.interval(v.Observation, t))
}

// look is a round's checks, and how long they took.
func (f *fleet) look(n *node, t time.Duration) (verdict.Round, time.Duration) {
	r := verdict.Round{At: epoch.Add(t), Results: map[verdict.Class]verdict.Result{}}
	took := quick
	note := func(c verdict.Class, well bool) {
		switch {
		case well:
			n.seen[c] = true
			r.Results[c] = verdict.Result{Outcome: verdict.Well}
		case n.seen[c]:
			r.Results[c] = verdict.Result{Outcome: verdict.Failed}
			took = patience
		}
	}
	note(verdict.Route, true)
	note(verdict.Self, true)
	note(verdict.API, f.reachesAPI(n, t))
	if !n.daemonless.has(t) {
		note(verdict.Local, !n.local.has(t))
	}
	if pods := f.reachedPods(n, t); len(pods) > 0 {
		note(verdict.Pods, slices.Contains(slices.Collect(maps.Values(pods)), true))
		result := r.Results[verdict.Pods]
		result.Pods = pods
		r.Results[verdict.Pods] = result
	}
	note(verdict.DNS, f.reachesDNS(n, t))
	for c := range r.Results {
		if c.IsLeftOut(n.calm) {
			r.Results[c] = n.results[c]
		}
	}
	var all, lost bool
	if r.Peers, all, lost = f.askPeers(n, t); lost {
		took = max(took, fullPatience)
	}
	if !all {
		took = patience
	}
	return r, took
}

// askPeers asks those peers whose turn it is, and all when one has news, as the
// probe's class does. all: all were reached. lost: a full packet was lost.
func (f *fleet) askPeers(n *node, t time.Duration) (results []verdict.PeerResult, all, lost bool) {
	var peers []verdict.Peer
	for _, i := range n.peers {
		if f.ready(f.nodes[i], t) {
			peers = append(peers, verdict.Peer{Node: f.nodes[i].name})
		}
	}
	all = true
	now, rest := n.turns.Choose(peers, n.alert || n.debounce.Level > probes.OK)
	for asked := 0; asked < len(now); asked++ {
		result := f.connect(n, f.byName[now[asked].Node], t)
		if result.Answer != nil && n.turns.IsFull(now[asked]) {
			f.exchangeFull(n, f.byName[now[asked].Node], t, &result)
			lost = lost || result.Full == verdict.Lost
		}
		if n.turns.HasChanged(now[asked], result) {
			now, rest = slices.Concat(now, rest), nil
		}
		n.turns.Take(now[asked], result)
		all = all && result.Reached
	}
	return n.turns.Results(peers), all, lost
}

// ready reports whether a Node is Ready. The control plane notices after 50 s,
// or up to 5 s more, at its defaults.
func (f *fleet) ready(n *node, t time.Duration) bool {
	return !n.dead.has(t) || t < n.dead.since(t)+f.grace
}

// renewed is when a kubelet renewed its Lease: every 10 s, unless the host has no
// power or does not reach the API server.
func (f *fleet) renewed(n *node, t time.Duration) time.Duration {
	at := t - (t+n.kubelet)%leaseRenewal
	for ; at > 0 && (n.dead.has(at) || n.api.has(at) || f.apiDown.has(at) || f.allCut.has(at)); at -= leaseRenewal {
	}
	return at
}

// leaseRenewal is how often a kubelet renews its Lease, at its latest.
const leaseRenewal = 10400 * time.Millisecond

// leases answers what is noted, as agent/fleet does.
func (f *fleet) leases(names []string, t time.Duration) (all []verdict.Standing) {
	for _, name := range names {
		all = append(all, verdict.Standing{Node: name, Renewed: epoch.Add(f.renewed(f.byName[name], t))})
	}
	return all
}

// standings answers what was asked, as agent/fleet does.
func (f *fleet) standings(names []string, t time.Duration) []verdict.Standing {
	all := []verdict.Standing{}
	for _, name := range names {
		other := f.byName[name]
		s := verdict.Standing{Node: name, Suspects: other.forges || latest(other.conditions, t).suspects}
		switch {
		case !f.ready(other, t):
			s.Excuse = "is not ready"
		case other.cordoned && !s.Suspects:
			s.Excuse = verdict.Cordoned
		}
		if !s.Suspects {
			s.Renewed = epoch.Add(f.renewed(other, t))
		}
		all = append(all, s)
	}
	return all
}
