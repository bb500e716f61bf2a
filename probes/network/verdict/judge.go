package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// Condition is the condition of the verdict.
const Condition = probes.NetworkUnavailable

// The reasons by which agents recognise another agent's suspicion, and those that are reported by
// an Event although the host is healthy.
const (
	ReasonPeersUnreachable  = "PeersUnreachable"
	ReasonManySuspect       = "ManySuspect"
	ReasonPortBlocked       = "PortBlocked"
	ReasonPeersNeverReached = "PeersNeverReached"

	reasonRouteLost      = "RouteLost"
	reasonConntrackDrops = "ConntrackDrops"
	reasonCutOff         = "CutOff"
)

// IsSuspicion reports whether a reason says that a host suspects itself.
func IsSuspicion(reason string) bool {
	return reason == ReasonPeersUnreachable || reason == ReasonManySuspect
}

// observe says what the evidence means. ../README.md has a table of it.
func (e *Evaluator) observe(r *Round) probes.Observation {
	o := e.judge(r)
	o.Condition, o.Suspicion, o.Severity = Condition, IsSuspicion(o.Reason), e.severity(r, o.Level)
	if o.Level == probes.OK {
		o.NeverHealthy = e.unseen(r)
	}
	if !e.slow {
		o.Due = e.due(r)
	}
	return o
}

// judge returns the first that applies: a fault of this host, then what is not known, then health.
func (e *Evaluator) judge(r *Round) probes.Observation {
	failing := e.fails(r)
	suspicion := &e.reach.suspicion
	switch {
	case e.isSure(r, Route):
		return probes.Observation{Level: probes.Degraded, Reason: reasonRouteLost, Message: r.Results[Route].Detail}
	case e.conntrack.often() && e.isSure(r, Conntrack):
		return probes.Observation{Level: probes.Degraded, Reason: reasonConntrackDrops, Message: r.Results[Conntrack].Detail}
	case failing.Level == probes.Degraded && !e.slow && r.Outcome(API) == Well:
		failing.Message += "; API server answers"
		return failing
	case suspicion.stage == suspect && e.reach.low.now():
		return notKnown(ReasonPeersUnreachable, e.reach.String()+"; nothing follows before others had time to say the same")
	case e.reach.isOneOfMany():
		return notKnown(ReasonManySuspect, fmt.Sprintf("%s; %s; %s", &e.reach, suspicion.found, suspicion.found.conclusion()))
	case e.slow:
		return notKnown("HostSlow", "this host is slow: its own address did not answer in time; what failed in this round is no evidence")
	case failing.Level == probes.Degraded:
		return notKnown("APIServerSilent", failing.Message+"; API server does not answer, so no taint follows")
	case e.reach.part.often():
		return notKnown("SomePeersUnreachable", e.reach.String()+"; below 80 %, and above 20 %: this host or the others")
	}
	if unproven := e.unproven(r); unproven != "" {
		return notKnown("NotProven", unproven+"that proves nothing against this host")
	}
	return e.well(r)
}

func notKnown(reason, message string) probes.Observation {
	return probes.Observation{Reason: reason, Message: message}
}

// fails returns the fault of this host, if the API server answers and this host's timers are in
// time.
func (e *Evaluator) fails(r *Round) (o probes.Observation) {
	for _, c := range e.comparisons {
		if of := c.base(); of.accuses(r.At) {
			return probes.Observation{Level: probes.Degraded, Reason: of.reason, Message: c.String(), Certain: of.isCertain || of.isAccusedAlone(r.At)}
		}
	}
	if e.reach.accuses() {
		return probes.Observation{Level: probes.Degraded, Reason: reasonCutOff, Message: fmt.Sprintf("%s; %s", &e.reach, e.reach.suspicion.found), Certain: true}
	}
	return o
}

// unproven says what fails here and may fail elsewhere too; empty: nothing.
func (e *Evaluator) unproven(r *Round) string {
	for _, c := range e.comparisons {
		isOften := c == comparison(e.loss) || c.base().here.often() // the window has half a minute of it already
		if of := c.base(); isOften && of.here.now() && !of.apart.now() {
			return c.String() + "; "
		}
	}
	for _, c := range []Class{Route, Conntrack} {
		if r.Outcome(c) == Failed && !e.isSure(r, c) && (c == Route || e.conntrack.often()) {
			return r.Results[c].Detail + "; nothing else fails, so "
		}
	}
	if e.reach.hangs.often() {
		return e.reach.hanging() + ": packets may get lost that are not tiny; "
	}
	return ""
}

// well returns what to say where nothing is wrong for sure.
func (e *Evaluator) well(r *Round) probes.Observation {
	if route, isOn := r.Results[Route]; isOn && route.Outcome == NotKnown && (route.IsSure || !route.Never) {
		return notKnown("RouteNotKnown", route.Detail)
	}
	o := probes.Observation{Level: probes.OK}
	nearly, neverWell := e.nearly(), e.neverWell(r)
	switch {
	case nearly != "":
		o.Reason, o.Message, o.Hysteresis = "NotYetSure", nearly, true
	case neverWell != "":
		o.Reason, o.Message, o.Hysteresis = "NeverHealthy", neverWell, true
	case e.never.holds(neverReachedFor, r.At):
		o.Reason, o.Warns = ReasonPeersNeverReached, true
		o.Message, o.Hysteresis = r.Results[Peers].Detail+", which must be open between the Nodes", e.mayBeCutOff(r)
	case e.reach.blocked.often():
		o.Reason, o.Warns = ReasonPortBlocked, true
		o.Message = fmt.Sprintf("%s; %d of them at their second port only: taintlet's port is blocked", &e.reach, e.reach.other)
	case e.reach.mute.often():
		o.Reason = "NoPeerAnswers"
		o.Message = fmt.Sprintf("%s; %d of them give no answer that can be read, so nothing can be compared", &e.reach, e.reach.silent)
	default:
		o.Reason, o.Message = "NetworkHealthy", e.wellness(r)
	}
	return o
}

