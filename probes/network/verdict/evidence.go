package verdict

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
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
	table []row // of the verdict
}

func newEvidence(period time.Duration, random *rand.Rand) evidence {
	e, all := evidence{seen: map[Class]bool{}, table: rows(), loss: loss{peers: map[string]hearsay{}}}, shapes(period)
	for i := range e.relatives {
		e.relatives[i] = relative{compared: compared{shape: all[i]}, class: all[i].provenBy}
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

// mayAccuse reports whether what fails may be this host's fault: the API server
// answers, and this host is in time.
func (e *evidence) mayAccuse(r *Round) bool { return !e.slow && r.Outcome(API) == Well }

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

// due is when a round may decide the level; zero: none does soon.
func (e *evidence) due(r *Round) (first time.Time) {
	first = e.reach.due(r)
	for _, c := range e.comparisons() {
		if due := c.due(r); !due.IsZero() && (first.IsZero() || due.Before(first)) {
			first = due
		}
	}
	return first
}

// severity is that of the worst evidence, on the level's side of 50. It is 0
// where the level is Unknown.
func (e *evidence) severity(r *Round, level probes.Level) int {
	if level == probes.Unknown {
		return 0
	}
	worst := e.reach.severity()
	for _, c := range e.comparisons() {
		worst = max(worst, c.severity(r.At))
	}
	if e.isSure(r, Conntrack) {
		worst = max(worst, 60)
	}
	if e.isSure(r, Route) {
		worst = 100
	}
	if level == probes.OK {
		return min(worst, 49)
	}
	return max(worst, 50)
}

// neverHolds is for how long a host stays as it is because no peer was ever
// reached. In a fleet whose firewalls close the port that is so for ever.
const neverHolds = time.Hour

// neverReachedFor is how long peers must not be reached until the port is named. In
// that time the control plane takes a host without power out of the list.
const neverReachedFor = 5 * time.Minute

// mayBeCutOff reports whether no peer was reached since the start, and that was a
// short time ago.
func (e *evidence) mayBeCutOff(r *Round) bool {
	peers := r.Results[Peers]
	return peers.Outcome == NotKnown && peers.Never && r.At.Sub(e.first) < neverHolds
}

// neverWell reports what fails and was never well since the start.
func (e *evidence) neverWell(r *Round) (string, bool) {
	for i := range e.relatives {
		if c := &e.relatives[i]; c.found.Never && c.isWellElsewhere() {
			return c.String() + "; it was never healthy since the agent started", true
		}
	}
	return r.Results[Peers].Detail, e.mayBeCutOff(r) && !e.never.holds(neverReachedFor, r.At)
}

// nearly reports what failed too seldom, or not for long enough.
func (e *evidence) nearly() (string, bool) {
	for i := range e.relatives {
		if c := &e.relatives[i]; c.here.any() {
			return c.String() + "; not often or not long enough to tell", true
		}
	}
	switch {
	case e.conntrack.any():
		return "the connection table dropped packets, or was full, in fewer than 3 of the last 5 rounds", true
	case e.reach.part.any():
		return e.reach.String() + "; fewer than 80 % in some of the last 5 rounds", true
	case e.reach.hangs.any():
		return fmt.Sprintf("%s, and %d of them do not answer in time; not often enough to tell", &e.reach, e.reach.hung), true
	case e.hole.here.any():
		return e.hole.String() + "; not often or not long enough to tell", true
	case e.loss.all.shows(lossEasier):
		return e.loss.String() + "; not enough or not long enough to tell", true
	}
	return "", false
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

// wellness lists what is known of this host, for the message of a host that is
// well.
func (e *evidence) wellness(r *Round) string {
	var well []string
	for _, c := range Classes() {
		if c != Peers && r.Outcome(c) == Well {
			well = append(well, string(c))
		}
	}
	text := "nothing to compare with"
	if len(well) > 0 {
		text = strings.Join(well, ", ") + " healthy"
	}
	if e.reach.all > 0 {
		text = fmt.Sprintf("%s; %s", e.reach.String(), text)
	}
	return text
}

// hasNothingToAsk reports whether a class that is not known has nothing here that
// could fail: no peers or DNS pods are left in the cluster, or no daemon runs here nor
// elsewhere. A host that reaches no API server, or no peer, does not know that.
func (e *evidence) hasNothingToAsk(c Class, r *Round) bool {
	switch c {
	case Peers, Pods:
		return r.Outcome(API) == Well
	case Conntrack: // the kernel has no table, or does not show it
		return true
	case Local:
		return !e.relatives[2].isWellElsewhere() && slices.ContainsFunc(r.Peers, func(p PeerResult) bool { return p.Answer != nil })
	}
	return false
}
