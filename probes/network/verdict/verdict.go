// Package verdict says what rounds of checks of the network mean. It is pure: it has no
// clock and does no I/O, so that the agent, the simulation and tests use the same.
package verdict

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// Verdict is what the rounds so far mean.
type Verdict struct {
	Observation probes.Observation
	// Note names the Nodes whose Leases are to be noted now, since they may be asked
	// about later.
	Note []string
	// Ask names the Nodes whose Standings are needed now, because this host suspects
	// itself. It stays until Answered is called.
	Ask []string
	// Measures are the quantities behind the Observation.
	Measures []probes.Measure
}

// Evaluator turns rounds into verdicts. It has no clock and does no I/O: time is what
// the rounds say. The same rounds and the same seed give the same verdicts.
//
// A peer may excuse this host, and never accuse it. A fault of all accuses
// nobody.
type Evaluator struct {
	period time.Duration
	random *rand.Rand
	// last is when the newest round began.
	last     time.Time
	evidence evidence
}

// NewEvaluator returns an Evaluator of rounds that come each period. seed chooses whom
// to ask about and the jitter; it should differ between hosts.
func NewEvaluator(period time.Duration, seed uint64) *Evaluator {
	random := rand.New(rand.NewPCG(seed, 0))
	return &Evaluator{period: period, random: random, evidence: newEvidence(period, random)}
}

// Next takes in a round and says what the rounds so far mean.
func (e *Evaluator) Next(r Round) Verdict {
	if gap := r.At.Sub(e.last); r.AfterGap || !e.last.IsZero() && (gap < 0 || gap > LongestGap(e.period)) {
		e.evidence = newEvidence(e.period, e.random)
	}
	e.last = r.At
	e.evidence.take(&r)
	return e.verdict(&r)
}

// Answered takes in the Standings that the verdict of this round asked for.
func (e *Evaluator) Answered(r Round) Verdict {
	e.evidence.reach.suspicion.answered(&r)
	return e.verdict(&r)
}

// Answer is what this host answers its peers, but for the levels.
func (e *Evaluator) Answer() Answer { return e.evidence.answer() }

func (e *Evaluator) verdict(r *Round) Verdict {
	s := &e.evidence.reach.suspicion
	return Verdict{Observation: e.evidence.observe(r), Note: slices.Clone(s.note), Ask: slices.Clone(s.ask), Measures: e.evidence.measures(r)}
}
