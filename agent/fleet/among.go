package fleet

import (
	"context"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// networkProbe is a Probe whose samples depend on the hosts around its own.
type networkProbe interface {
	probes.Probe
	probes.Measurer
	// ObserveIn is Observe, in surroundings that are known. The Verdict is nil when
	// there is nothing to tell.
	ObserveIn(ctx context.Context, in verdict.Surroundings) (probes.Observation, *verdict.Verdict)
	// Answered returns the newest sample with the Standings that its Verdict asks for.
	Answered(standings []verdict.Standing) probes.Observation
}

// among is a networkProbe that knows its fleet. To others it is a Probe like any.
type among struct {
	networkProbe
	fleet *Fleet
}

// Among returns the probe of the network as one that knows the fleet, and tells it the news of
// each sample. It returns other probes as they are.
func (f *Fleet) Among(p probes.Probe) probes.Probe {
	if network, isNetwork := p.(networkProbe); isNetwork {
		return among{network, f}
	}
	return p
}

// Observe takes a sample among the other hosts. What its Verdict asks about them is asked at once,
// so that the sample has the answer.
func (a among) Observe(ctx context.Context) probes.Observation {
	o, news := a.ObserveIn(ctx, a.fleet.Surroundings())
	if news == nil {
		return o
	}
	if standings := a.fleet.Consult(ctx, news); standings != nil {
		o = a.Answered(standings)
	}
	a.fleet.Observe(news.Round.Heard())
	a.fleet.SetAnswer(news.Own)
	return o
}
