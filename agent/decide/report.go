package decide

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/probes"
)

// report is what our Node conditions are to say.
type report struct {
	// due: the conditions are to be rendered anew.
	due bool
	// conditions are being written. They do not change until they are written: a
	// message that moves with every sample must not make every sample a write.
	conditions []corev1.NodeCondition
	// news are when the conditions were last due for news alone, the newest first.
	news [newsEach]time.Time
	// untold: the record does not say yet what the conditions say.
	untold bool
}

const (
	// newsEach is how many reports in newsWithin are due to news alone. What comes
	// and goes must not make every sample a write. For what a condition that is OK
	// says, half of them. A suspicion that begins is beyond that.
	newsEach, newsWithin = 2, time.Minute
	// moved is how far the severity moves until the value is told anew: a quarter of
	// the way from the threshold, which is 50, to the worst.
	moved = 13
	// falseAfter is how long samples must say something else than the Node until it is
	// told: another reason, or another level. With a sample each few seconds, what the
	// Node says is true within 30 s.
	falseAfter = 20 * time.Second
)

// rendered is what a Node condition was rendered with.
type rendered struct {
	outlook
	severity int // of its value
	said     said
}

// said is what a sample says in one word.
type said struct {
	level  probes.Level
	reason string
}

// saidBy is what a sample says. How near a good sample is to its threshold is part of
// its value: on a host that is near one all the time, it changes with the noise.
func saidBy(o probes.Observation) said {
	if o.Level == probes.OK && o.Clears != "" {
		return said{level: probes.OK}
	}
	return said{o.Level, o.Reason}
}

// compare takes in whether the newest sample says something else than the Node.
func (c *condition) compare(now time.Time) {
	switch {
	case c.shown == nil || c.shown.said == saidBy(c.last):
		c.falseSince, c.steady = time.Time{}, c.last
	case c.falseSince.IsZero():
		c.falseSince = now
	}
}

// toTell returns the sample that the Node condition is to say: the newest one, or while
// a condition is OK and says something else for a moment only, the newest that says the
// same as the Node. A heartbeat must not tell noise, which would be told again when it
// is over.
func (c *condition) toTell(t *turn) probes.Observation {
	isMoment := c.shown != nil && !c.falseSince.IsZero() && !c.isFalse(t.now)
	if isMoment && !c.saysMore() && !c.steady.Suspicion && classOf(c.steady) < bad {
		return c.steady
	}
	return c.last
}

// isFalse reports whether what the Node says of the condition has not been so for some
// time.
func (c *condition) isFalse(now time.Time) bool {
	return !c.falseSince.IsZero() && now.Sub(c.falseSince) >= falseAfter
}

// heed makes a report due when what a condition waits for is not what the Node
// shows, when its value has moved, or when its samples have said something else for
// some time. The mere value of a condition that is OK waits for the heartbeat. A suspicion that begins is told at once, since others decide by it.
// All else waits until the last report is written, and then for its turn.
func (s *State) heed(t *turn) {
	r, all := &s.report, news{}
	for i := range s.conditions {
		all = all.and(s.newsOf(t, &s.conditions[i]))
	}
	r.untold = r.untold || all.differs
	isTurn := func(reports int) bool { return t.now.Sub(r.news[reports-1]) >= newsWithin }
	mayWrite := len(r.conditions) == 0 && s.ledger.hasLanded()
	if !r.due && (all.isUrgent || mayWrite && (all.isOfBad && isTurn(newsEach) || all.differs && isTurn(1))) {
		copy(r.news[1:], r.news[:])
		r.due, r.news[0] = true, t.now
	}
}

// news is how a condition, or all, differ from what the Node shows.
type news struct {
	differs  bool // something else is waited for
	isOfBad  bool // the condition is not OK, and that is so or its value has moved
	isUrgent bool // a suspicion begins
}

func (n news) and(other news) news {
	return news{n.differs || other.differs, n.isOfBad || other.isOfBad, n.isUrgent || other.isUrgent}
}

