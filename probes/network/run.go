package network

import (
	"context"
	"sync"
	"time"

	"github.com/taintlet/taintlet/probes/network/ask"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

const (
	// roundTime is how long a round may take where the context has no deadline.
	roundTime = 5 * time.Second
	// patience is how long one answer may take. A SYN that is lost is sent again
	// after a second, so one loss makes no peer unreachable.
	patience = 1500 * time.Millisecond
	// spare is what a round leaves of its context's time for the verdict.
	spare = 200 * time.Millisecond
	// apiEvery is how often the API server is asked while all is well, some rounds
	// apart: each handshake costs it a signature.
	apiEvery = 59 * time.Second
)

// round asks all classes at the same time. One round is in flight: Observe is
// called from one goroutine at a time, and each class ends with the context.
func (p *Probe) round(ctx context.Context, in verdict.Surroundings) verdict.Round {
	at, slept := p.clock()
	r := verdict.Round{At: at, AfterGap: p.isAfterGap(at, slept), Results: map[verdict.Class]verdict.Result{}}
	if r.AfterGap {
		p.forget()
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(roundTime)
	}
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(-spare))
	defer cancel()
	// The API server may be asked after all others.
	each := min(p.patience+p.late, time.Until(deadline.Add(-spare))/2)

	in.Troubled = in.Troubled || p.suspicious
	ticking, stop := context.WithCancel(ctx)
	var ticker sync.WaitGroup
	var late time.Duration
	ticker.Go(func() { late = lateness(ticking) })
	p.askAll(ctx, &in, each, &r)
	r.Peers, r.NeverReached = p.peers.Found, p.peers.Never
	p.askAPILate(ctx, &in, each, &r)
	stop()
	ticker.Wait()

	p.late = max(late, p.self.Took)
	r.Late = p.late > lateAfter
	return r
}

// askAll asks every class that is on and due. What is not due is as it was.
func (p *Probe) askAll(ctx context.Context, in *verdict.Surroundings, each time.Duration, r *verdict.Round) {
	var checks []ask.Check
	for _, c := range p.checks {
		if c.Class().IsLeftOut(p.calm) {
			r.Results[c.Class()] = p.newest.Results[c.Class()]
			continue
		}
		checks = append(checks, c)
	}
	p.self.Took = 0
	if p.api != nil && !r.At.Before(p.apiDue) {
		checks = append(checks, p.api)
	}
	results := make([]verdict.Result, len(checks))
	var group sync.WaitGroup
	for i, c := range checks {
		group.Go(func() { results[i] = c.Ask(ctx, in, each) })
	}
	group.Wait()
	for i, c := range checks {
		p.take(r, c.Class(), results[i])
	}
}

// askAPILate settles what is known of the API server. Something that fails is no
// evidence unless the API server answers in the same round, so it is asked now if
// it was not before, and in the next round too.
func (p *Probe) askAPILate(ctx context.Context, in *verdict.Surroundings, each time.Duration, r *verdict.Round) {
	if p.api == nil {
		return
	}
	_, asked := r.Results[verdict.API]
	trouble := p.trouble(r)
	if trouble && !asked {
		p.take(r, verdict.API, p.api.Ask(ctx, in, each))
		asked = true
	}
	if !asked {
		r.Results[verdict.API] = p.apiResult
		return
	}
	p.apiResult, p.apiDue = r.Results[verdict.API], time.Time{}
	if p.apiResult.Outcome == verdict.Well && !trouble {
		p.apiDue = r.At.Add(apiEvery)
		p.apiResult.Detail += ", asked at " + time.Now().UTC().Format(time.TimeOnly)
	}
}

// trouble reports whether something is not as it should be, in this round or in
// the verdict of the round before.
func (p *Probe) trouble(r *verdict.Round) bool {
	for _, result := range r.Results {
		if result.Outcome == verdict.Failed {
			return true
		}
	}
	for _, peer := range r.Peers {
		if !peer.Reached {
			return true
		}
	}
	return p.suspicious
}

// take puts what a class found into the round. A class that never was Well since
// the start says nothing when it fails.
func (p *Probe) take(r *verdict.Round, c verdict.Class, result verdict.Result) {
	switch {
	case result.Outcome == verdict.Well:
		p.was[c] = true
	case result.Outcome == verdict.Failed && !p.was[c]:
		result = verdict.Result{Outcome: verdict.NotKnown, Never: true, Detail: result.Detail + "; never well since the start"}
	}
	r.Results[c] = result
}