// nearly says what failed too seldom, or not for long enough; empty: nothing.
func (e *Evaluator) nearly() string {
	for _, c := range e.comparisons {
		if c.base().isNear {
			return c.String() + "; not often or not long enough to tell"
		}
	}
	switch {
	case e.conntrack.any():
		return "the connection table dropped packets, or was full, in fewer than 3 of the last 5 rounds"
	case e.reach.part.any():
		return e.reach.String() + "; fewer than 80 % in some of the last 5 rounds"
	case e.reach.hangs.any():
		return e.reach.hanging() + "; not often enough to tell"
	}
	return ""
}

const (
	// neverHolds is for how long a host stays as it is because no peer was ever
	// reached. In a fleet whose firewalls close the port that is so for ever.
	neverHolds = time.Hour
	// neverReachedFor is how long peers must not be reached until the port is named. In
	// that time the control plane takes a host without power out of the list.
	neverReachedFor = 5 * time.Minute
)

// mayBeCutOff reports whether no peer was reached since the start, and that was a short time ago.
func (e *Evaluator) mayBeCutOff(r *Round) bool {
	peers := r.Results[Peers]
	return peers.Outcome == NotKnown && peers.Never && r.At.Sub(e.first) < neverHolds
}

// neverWell says what fails and was never well since the start; empty: nothing.
func (e *Evaluator) neverWell(r *Round) string {
	for _, c := range e.relatives {
		if c.found.Never && c.isWellElsewhere() {
			return c.String() + "; it was never healthy since the agent started"
		}
	}
	if e.mayBeCutOff(r) && !e.never.holds(neverReachedFor, r.At) {
		return r.Results[Peers].Detail
	}
	return ""
}

// wellness lists which classes of a healthy host are known to be healthy.
func (e *Evaluator) wellness(r *Round) string {
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
		text = fmt.Sprintf("%s; %s", &e.reach, text)
	}
	return text
}

// severity is that of the worst evidence, on the level's side of 50; 0 where the level is Unknown.
func (e *Evaluator) severity(r *Round, level probes.Level) int {
	worst := e.reach.severity()
	for _, c := range e.comparisons {
		worst = max(worst, c.severity(r.At))
	}
	if e.isSure(r, Conntrack) {
		worst = max(worst, 60)
	}
	if e.isSure(r, Route) {
		worst = 100
	}
	switch level {
	case probes.Unknown:
		return 0
	case probes.OK:
		return min(worst, 49)
	}
	return max(worst, 50)
}

// due is when a round may decide the level; zero: none does soon.
func (e *Evaluator) due(r *Round) (first time.Time) {
	first = e.reach.due(r)
	for _, c := range e.comparisons {
		if due := c.base().due(r.At); !due.IsZero() && (first.IsZero() || due.Before(first)) {
			first = due
		}
	}
	return first
}

// unseen returns the reasons that a good verdict says nothing about, because their class has not been
// healthy since the start. A failure in the Node's record does not become OK because the agent
// restarts.
func (e *Evaluator) unseen(r *Round) (reasons []string) {
	add := func(reason string, c Class, isUnseen bool) {
		if _, isOn := r.Results[c]; isOn && isUnseen {
			reasons = append(reasons, reason)
		}
	}
	// A host may be meant to have no route.
	add(reasonRouteLost, Route, !e.seen[Route] && r.anyOfRoutes(func(found Result) bool { return found.Outcome == Failed || found.Never }))
	add(reasonConntrackDrops, Conntrack, e.isUnseen(Conntrack, r))
	for _, c := range e.comparisons {
		of := c.base()
		add(of.reason, of.class, of.isUntried || e.isUnseen(of.class, r))
	}
	add(reasonCutOff, Peers, e.isUnseen(Peers, r))
	return reasons
}

// isUnseen reports whether a class was not well since the start, and may have something to ask
// that fails. There is nothing if no peers or DNS pods are left in the cluster, or no daemon
// runs here nor elsewhere. A host that reaches no API server, or no peer, does not know that.
func (e *Evaluator) isUnseen(c Class, r *Round) bool {
	hasNothing := false
	switch c {
	case Peers, Pods:
		hasNothing = r.Outcome(API) == Well
	case Conntrack: // the kernel has no table, or does not show it
		hasNothing = true
	case Local:
		hasNothing = !e.relatives[2].isWellElsewhere() && slices.ContainsFunc(r.Peers, func(p PeerResult) bool { return p.Answer != nil })
	}
	return !e.seen[c] && (r.Results[c].Never || !hasNothing)
}