func (s *State) newsOf(t *turn, c *condition) news {
	var shown rendered
	if c.shown != nil {
		shown = *c.shown
	}
	if !c.saysMore() && shown.outlook == (outlook{}) && c.falseSince.IsZero() {
		return news{} // as almost always
	}
	now := s.outlook(t, c)
	differs := !now.equals(shown.outlook) || c.isFalse(t.now)
	return news{
		differs:  differs,
		isOfBad:  c.debounce.Level > probes.OK && differs || c.hasMoved(shown.severity),
		isUrgent: now.suspicion != "" && shown.suspicion == "",
	}
}

// saysMore reports whether the Node condition says more than the value.
func (c *condition) saysMore() bool {
	return c.debounce.Level > probes.OK || c.request.braked != "" || c.last.Suspicion
}

// hasMoved reports whether the value is far from the one that the Node shows.
func (c *condition) hasMoved(shown int) bool {
	by := c.last.Severity - shown
	return c.debounce.Level > probes.OK && c.last.Level > probes.Unknown && (by >= moved || by <= -moved)
}

// follow takes in that the conditions were written, and that a heartbeat is due.
func (r *report) follow(in Inputs) {
	if in.Written {
		r.conditions = nil
	}
	r.due = r.due || in.Refresh
}

// render renders the conditions when they are due and every probe has taken a
// sample.
func (s *State) render(t *turn) {
	r := &s.report
	if !r.due || !s.conditions.allSeen() {
		return
	}
	if s.adopt(t) {
		r.due = false
		return
	}
	r.due, r.conditions = false, make([]corev1.NodeCondition, 0, len(s.conditions))
	for i := range s.conditions {
		c := &s.conditions[i]
		now, severity := s.outlook(t, c), c.last.Severity
		if c.last.Level == probes.Unknown && c.shown != nil {
			severity = c.shown.severity
		}
		shown, tells := c.render(t, now), c.toTell(t)
		if s.ledger.unrecorded {
			shown.Message += "; taintlet's record does not fit beside the Node's other annotations, so a restart would forget its taints and damping"
		}
		r.conditions = append(r.conditions, shown)
		c.shown = &rendered{now, severity, saidBy(tells)}
		c.compare(t.now)
	}
}

// decide gives what was decided a new revision, and has the record say to people
// what the conditions say now.
func (s *State) decide(t *turn) {
	s.ledger.decide(t.now)
	s.report.untold = false
	for i := range s.conditions {
		c := &s.conditions[i]
		c.told = c.tell(s.outlook(t, c), t.now)
	}
}

// retell decides the same once more where the record does not say what the
// conditions say, and reports whether it did. It is asked only while the Node is as
// it was decided, so that it repairs nothing.
func (s *State) retell(t *turn) bool {
	if !s.report.untold || len(s.report.conditions) == 0 || s.ledger.revision == 0 || s.ledger.unrecorded {
		return false
	}
	s.report.untold = false
	for i := range s.conditions {
		c := &s.conditions[i]
		if next := c.tell(s.outlook(t, c), t.now); next.recorded() != c.told.recorded() {
			s.decide(t)
			return true
		}
	}
	return false
}

// ReasonBraked is the reason of a Node condition whose taint the fleet brake holds
// back.
const ReasonBraked = "FleetBrake"

// conditionPrefix makes our condition types of the conditions' names.
const conditionPrefix = "Host"

// ConditionType returns the type of our Node condition.
func ConditionType(name probes.Condition) corev1.NodeConditionType {
	return corev1.NodeConditionType(conditionPrefix + string(name))
}

// conditionName returns the condition that a Node condition of ours is about.
func conditionName(kind corev1.NodeConditionType) (name probes.Condition, isOurs bool) {
	text, isOurs := strings.CutPrefix(string(kind), conditionPrefix)
	return probes.Condition(text), isOurs
}

// isOurs reports whether a Node condition's type is one of taintlet's.
func isOurs(kind corev1.NodeConditionType, policy *Policy) bool {
	name, found := conditionName(kind)
	return found && slices.ContainsFunc(policy.Conditions, func(c Condition) bool { return c.Name == name })
}
