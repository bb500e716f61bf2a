package decide

import (
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// report is what our Node conditions are to say.
type report struct {
	// refresh: their heartbeat is due.
	refresh bool
	// pending are being written. They do not change until they are written: a
	// message that moves with every sample must not make every sample a write.
	pending []taints.NodeCondition
	// news are when the conditions were last written for news alone, the newest first.
	news [newsEach]time.Time
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
	level      probes.Level
	since      time.Time
	severity   int // of its value
	said       said
	unrecorded bool
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

// reported returns the sample that the Node condition is to say: the newest one, or while
// a condition is OK and says something else for a moment only, the newest that says the
// same as the Node. A heartbeat must not tell noise, which would be told again when it
// is over.
func (c *condition) reported(t *turn) probes.Observation {
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

// isReportDue reports whether the conditions are to be written: for their heartbeat, for
// what they have to say at once, or for news whose turn it is. landed: the Node had the
// last decision when this Step began. The mere value of a condition that is OK waits
// for the heartbeat. A suspicion that begins is told at once, since others decide by
// it. All other news waits until the last report is written, and then for its turn.
func (s *State) isReportDue(t *turn, landed bool) bool {
	r, all := &s.report, news{isNew: s.report.refresh}
	for i := range s.conditions {
		all = all.and(s.newsOf(t, &s.conditions[i]))
	}
	if all.isNew || !t.Adopted.IsZero() {
		return all.isNew
	}
	isTurn := func(reports int) bool { return t.now.Sub(r.news[reports-1]) >= newsWithin }
	mayWrite := len(r.pending) == 0 && landed
	if !all.isUrgent && !(mayWrite && (all.isOfBad && isTurn(newsEach) || all.differs && isTurn(1))) {
		return false
	}
	copy(r.news[1:], r.news[:])
	r.news[0] = t.now
	return true
}

// news is how a condition, or all, differ from what the Node shows.
type news struct {
	isNew    bool // the Node shows another level, or this process has shown nothing yet
	differs  bool // something else is waited for
	isOfBad  bool // the condition is not OK, and that is so or its value has moved
	isUrgent bool // a suspicion begins
}

func (n news) and(other news) news {
	return news{n.isNew || other.isNew, n.differs || other.differs, n.isOfBad || other.isOfBad, n.isUrgent || other.isUrgent}
}

func (s *State) newsOf(t *turn, c *condition) news {
	if c.shown == nil {
		return news{isNew: !s.adopt(t, c)}
	}
	shown := c.shown
	if shown.level != c.debounce.Level || shown.since != c.since || shown.unrecorded != s.ledger.unrecorded {
		return news{isNew: true}
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

// adopt takes what the Node says of a condition for shown, where this process would
// only say the same again, and reports whether it did. So a restart costs one write,
// that of the record, and the heartbeat goes on from the time that stands there. As
// between two heartbeats, the value, with which a message begins, may be older than the
// newest sample. A time in the future is none of this boot's.
func (s *State) adopt(t *turn, c *condition) bool {
	stands := t.in.Node.Condition(ConditionType(c.name))
	if stands == nil || t.now.Sub(stands.LastHeartbeatTime) >= t.policy.Heartbeat || stands.LastHeartbeatTime.After(t.now.Add(time.Second)) {
		return false
	}
	o := s.outlook(t, c)
	next := s.render(t, c, o, c.last)
	if stands.Status != next.Status || stands.Reason != next.Reason || !strings.HasSuffix(stands.Message, strings.TrimPrefix(next.Message, c.last.Message)) {
		return false
	}
	s.show(c, o, c.last)
	if t.Adopted.IsZero() || stands.LastHeartbeatTime.Before(t.Adopted) {
		t.Adopted = stands.LastHeartbeatTime
	}
	return true
}

// show remembers what the Node's condition says.
func (s *State) show(c *condition, o outlook, reported probes.Observation) {
	severity := c.last.Severity
	if c.last.Level == probes.Unknown && c.shown != nil {
		severity = c.shown.severity
	}
	c.shown = &rendered{o, c.debounce.Level, c.since, severity, saidBy(reported), s.ledger.unrecorded}
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
		r.pending = nil
	}
	r.refresh = r.refresh || in.Refresh
}

// renderAll renders the conditions when they are due and every probe has taken a
// sample.
func (s *State) renderAll(t *turn, landed bool) {
	if !s.conditions.allSeen() || !s.isReportDue(t, landed) {
		return
	}
	t.Adopted = time.Time{} // all are written
	r := &s.report
	r.refresh, r.pending = false, make([]taints.NodeCondition, 0, len(s.conditions))
	for i := range s.conditions {
		c := &s.conditions[i]
		now, reported := s.outlook(t, c), c.reported(t)
		r.pending = append(r.pending, s.render(t, c, now, reported))
		s.show(c, now, reported)
		c.compare(t.now)
	}
}

// isSummaryDue reports whether the record does not say what the conditions say that are
// being written. It is asked only while the Node is as it was decided, so that nothing
// is repaired by that.
func (s *State) isSummaryDue(t *turn) bool {
	if len(s.report.pending) == 0 || s.ledger.revision == 0 || s.ledger.unrecorded {
		return false
	}
	return slices.ContainsFunc(s.conditions, func(c condition) bool { return !c.told.equals(c.tell(s.outlook(t, &c), t.now)) })
}

// ReasonBraked is the reason of a Node condition whose taint the fleet brake holds
// back.
const ReasonBraked = "FleetBrake"

// conditionPrefix makes our condition types of the conditions' names.
const conditionPrefix = "Host"

// ConditionType returns the type of our Node condition.
func ConditionType(name probes.Condition) string {
	return string(conditionPrefix + string(name))
}

// conditionName returns the condition that a Node condition of ours is about.
func conditionName(kind string) (name probes.Condition, isOurs bool) {
	text, isOurs := strings.CutPrefix(string(kind), conditionPrefix)
	return probes.Condition(text), isOurs
}

// isOurs reports whether a Node condition's type is one of taintlet's.
func isOurs(kind string, policy *Policy) bool {
	name, found := conditionName(kind)
	return found && slices.ContainsFunc(policy.Conditions, func(c Condition) bool { return c.Name == name })
}
