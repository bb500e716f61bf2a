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
	reasonNotProven      = "NotProven"
	reasonNotYetSure     = "NotYetSure"
	reasonNeverHealthy   = "NeverHealthy"
)

// IsSuspicion reports whether a reason says that a host suspects itself.
func IsSuspicion(reason string) bool {
	return reason == ReasonPeersUnreachable || reason == ReasonManySuspect
}

// row is the verdict's table while it is read: the first row that holds.
type row struct{ probes.Observation }

// when adds a row, which is the verdict when it holds and none before does.
func (o *row) when(holds bool, level probes.Level, reason, format string, args ...any) {
	if holds && o.Reason == "" {
		o.Level, o.Reason, o.Message = level, reason, fmt.Sprintf(format, args...)
	}
}

// observe says what the evidence means. ../README.md has a table of it.
func (e *Evaluator) observe(r *Round) probes.Observation {
	n, fault, o := reachOf(r.Peers), e.fault(r), row{}
	e.addFaults(&o, r, &n, &fault)
	e.addNotProven(&o, r, &n)
	e.addNotYetSure(&o, r, &n)
	e.addHealthy(&o, r, &n)
	o.Condition, o.Suspicion = Condition, IsSuspicion(o.Reason)
	switch o.Reason {
	case fault.Reason:
		o.Certain = fault.Certain
	case reasonNotYetSure, reasonNeverHealthy:
		o.Hysteresis = true
	case ReasonPeersNeverReached:
		o.Warns, o.Hysteresis = true, e.mayBeCutOff(r)
	case ReasonPortBlocked:
		o.Warns = true
	}
	switch {
	case o.Level == probes.Degraded:
		o.Severity = 75
	case o.Level == probes.OK && o.Hysteresis:
		o.Severity = 25
	}
	if o.Level == probes.OK {
		o.NeverHealthy = e.unseen(r)
	}
	if !e.slow {
		o.Due = e.due(r)
	}
	return o.Observation
}

// addFaults adds the faults of this host, and the reasons why there is no evidence of one.
func (e *Evaluator) addFaults(o *row, r *Round, n *reach, fault *probes.Observation) {
	s := &e.suspicion
	o.when(e.isSure(r, Route), probes.Degraded, reasonRouteLost, "%s", r.Results[Route].Detail)
	o.when(e.conntrack.often() && e.isSure(r, Conntrack), probes.Degraded, reasonConntrackDrops, "%s", r.Results[Conntrack].Detail)
	o.when(fault.Reason != "" && !e.slow && r.Outcome(API) == Well, probes.Degraded, fault.Reason, "%s; API server answers", fault.Message)
	o.when(s.stage == suspect && e.low.now(), probes.Unknown, ReasonPeersUnreachable, "%s; no taint before other hosts have had time to report the same", n)
	o.when(s.stage == many || s.stage == accused && n.halves, probes.Unknown, ReasonManySuspect, "%s; %s; %s", n, s.found, s.found.conclusion())
	o.when(e.slow, probes.Unknown, "HostSlow", "this host is slow: its own address did not answer in time; failures of this round prove nothing")
	o.when(fault.Reason != "", probes.Unknown, "APIServerSilent", "%s; API server does not answer, so no taint follows", fault.Message)
	o.when(e.part.often(), probes.Unknown, "SomePeersUnreachable", "%s; between 20 and 80 %%: the fault may be here or elsewhere", n)
}

