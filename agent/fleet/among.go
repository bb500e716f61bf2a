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
	// ObserveIn is Observe in known surroundings. The fleet is consulted, so that the sample has its answer.
	ObserveIn(ctx context.Context, in verdict.Surroundings, consult verdict.Consult) probes.Observation
}

// among is a networkProbe that knows its fleet. To others it is a Probe like any.
type among struct {
	networkProbe
	fleet *Fleet
}

// Among returns a probe of the network that consults the fleet, and any other probe unchanged.
func (f *Fleet) Among(p probes.Probe) probes.Probe {
	if network, isNetwork := p.(networkProbe); isNetwork {
		return among{network, f}
	}
	return p
}

func (a among) Observe(ctx context.Context) probes.Observation {
	return a.ObserveIn(ctx, a.fleet.Surroundings(), a.fleet.Consult)
}
