// Package network is the probe of NetworkUnavailable. Once in a period it asks
// the classes of a round, each in a file of its own. Package verdict says what they
// found means.
package network

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/ask"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// Probe asks what the host's network does. It sees its own network namespace,
// which must be the host's. It reports OK and Degraded, never Critical.
type Probe struct {
	probes.PeriodOnly

	rounds
	evaluator evaluator
	// began is when the newest round began by the clock of package time, and measures are
	// the quantities behind its verdict.
	began    time.Time
	measures []probes.Measure
}

// evaluator is a *verdict.Evaluator. Tests of rounds have an evaluator that keeps the
// newest round.
type evaluator interface {
	Next(round verdict.Round) verdict.Verdict
	Answered(round verdict.Round) verdict.Verdict
	Answer() verdict.Answer
}

// Options are what a Probe needs besides the host.
type Options struct {
	// Period is the longest time between two rounds.
	Period time.Duration
	// Disabled classes are not asked.
	Disabled []verdict.Class
}

var _ probes.Measurer = (*Probe)(nil)

// New returns the probe of the host's own network. It reads
// class/net/<interface>/carrier in h.Sys, net/stat/nf_conntrack in h.Proc, and
// its own /etc/resolv.conf.
func New(h probes.Host, o Options) *Probe {
	p := &Probe{
		rounds: rounds{
			gaps: gaps{clock: ask.HostClock, period: o.Period}, was: map[verdict.Class]bool{}, patience: patience,
			api: &ask.API{}, self: &ask.Self{}, peers: ask.NewPeers(o.Period),
		},
		evaluator: verdict.NewEvaluator(o.Period, rand.Uint64()), //nolint:gosec // not a secret
	}
	all := []ask.Check{
		ask.NewLocal(), ask.NewDNS("/etc/resolv.conf"), ask.NewConntrack(h), p.self, p.peers, ask.NewPods(), ask.NewRoute(h),
	}
	for _, c := range all {
		if !slices.Contains(o.Disabled, c.Class()) {
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

// Observe runs a round of which only the host is known.
func (p *Probe) Observe(ctx context.Context) probes.Observation {
	o, _ := p.ObserveIn(ctx, verdict.Surroundings{})
	return o
}

// ObserveIn runs a round and evaluates it. The report is nil when the context ended
// before the round, because failures are then no evidence.
func (p *Probe) ObserveIn(ctx context.Context, in verdict.Surroundings) (probes.Observation, *verdict.Report) {
	p.began = time.Now()
	p.newest = p.round(ctx, in)
	ended := ctx.Err() != nil // the agent ends, or stood still
	p.newest.Late = p.newest.Late || ended
	p.calm++
	found := p.evaluator.Next(p.newest)
	if ended {
		return p.settle(found), nil
	}
	report := &verdict.Report{Own: p.evaluator.Answer(), Heard: p.peers.Heard(), Note: found.Note, Ask: found.Ask}
	return p.settle(found), report
}

// Answered evaluates the newest round anew, with the answer to what its Report asks.
func (p *Probe) Answered(standings []verdict.Standing) probes.Observation {
	p.newest.Standings = standings
	return p.settle(p.evaluator.Answered(p.newest))
}

// settle keeps what a verdict means for the next round, and returns its Observation.
func (p *Probe) settle(found verdict.Verdict) probes.Observation {
	o := found.Observation
	if !o.Due.IsZero() {
		o.Due = p.began.Add(o.Due.Sub(p.newest.At)) // of the clock by which the agent waits
	}
	p.measures = found.Measures
	// Peers that were never reached may stay so for good.
	p.suspicious = (o.Level != probes.OK || o.Hysteresis) && o.Reason != verdict.ReasonPeersNeverReached
	if p.suspicious {
		p.calm = 0
	}
	return o
}

// Measures appends what the newest round showed of the peers.
func (p *Probe) Measures(all []probes.Measure) []probes.Measure { return append(all, p.measures...) }
