// Package verdict evaluates rounds of network checks. It is pure: it has no clock and does no I/O,
// so that the agent, the simulation and the tests use the same code.
package verdict

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// Verdict is the conclusion from the rounds so far, for the agent and the fleet.
type Verdict struct {
	Observation probes.Observation
	// Round is the newest.
	Round Round
	// Own is this host's answer to its peers, but for the levels.
	Own Answer
	// Ask names the Nodes whose Standings are needed now. It stays until Answered is called.
	Ask []string
	// Leases names the Nodes whose Leases are read with that, or alone for a later question.
	Leases []string
	// Measures are the quantities behind the Observation.
	Measures []probes.Measure
}

// Evaluator turns rounds into verdicts. It has no clock: the rounds contain the time, and the same
// rounds and seed give the same verdicts. It remembers all rounds.
// A peer's report can prevent a taint of this host, and never cause one. A fault of the whole fleet
// taints no host.
type Evaluator struct {
	// slow: in the newest round this host was.
	slow bool
	// seen holds the classes that were Well at least once.
	seen map[Class]bool

	conntrack, api streak
	relatives      [3]*relative
	loss           *loss
	hole           *hole
	// comparisons are these in the order of their shapes.
	comparisons []comparison
	suspicion   suspicion
	// low: at most a fifth of the peers are reached. part: less than four fifths. blocked: a fifth
	// or more answer at their second port only. mute: four fifths or more are silent. hangs: hung, as
	// where packets get lost that are not tiny. never: a fifth of them and two, or all, were never reached.
	low, part, blocked, mute, hangs, never streak
}

// NewEvaluator returns an Evaluator for rounds that come each period. seed, which differs from host
// to host, chooses the Nodes whose Standings are read.
func NewEvaluator(period time.Duration, seed uint64) *Evaluator {
	e := &Evaluator{
		seen: map[Class]bool{}, relatives: [3]*relative{{}, {}, {}}, loss: &loss{peers: map[string]hearsay{}}, hole: &hole{before: map[string]int{}},
		suspicion: suspicion{period: period, random: rand.New(rand.NewPCG(seed, 0))},
	}
	e.comparisons = []comparison{e.relatives[0], e.relatives[1], e.relatives[2], e.loss, e.hole}
	for i, shape := range shapes(period) {
		e.comparisons[i].base().shape = shape
	}
	return e
}

// Next takes in a round and returns the verdict on the rounds so far.
func (e *Evaluator) Next(r Round) Verdict {
	e.take(&r)
	return e.verdict(&r)
}

// Answered takes in the Standings that the verdict of this round asked for.
func (e *Evaluator) Answered(r Round) Verdict {
	e.suspicion.answered(&r)
	return e.verdict(&r)
}

func (e *Evaluator) verdict(r *Round) Verdict {
	v := Verdict{Observation: e.observe(r), Round: *r, Own: e.answer(r), Measures: e.measures(r)}
	if s := &e.suspicion; s.ask != nil || s.notedAt.Equal(r.At) {
		v.Ask, v.Leases = slices.Clone(s.ask), slices.Clone(s.noted)
	}
	return v
}

// take adds a round to the evidence. Failures on a slow host are not evidence.
func (e *Evaluator) take(r *Round) {
	for c, result := range r.Results {
		if result.Outcome == Well {
			e.seen[c] = true
		}
	}
	e.conntrack.add(r.Outcome(Conntrack) == Failed, r.At)
	if e.slow = (r.Late || r.Outcome(Self) == Failed) && r.HasFailure(); e.slow {
		return
	}
	e.api.add(r.Outcome(API) == Well, r.At)
	for _, c := range e.comparisons {
		c.add(r)
	}
	e.addReach(r)
}

// isSure reports whether a class fails that needs no peers. A default route may go because
// nobody needs it, and a full connection table may have room for all that matters. So
// something else must fail too, unless the failure itself is sure.
func (e *Evaluator) isSure(r *Round, c Class) bool {
	return r.Outcome(c) == Failed && (r.Results[c].IsSure || !e.slow && r.anyOfRoutes(func(found Result) bool { return found.Outcome == Failed }))
}

// answer is what this host answers its peers. A class that failed in one of the last 5 rounds is not well.
func (e *Evaluator) answer(r *Round) Answer {
	n := reachOf(r.Peers)
	a := Answer{Version: AnswerVersion, Classes: map[Class]bool{}, Lossy: e.loss.published(), Reach: n.percent(), Full: e.hole.published()}
	for _, c := range e.relatives {
		if c.found.Outcome != NotKnown {
			a.Classes[c.class] = !c.here.any()
		}
		if len(c.found.Pods) > 0 {
			a.Pods = c.found.Pods
		}
	}
	return a
}

// measures returns how many peers the newest round reached, how many are healthy, and the loss of
// the last 30 s.
func (e *Evaluator) measures(r *Round) (all []probes.Measure) {
	n := reachOf(r.Peers)
	if n.all > 0 {
		all = append(all,
			probes.Measure{Name: "peers_answered", Unit: probes.Items, Value: float64(n.reached - n.other - n.silent)},
			probes.Measure{Name: "peers_silent", Unit: probes.Items, Value: float64(n.other + n.silent)},
			probes.Measure{Name: "peers_unreachable", Unit: probes.Items, Value: float64(n.all - n.reached)})
	}
	ratio := func(m probes.Measure, part, whole, fewest int) {
		if whole >= fewest {
			m.Value = float64(part) / float64(whole)
			all = append(all, m)
		}
	}
	ratio(probes.Measure{Name: "peers_reached", Unit: probes.Ratio, Degraded: lowPercent / 100.0, Clear: wellPercent / 100.0}, n.reached, n.all, fewestPeers)
	for _, c := range e.relatives {
		ratio(probes.Measure{Name: "peers_well_" + string(c.class), Unit: probes.Ratio}, c.heard.well, c.heard.know, 1)
	}
	ratio(probes.Measure{Name: "retransmitted", Unit: probes.Ratio, Degraded: lossShare / 100.0, Clear: lossEasier / 100.0}, e.loss.all.hit, e.loss.all.made, lossFewest)
	return all
}
