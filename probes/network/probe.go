// Package network is the probe of NetworkUnavailable. Once in a period it runs the checks of a
// round, one file for each class. Package verdict judges their results.
package network

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/ask"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// Probe checks the host's network. It runs in its own network namespace, which must be the host's.
// It reports OK and Degraded, never Critical.
type Probe struct {
	probes.PeriodOnly

	clock  clock
	period time.Duration
	checks map[verdict.Class]ask.Check // those that are on
	// self and peers are among them, unless they are off. The round reads more of them.
	self      *ask.Self
	peers     *ask.Peers
	evaluator evaluator
	cluster   verdict.Cluster

	// patience is how long one answer may take, and late by how much the round before was late: that much more.
	patience, late time.Duration
	// newest is the newest round, begun after slept of sleep.
	newest verdict.Round
	slept  time.Duration
	// was holds the classes that were Well at least once since the start.
	was map[verdict.Class]bool
	// apiDue is when the API server is asked again although nothing fails.
	apiDue time.Time
	// suspicious: the newest verdict was not quite OK. calm counts the rounds since one was not.
	suspicious bool
	calm       int
	// measures are the quantities behind the newest verdict.
	measures []probes.Measure
}

// evaluator is a *verdict.Evaluator. Tests of rounds have an evaluator that keeps the newest round.
type evaluator interface {
	Next(round verdict.Round) verdict.Verdict
	Answered(round verdict.Round) verdict.Verdict
}

var _ probes.Measurer = (*Probe)(nil)

// New returns the probe of the host's own network. It reads class/net/<interface>/carrier in h.Sys,
// net/stat/nf_conntrack in h.Proc, and its own /etc/resolv.conf. period is the longest time between
// two rounds; disabled classes are not asked.
func New(h probes.Host, period time.Duration, disabled ...verdict.Class) *Probe {
	self, peers := &ask.Self{}, ask.NewPeers(period)
	p := &Probe{
		clock: hostClock, period: period, self: self, peers: peers, patience: patience, cluster: alone{}, was: map[verdict.Class]bool{},
		checks: map[verdict.Class]ask.Check{
			verdict.Route: ask.NewRoute(h), verdict.Self: self, verdict.API: &ask.API{}, verdict.Local: ask.NewLocal(), verdict.Pods: ask.NewPods(),
			verdict.DNS: ask.NewDNS("/etc/resolv.conf"), verdict.Peers: peers, verdict.Conntrack: ask.NewConntrack(h),
		},
		evaluator: verdict.NewEvaluator(period, rand.Uint64()), //nolint:gosec // not a secret
	}
	for _, class := range disabled {
		delete(p.checks, class)
	}
	return p
}

// Condition returns NetworkUnavailable.
func (*Probe) Condition() probes.Condition { return verdict.Condition }

// Join has the probe know the hosts around its own. Without it, only the host is known.
func (p *Probe) Join(cluster verdict.Cluster) { p.cluster = cluster }

// alone is a host of which no others are known.
type alone struct{}

func (alone) Surroundings() verdict.Surroundings                           { return verdict.Surroundings{} }
func (alone) Consult(context.Context, *verdict.Verdict) []verdict.Standing { return nil }

// Observe runs a round and evaluates it. If the cluster has Standings for its verdict, it is evaluated
// with them. The cluster is not asked when the context ended before the round, because failures are then
// no evidence.
func (p *Probe) Observe(ctx context.Context) probes.Observation {
	r := p.round(ctx, p.cluster.Surroundings())
	ended := ctx.Err() != nil // the agent ends, or stood still
	r.Late = r.Late || ended
	found := p.evaluator.Next(r)
	if !ended {
		if r.Standings = p.cluster.Consult(ctx, &found); r.Standings != nil {
			found = p.evaluator.Answered(r)
		}
	}
	o := found.Observation
	if !o.Due.IsZero() {
		now, _ := p.clock()
		o.Due = time.Now().Add(o.Due.Sub(now)) // by the clock by which the agent waits
	}
	p.measures = found.Measures
	// Peers that were never reached can stay unreachable forever.
	p.suspicious = (o.Level != probes.OK || o.Hysteresis) && o.Reason != verdict.ReasonPeersNeverReached
	if p.calm++; p.suspicious {
		p.calm = 0
	}
	return o
}

// Measures appends what the newest round showed of the peers.
func (p *Probe) Measures(all []probes.Measure) []probes.Measure { return append(all, p.measures...) }
