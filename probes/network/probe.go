// Package network is the probe of NetworkUnavailable. Once in a period it runs the checks of a
// round, one file for each class. Package verdict evaluates their results.
package network

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
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
	// calm counts the rounds since a verdict was not quite OK; 0: the newest was not.
	calm int
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
// two rounds; disabled classes are not checked.
func New(h probes.Host, period time.Duration, disabled ...verdict.Class) *Probe {
	self, peers := &ask.Self{}, ask.NewPeers(period)
	p := &Probe{
		clock: hostClock, period: period, self: self, peers: peers, patience: patience, cluster: alone{}, was: map[verdict.Class]bool{}, calm: 1,
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

// Join tells the probe about the hosts around its own. Without it, the probe knows only its own
// host.
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
	if p.calm++; (o.Level != probes.OK || o.Hysteresis) && o.Reason != verdict.ReasonPeersNeverReached {
		p.calm = 0
	}
	return o
}

// Measures appends the figures of the peers in the newest round.
func (p *Probe) Measures(all []probes.Measure) []probes.Measure { return append(all, p.measures...) }

const (
	// roundTime is how long a round may take: most of the time that the agent gives a sample. The rest is
	// for the verdict.
	roundTime = 4800 * time.Millisecond
	// patience is how long one answer may take. A SYN that is lost is sent again after a second.
	patience = 1500 * time.Millisecond
	// apiEvery is the time between two requests to the API server while the network is healthy:
	// each handshake costs the server a signature.
	apiEvery = 59 * time.Second
	// shortestSleep is what counts as sleep: two clocks are not read in one moment.
	shortestSleep = time.Second
	// beat is how often the ticker of a round ticks. A healthy round ends before.
	beat = 100 * time.Millisecond
	// lateAfter is how late a tick or the control probe may be. A third of the patience is then
	// gone, and the network has the rest. On two processors, with 8 programs that take all they
	// get, ticks came 66 ms late at most, with 64 of them 302 ms, and no class failed for it.
	lateAfter = 500 * time.Millisecond
)

// clock says when a round begins, by CLOCK_BOOTTIME as the decider has it, and for how
// long the host has slept since it was booted. Go's own monotonic clock stands still
// while the host sleeps (clock_gettime(2)).
type clock func() (at time.Time, slept time.Duration)

// hostClock is the host's clock.
func hostClock() (at time.Time, slept time.Duration) {
	boot, awake := hostfile.Clock(unix.CLOCK_BOOTTIME), hostfile.Clock(unix.CLOCK_MONOTONIC)
	return time.Unix(0, int64(boot)), boot - awake
}

// begin begins a round. If the host slept or the agent stood still since the previous round, the
// network may still be coming up, so begin forgets the rounds before, which classes were healthy
// and which peers were reached. A hanging call remains the only one.
func (p *Probe) begin() verdict.Round {
	at, slept := p.clock()
	gap, nap, isFirst := at.Sub(p.newest.At), slept-p.slept, p.newest.At.IsZero()
	r := verdict.Round{At: at, Results: map[verdict.Class]verdict.Result{}}
	p.slept = slept
	if !isFirst && (gap < 0 || gap > max(probes.LongestGap, 3*p.period) || nap >= shortestSleep) {
		p.peers.Forget()
		p.evaluator = verdict.NewEvaluator(p.period, rand.Uint64()) //nolint:gosec // not a secret
		p.was, p.newest, p.apiDue, p.calm, p.late = map[verdict.Class]bool{}, verdict.Round{}, time.Time{}, 1, 0
	}
	return r
}

// round asks all classes at the same time. Observe is called from one goroutine at a time.
func (p *Probe) round(ctx context.Context, in verdict.Surroundings) verdict.Round {
	r := p.begin()
	ctx, cancel := context.WithTimeout(ctx, roundTime)
	defer cancel()
	// The API server may be asked after all others.
	each := min(p.patience+p.late, roundTime/2)

	in.Troubled = in.Troubled || p.calm == 0
	p.was[verdict.Peers] = p.was[verdict.Peers] || in.Suspected
	ticking, stop := context.WithCancel(ctx)
	late := make(chan time.Duration, 1)
	go func() { late <- lateness(ticking) }()
	p.askAll(ctx, &in, each, &r)
	r.Peers, r.NeverReached = p.peers.Found, p.peers.Never
	p.askAPILate(ctx, &in, each, &r)
	stop()

	p.late = max(<-late, p.self.Took)
	r.Late = p.late > lateAfter
	p.newest = r
	return r
}

// askAll asks every class that is on and due. What is not due is as it was.
func (p *Probe) askAll(ctx context.Context, in *verdict.Surroundings, each time.Duration, r *verdict.Round) {
	due := slices.DeleteFunc(slices.Collect(maps.Keys(p.checks)), func(class verdict.Class) bool {
		isLeftOut := class.IsLeftOut(p.calm) || class == verdict.API && r.At.Before(p.apiDue)
		if isLeftOut {
			r.Results[class] = p.newest.Results[class]
		}
		return isLeftOut
	})
	p.self.Took = 0
	results := ask.Together(due, func(class verdict.Class) verdict.Result { return p.checks[class].Ask(ctx, in, each) })
	for i, class := range due {
		p.take(r, class, results[i])
	}
}

// askAPILate settles what is known of the API server. A failure counts only if the API server
// answers in the same round. So it is asked now if it was not before, and in the next round too.
func (p *Probe) askAPILate(ctx context.Context, in *verdict.Surroundings, each time.Duration, r *verdict.Round) {
	api, isOn := p.checks[verdict.API]
	trouble, wasAsked := p.calm == 0 || r.HasFailure(), !r.At.Before(p.apiDue)
	if !isOn || !trouble && !wasAsked {
		return
	}
	if !wasAsked {
		p.take(r, verdict.API, api.Ask(ctx, in, each))
	}
	p.apiDue = time.Time{}
	if found := r.Results[verdict.API]; found.Outcome == verdict.Well && !found.Elsewhere && !trouble {
		p.apiDue = r.At.Add(apiEvery)
	}
}

// take puts the result of a class into the round. A failing class that was never Well is not
// evidence.
func (p *Probe) take(r *verdict.Round, c verdict.Class, result verdict.Result) {
	switch {
	case result.Outcome == verdict.Well:
		p.was[c] = true
	case result.Outcome == verdict.Failed && !p.was[c]:
		result = verdict.Result{Never: true, IsSure: result.IsSure, Detail: result.Detail + "; never healthy since the start"}
	}
	r.Results[c] = result
}

// lateness ticks until the context ends and returns by how much the latest tick was late. A process
// that stands still, or gets no processor, does not notice that an answer came in time.
func lateness(ctx context.Context) (latest time.Duration) {
	timer := time.NewTimer(beat)
	defer timer.Stop()
	for {
		begin := time.Now()
		select {
		case <-ctx.Done():
			return max(latest, time.Since(begin)-beat)
		case <-timer.C:
			latest = max(latest, time.Since(begin)-beat)
			timer.Reset(beat)
		}
	}
}
