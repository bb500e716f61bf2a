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

// rounds runs one round after the other.
type rounds struct {
	gaps

	checks map[verdict.Class]ask.Check // those that are on
	// self and peers are among them, unless they are off. The round reads more of them.
	self  *ask.Self
	peers *ask.Peers

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
	// suspicious: the verdict before was not quite OK.
	suspicious bool
	// calm counts the rounds since anything was not well.
	calm int
	// newest is the newest round.
	newest verdict.Round
}

// round asks all classes at the same time. One round is in flight: Observe is
// called from one goroutine at a time, and each class ends with the context.
func (p *rounds) round(ctx context.Context, in verdict.Surroundings) verdict.Round {
	at, isAfterGap := p.next()
	r := verdict.Round{At: at, AfterGap: isAfterGap, Results: map[verdict.Class]verdict.Result{}}
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
	p.was[verdict.Peers] = p.was[verdict.Peers] || in.Suspected
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
func (p *rounds) askAll(ctx context.Context, in *verdict.Surroundings, each time.Duration, r *verdict.Round) {
	var due []verdict.Class
	for class := range p.checks {
		switch {
		case class.IsLeftOut(p.calm):
			r.Results[class] = p.newest.Results[class]
		case class != verdict.API || !r.At.Before(p.apiDue):
			due = append(due, class)
		}
	}
	p.self.Took = 0
	results := ask.Together(due, func(class verdict.Class) verdict.Result { return p.checks[class].Ask(ctx, in, each) })
	for i, class := range due {
		p.take(r, class, results[i])
	}
}

// askAPILate settles what is known of the API server. A failure counts only if the API
// server answers in the same round. So it is asked now if it was not before, and in the
// next round too.
func (p *rounds) askAPILate(ctx context.Context, in *verdict.Surroundings, each time.Duration, r *verdict.Round) {
	api, isOn := p.checks[verdict.API]
	if !isOn {
		return
	}
	_, asked := r.Results[verdict.API]
	trouble := p.trouble(r)
	if trouble && !asked {
		p.take(r, verdict.API, api.Ask(ctx, in, each))
		asked = true
	}
	if !asked {
		r.Results[verdict.API] = p.apiResult
		return
	}
	p.apiResult, p.apiDue = r.Results[verdict.API], time.Time{}
	if p.apiResult.Outcome == verdict.Well && !p.apiResult.Elsewhere && !trouble {
		p.apiDue = r.At.Add(apiEvery)
		p.apiResult.Detail += ", asked at " + time.Now().UTC().Format(time.TimeOnly)
	}
}

// trouble reports whether something is not as it should be, in this round or in
// the verdict of the round before.
func (p *rounds) trouble(r *verdict.Round) bool {
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
func (p *rounds) take(r *verdict.Round, c verdict.Class, result verdict.Result) {
	switch {
	case result.Outcome == verdict.Well:
		p.was[c] = true
	case result.Outcome == verdict.Failed && !p.was[c]:
		result = verdict.Result{Outcome: verdict.NotKnown, Never: true, Detail: result.Detail + "; never healthy since the start"}
	}
	r.Results[c] = result
}

// forget drops what was seen: no class was well, and no peer was reached. A call that
// hangs remains the only one.
func (p *rounds) forget() {
	for _, c := range p.checks {
		if f, ok := c.(interface{ Forget() }); ok {
			f.Forget()
		}
	}
	p.was, p.newest, p.apiResult, p.apiDue, p.calm, p.late = map[verdict.Class]bool{}, verdict.Round{}, verdict.Result{}, time.Time{}, 0, 0
}
