package verdict

import (
	"math/rand/v2"
	"slices"
	"time"
)

// evidence is what the rounds since the start or a gap showed.
type evidence struct {
	// first round since then.
	first time.Time
	// slow: in the newest round this host was.
	slow bool
	// seen has the classes that were Well since then.
	seen map[Class]bool

	conntrack, api streak
	relatives      [3]relative
	loss           loss
	reach          reach
	hole           hole
	// never: many of the peers were never reached.
	never streak
}

func newEvidence(period time.Duration, random *rand.Rand) evidence {
	e, all := evidence{seen: map[Class]bool{}, loss: loss{peers: map[string]hearsay{}}}, shapes(period)
	for i, class := range []Class{Pods, DNS, Local} {
		e.relatives[i] = relative{compared: compared{shape: all[i]}, class: class}
	}
	e.loss.shape, e.hole.shape = all[3], all[4]
	e.reach.suspicion = suspicion{random: random, period: period, wait: suspicionWait(period), lead: leaseLead(period)}
	return e
}

// comparisons returns those of all shapes, in their order.
func (e *evidence) comparisons() [5]comparison {
	return [...]comparison{&e.relatives[0], &e.relatives[1], &e.relatives[2], &e.loss, &e.hole}
}

// take adds a round to the evidence. What failed on a slow host is none.
func (e *evidence) take(r *Round) {
	if e.first.IsZero() {
		e.first = r.At
	}
	for c, result := range r.Results {
		if result.Outcome == Well {
			e.seen[c] = true
		}
	}
	e.conntrack.add(r.Outcome(Conntrack) == Failed, r.At)
	e.slow = (r.Late || r.Outcome(Self) == Failed) && hasFailure(r)
	if e.slow {
		return
	}
	e.api.add(r.Outcome(API) == Well, r.At)
	for i := range e.relatives {
		e.relatives[i].add(r)
	}
	e.loss.add(r)
	e.hole.add(r)
	e.reach.add(r, e.api.holds(0, r.At))
	e.never.add(areManyNeverReached(r), r.At)
}

// hasFailure reports whether anything failed in this round.
func hasFailure(r *Round) bool {
	for _, result := range r.Results {
		if result.Outcome == Failed {
			return true
		}
	}
	return slices.ContainsFunc(r.Peers, func(p PeerResult) bool { return !p.isThere() || p.Hangs })
}

// isSure reports whether a class fails that needs no peers. A default route may go because
// nobody needs it, and a full connection table may have room for all that matters. So
// something else must fail too, unless the failure itself is sure.
func (e *evidence) isSure(r *Round, c Class) bool {
	return r.Outcome(c) == Failed && (r.Results[c].IsSure || !e.slow && r.anyOfRoutes(func(found Result) bool { return found.Outcome == Failed }))
}

// anyOfRoutes reports whether something holds of a class whose packets go by the host's routes.
func (r *Round) anyOfRoutes(holds func(Result) bool) bool {
	return slices.ContainsFunc([]Class{API, Pods, DNS, Peers}, func(c Class) bool { return holds(r.Results[c]) })
}

// answer is what this host tells its peers, but for the levels. A class is well
// when it failed in none of the last 5 rounds: in doubt a peer is excused.
func (e *evidence) answer() Answer {
	a := Answer{Version: AnswerVersion, Classes: map[Class]bool{}, Lossy: e.loss.published(), Reach: e.reach.percent(), Full: e.hole.published()}
	for i := range e.relatives {
		c := &e.relatives[i]
		isKnown := c.found.Outcome != NotKnown
		if isKnown {
			a.Classes[c.class] = !c.here.any()
		}
		if len(c.found.Pods) > 0 {
			a.Pods = c.found.Pods
		}
		if c.class == DNS && (isKnown || c.found.IsError) {
			a.Resolves = new(isKnown && !c.here.any())
		}
	}
	return a
}