// addNotProven adds what fails here and may fail elsewhere too, and a route that is not known.
func (e *Evaluator) addNotProven(o *row, r *Round, n *reach) {
	const provesNothing = "that proves nothing against this host"
	for _, c := range e.comparisons {
		isOften := c == comparison(e.loss) || c.base().here.often() // the window has half a minute of it already
		of := c.base()
		o.when(isOften && of.here.now() && !of.apart.now(), probes.Unknown, reasonNotProven, "%s; "+provesNothing, c)
	}
	for _, c := range []Class{Route, Conntrack} {
		isLost := r.Outcome(c) == Failed && !e.isSure(r, c) && (c == Route || e.conntrack.often())
		o.when(isLost, probes.Unknown, reasonNotProven, "%s; nothing else fails, so "+provesNothing, r.Results[c].Detail)
	}
	o.when(e.hangs.often(), probes.Unknown, reasonNotProven, "%s: all but tiny packets may get lost; "+provesNothing, n.hanging())
	route, isOn := r.Results[Route]
	isNotKnown := isOn && route.Outcome == NotKnown && (route.IsSure || !route.Never)
	o.when(isNotKnown, probes.Unknown, "RouteNotKnown", "%s", route.Detail)
}

// addNotYetSure adds what failed too seldom, or not for long enough, and what was never well since the start.
func (e *Evaluator) addNotYetSure(o *row, r *Round, n *reach) {
	for _, c := range e.comparisons {
		o.when(c.base().isNear, probes.OK, reasonNotYetSure, "%s; not often or not long enough to tell", c)
	}
	o.when(e.conntrack.any(), probes.OK, reasonNotYetSure, "the connection table dropped packets, or was full, in fewer than 3 of the last 5 rounds")
	o.when(e.part.any(), probes.OK, reasonNotYetSure, "%s; fewer than 80 %% in some of the last 5 rounds", n)
	o.when(e.hangs.any(), probes.OK, reasonNotYetSure, "%s; not often enough to tell", n.hanging())
	for _, c := range e.relatives {
		o.when(c.found.Never && c.isWellElsewhere(), probes.OK, reasonNeverHealthy, "%s; it was never healthy since the agent started", c)
	}
	isNew := e.mayBeCutOff(r) && !e.never.holds(neverReachedFor, r.At)
	o.when(isNew, probes.OK, reasonNeverHealthy, "%s", r.Results[Peers].Detail)
}

// addHealthy adds the finding for a network without a certain fault.
func (e *Evaluator) addHealthy(o *row, r *Round, n *reach) {
	o.when(e.never.holds(neverReachedFor, r.At), probes.OK, ReasonPeersNeverReached, "%s, which must be open between the Nodes", r.Results[Peers].Detail)
	o.when(e.blocked.often(), probes.OK, ReasonPortBlocked, "%s; %d of them at their second port only: taintlet's port is blocked", n, n.other)
	o.when(e.mute.often(), probes.OK, "NoPeerAnswers", "%s; %d of them give no readable answer, so nothing can be compared", n, n.silent)
	o.when(true, probes.OK, "NetworkHealthy", "%s", wellness(r, n))
}

// fault returns the fault of this host, if the API server answers and this host's timers are in
// time.
func (e *Evaluator) fault(r *Round) (o probes.Observation) {
	for _, c := range e.comparisons {
		if of := c.base(); of.accuses(r.At) {
			return probes.Observation{Reason: of.reason, Message: c.String(), Certain: of.isCertain || of.isAccusedAlone(r.At)}
		}
	}
	if n := reachOf(r.Peers); e.suspicion.stage == accused && e.low.now() && e.low.often() && !n.halves {
		return probes.Observation{Reason: reasonCutOff, Message: fmt.Sprintf("%s; %s", &n, e.suspicion.found), Certain: true}
	}
	return o
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
	return peers.Outcome == NotKnown && peers.Never && !e.never.holds(neverHolds, r.At)
}

// wellness lists which classes of a healthy host are known to be healthy.
func wellness(r *Round, n *reach) string {
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
	if n.all > 0 {
		text = n.String() + "; " + text
	}
	return text
}

// due is when a round may decide the level, such as whether this host is cut off; zero: none does soon.
func (e *Evaluator) due(r *Round) (first time.Time) {
	switch s := &e.suspicion; {
	case !e.low.now():
	case s.isShort() && s.ask == nil:
		first = s.due
	case s.isShort(), s.stage == calm:
		first = r.At // as soon as may be
	}
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
