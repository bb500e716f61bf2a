package network

import (
	"fmt"
	"strings"

	"github.com/taintlet/taintlet/probes"
)

// interim says what a round means by the class route alone.
type interim struct{ round Round }

// Next judges one round.
func (i *interim) Next(r Round) Verdict {
	i.round = r
	o := probes.Observation{Condition: probes.NetworkUnavailable, Message: inWords(&r)}
	switch r.Outcome(Route) {
	case Well:
		o.Level, o.Reason = probes.OK, "NetworkWell"
	case Failed:
		o.Level, o.Severity, o.Reason = probes.Degraded, 100, "RouteLost"
	default:
		o.Level, o.Reason = probes.Unknown, "RouteNotKnown"
	}
	return Verdict{Observation: o}
}

// Answer tells the classes of the round before.
func (i *interim) Answer() Answer {
	a := Answer{Version: AnswerVersion, Classes: map[Class]bool{}, Lossy: -1}
	for class, result := range i.round.Results {
		if result.Outcome != NotKnown {
			a.Classes[class] = result.Outcome == Well
		}
	}
	return a
}

// inWords tells the results of a round: what failed, what is well, what is not
// known.
func inWords(r *Round) string {
	var words []string
	for _, outcome := range []Outcome{Failed, Well, NotKnown} {
		for _, c := range Classes() {
			if result, on := r.Results[c]; on && result.Outcome == outcome {
				words = append(words, fmt.Sprintf("%s %s: %s", c, outcome, result.Detail))
			}
		}
	}
	return strings.Join(words, "; ")
}
