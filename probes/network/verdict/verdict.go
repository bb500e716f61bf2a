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
	period   time.Duration
	random   *rand.Rand
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
	if r.AfterGap {
		e.evidence = newEvidence(e.period, e.random)
	}
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

// measures returns what the rounds so far show of the peers: how the newest round
// reached them, how many of them are well, and the loss of the last 30 s.
func (e *evidence) measures(r *Round) (all []probes.Measure) {
	if len(r.Peers) > 0 {
		var answered, silent float64
		for i := range r.Peers {
			switch peer := &r.Peers[i]; {
			case peer.Answer != nil:
				answered++
			case peer.isThere():
				silent++
			}
		}
		all = append(all,
			probes.Measure{Name: "peers_answered", Unit: probes.Items, Value: answered},
			probes.Measure{Name: "peers_silent", Unit: probes.Items, Value: silent},
			probes.Measure{Name: "peers_unreachable", Unit: probes.Items, Value: float64(len(r.Peers)) - answered - silent})
	}
	if e.reach.all >= fewestPeers {
		all = append(all, probes.Measure{
			Name: "peers_reached", Unit: probes.Ratio, Value: float64(e.reach.reached) / float64(e.reach.all),
			Degraded: lowPercent / 100., Clear: wellPercent / 100.,
		})
	}
	for i := range e.relatives {
		if c := &e.relatives[i]; c.heard.know > 0 {
			all = append(all, probes.Measure{Name: "peers_well_" + string(c.class), Unit: probes.Ratio, Value: float64(c.heard.well) / float64(c.heard.know)})
		}
	}
	if made := e.loss.all.made; made >= lossFewest {
		all = append(all, probes.Measure{
			Name: "retransmitted", Unit: probes.Ratio, Value: float64(e.loss.all.hit) / float64(made),
			Degraded: lossShare / 100., Clear: lossEasier / 100.,
		})
	}
	return all
}
