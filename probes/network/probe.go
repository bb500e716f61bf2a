// Package network is the probe of NetworkUnavailable. Once in a period it asks
// the classes of a round, each in a file of its own. Package verdict says what they
// found means.
package network

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// Probe asks what the host's network does. It sees its own network namespace,
// which must be the host's. It reports OK and Degraded, never Critical.
type Probe struct {
	probes.PeriodOnly

	period time.Duration
	clock  clock
	// at is when the round before began, slept for how long the host had slept by then.
	at    time.Time
	slept time.Duration

	cluster Cluster // nil: nothing is known of other hosts
	report  func(map[verdict.Class]verdict.Result)

	checks []check
	api    *apiCheck // nil: off
	self   *selfCheck
	peers  *peersCheck

	// patience is how long one answer may take on a host that is in time.
	patience time.Duration
	// was has the classes that were Well since the start.
	was map[verdict.Class]bool
	// late is by how much the round before was late. It widens the deadlines.
	late time.Duration
	// apiResult is what the API server's class found most recently, and apiDue when
	// it is asked again although nothing fails.
	apiResult verdict.Result
	apiDue    time.Time
	judge     judge
	// suspicious: the verdict before was not quite OK.
	suspicious bool
	// calm counts the rounds since anything was not well. results are those of the
	// newest round.
	calm     int
	results  map[verdict.Class]verdict.Result
	measures []probes.Measure // of the newest round
}

// judge is a *Judge. Tests of rounds have one that only keeps what it is given.
type judge interface {
	Next(round verdict.Round) verdict.Verdict
	Answered(round verdict.Round) verdict.Verdict
	Answer() verdict.Answer
}

// Options are what a Probe needs besides the host.
type Options struct {
	// Period is the longest time between two rounds.
	Period time.Duration
	// Cluster is what is known of the other hosts. Without it only the classes
	// that need none work: route, local, dns and conntrack.
	Cluster Cluster
	// Disabled classes are not asked.
	Disabled []verdict.Class
	// Report takes the results of each round; nil: nobody is told.
	Report func(map[verdict.Class]verdict.Result)
}

var _ probes.Measurer = (*Probe)(nil)

// New returns the probe of the host's own network. It reads
// class/net/<interface>/carrier in h.Sys, net/stat/nf_conntrack in h.Proc, and
// its own /etc/resolv.conf.
func New(h probes.Host, o Options) *Probe {
	p := &Probe{period: o.Period, clock: hostClock, cluster: o.Cluster, report: o.Report, was: map[verdict.Class]bool{}, patience: patience}
	p.judge = verdict.NewJudge(o.Period, rand.Uint64()) //nolint:gosec // not a secret
	apiServer := func() string { return "" }
	all := []check{newLocalCheck(), &dnsCheck{path: "/etc/resolv.conf", seen: reached[netip.AddrPort]{}}, &conntrackCheck{host: h}}
	if o.Cluster != nil {
		apiServer = o.Cluster.APIServer
		p.api = &apiCheck{server: apiServer}
		p.self = &selfCheck{address: o.Cluster.SelfAddress}
		p.peers = &peersCheck{peers: o.Cluster.Peers, turns: verdict.NewTurns(o.Period)}
		all = append(all, p.self, p.peers, &podsCheck{pods: o.Cluster.DNSPods, seen: reached[netip.AddrPort]{}})
	}
	all = append(all, newRouteCheck(h, apiServer))
	for _, c := range all {
		if !slices.Contains(o.Disabled, c.class()) {
			p.checks = append(p.checks, c)
		}
	}
	if slices.Contains(o.Disabled, verdict.API) {
		p.api = nil
	}
	return p
}

// Condition returns NetworkUnavailable.
func (*Probe) Condition() probes.Condition { return verdict.Condition }

// Observe runs a round and judges it.
func (p *Probe) Observe(ctx context.Context) probes.Observation {
	began := time.Now()
	round := p.round(ctx)
	ended := ctx.Err() != nil // the agent ends, or stood still: what failed is no evidence
	round.Late = round.Late || ended
	verdict := p.consult(ctx, &round, p.judge.Next(round))
	if due := &verdict.Observation.Due; !due.IsZero() {
		*due = began.Add(due.Sub(round.At)) // of the clock by which the agent waits
	}
	p.measures = verdict.Measures
	p.suspicious = isSuspicious(verdict.Observation)
	p.results = round.Results
	if p.calm++; p.suspicious {
		p.calm = 0
	}
	if !ended {
		p.tell(&round)
	}
	return verdict.Observation
}

// isSuspicious reports whether a verdict asks for more than quiet rounds. Peers that
// were never reached may stay so for good.
func isSuspicious(o probes.Observation) bool {
	return (o.Level != probes.OK || o.Hysteresis) && o.Reason != verdict.ReasonPeersNeverReached
}

// Patience with the API server. To note takes less of it: only then does this host
// tell the others that it suspects itself.
const (
	notePatience    = time.Second
	consultPatience = 2 * time.Second
)

// consult asks the API server what the verdict needs, and returns the verdict that
// follows from the answer. What cannot be noted makes the host wait longer.
func (p *Probe) consult(ctx context.Context, round *verdict.Round, verdict verdict.Verdict) verdict.Verdict {
	if p.cluster == nil {
		return verdict
	}
	if len(verdict.Note) > 0 {
		ctx, cancel := context.WithTimeout(ctx, notePatience)
		defer cancel()
		_ = p.cluster.Note(ctx, verdict.Note)
	}
	if len(verdict.Ask) > 0 {
		ctx, cancel := context.WithTimeout(ctx, consultPatience)
		defer cancel()
		if standings, err := p.cluster.Standings(ctx, verdict.Ask); err == nil && standings != nil {
			round.Standings = standings
			return p.judge.Answered(*round)
		}
	}
	return verdict
}

// tell passes on what a round found.
func (p *Probe) tell(round *verdict.Round) {
	if p.report != nil {
		p.report(round.Results)
	}
	if p.cluster == nil {
		return
	}
	p.cluster.Heard(p.peers.said())
	p.cluster.Says(p.judge.Answer())
}

// Measures appends what the newest round showed of the peers.
func (p *Probe) Measures(all []probes.Measure) []probes.Measure { return append(all, p.measures...) }
