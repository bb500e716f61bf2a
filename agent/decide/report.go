package decide

import (
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// follow takes in that the conditions were written, and that a heartbeat is due.
func (r *conditionWrites) follow(in Inputs) {
	if in.Written {
		r.pending = nil
	}
	r.refresh = r.refresh || in.Refresh
}

// areConditionsDue reports whether the conditions are to be written: for their heartbeat, for
// what they have to say at once, or for a difference whose turn it is. landed: the Node had the
// last decision when this Step began. The mere value of a condition that is OK waits
// for the heartbeat. A suspicion that begins is reported at once, since others decide by
// it. Every other difference waits until the last report is written, and then for its turn.
func (s *State) areConditionsDue(t *turn, landed bool) bool {
	r, all := &s.writes, s.repairDifference(t)
	for i := range s.conditions {
		all = max(all, s.differenceOf(t, &s.conditions[i]))
	}
	if r.refresh || all == isNew {
		return true
	}
	before := r.updates[0] // what may wait for its turn waits since this one
	if all == ofBad {
		before = r.updates[updatesEach-1]
	}
	mayWrite := len(r.pending) == 0 && landed && t.now.Sub(before) >= updatesWithin
	if all == same || !t.Adopted.IsZero() || all < urgent && !mayWrite {
		return false
	}
	copy(r.updates[1:], r.updates[:])
	r.updates[0] = t.now
	return true
}

func (s *State) differenceOf(t *turn, c *condition) difference {
	if c.shown == nil {
		if s.adopt(t, c) {
			return same
		}
		return isNew
	}
	shown := c.shown
	switch {
	case !c.isShown(s.ledger.unrecorded):
		return isNew
	case t.in.Node.Condition(ConditionType(c.name)) == nil:
		return ofBad // somebody removed it
	case s.isQuiet(c): // as almost always
		return same
	}
	now := s.outlook(t, c)
	isOther := !now.ReadsLike(shown.Outlook) || c.isFalse(t.now)
	switch {
	case now.Suspicion != "" && shown.Suspicion == "":
		return urgent
	case c.debounce.Level > probes.OK && isOther || s.isStale(c, t.now) || c.hasMoved():
		return ofBad
	case isOther:
		return differs
	}
	return same
}

// isShown reports whether the Node shows the condition's level, and whether the record has it.
func (c *condition) isShown(unrecorded bool) bool {
	return c.shown.level == c.debounce.Level && c.shown.since.Equal(c.since) && c.shown.unrecorded == unrecorded
}

// isQuiet reports whether a condition says no more than its value, as on the Node.
func (s *State) isQuiet(c *condition) bool {
	return !c.saysMore() && s.softShown(c) == "" && !s.awaitsRemoval(c) && !s.IsStarting() && c.shown.Outlook == (describe.Outlook{}) && c.falseSince.IsZero()
}

// isStale reports whether the Node tells a value of a condition that is not OK for longer than
// people may take it for the present one.
func (s *State) isStale(c *condition, now time.Time) bool {
	if c.debounce.Level <= probes.OK || c.last.Level == probes.Unknown || c.shown.sample.Message == c.last.Message {
		return false
	}
	hash := fnv.New32a()
	hash.Write([]byte(s.active.name)) // what a fleet has at once, it does not tell anew at once
	return now.Sub(c.shown.at) >= staleAfter+time.Duration(hash.Sum32())*time.Microsecond%staleSpread
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
	next := s.describe(t, c, o, c.last).Node(ConditionType(c.name), t.now)
	if stands.Status != next.Status || stands.Reason != next.Reason || !strings.HasSuffix(stands.Message, strings.TrimPrefix(next.Message, c.last.Message)) {
		return false
	}
	s.show(c, o, c.last, t.now)
	if t.Adopted.IsZero() || stands.LastHeartbeatTime.Before(t.Adopted) {
		t.Adopted = stands.LastHeartbeatTime
	}
	return true
}

// show remembers what the Node's condition says.
func (s *State) show(c *condition, o describe.Outlook, reported probes.Observation, now time.Time) {
	c.shown = &rendered{o, c.debounce.Level, c.since, reported, s.ledger.unrecorded, now}
}

// writeConditions renders the conditions when they are due and every probe has taken a
// sample.
func (s *State) writeConditions(t *turn, landed bool) {
	if !s.conditions.allSeen() || !s.areConditionsDue(t, landed) {
		return
	}
	t.Adopted = time.Time{} // all are written
	r := &s.writes
	r.refresh, r.pending = false, make([]taints.NodeCondition, 0, len(s.conditions)+1)
	for i := range s.conditions {
		c := &s.conditions[i]
		now, reported := s.outlook(t, c), c.reported(t.now)
		r.pending = append(r.pending, s.describe(t, c, now, reported).Node(ConditionType(c.name), t.now))
		s.show(c, now, reported, t.now)
		c.compare(t.now)
	}
	r.pending = append(r.pending, s.describeRepair(t).Node(RepairType, t.now)) // the last: see repairDifference
}

// isSummaryDue reports whether the record does not say what the conditions say that are
// being written, or which configuration is in force. The first record comes with the
// conditions. It is asked only while the Node is as it was decided, so that nothing is
// repaired by that.
func (s *State) isSummaryDue(t *turn) bool {
	hasRecord, isWriting := s.ledger.revision != 0, len(s.writes.pending) > 0
	if s.ledger.unrecorded || t.in.Node.recordErr != nil || !hasRecord && !isWriting {
		return false
	}
	if t.in.Node.record.Config != t.policy.Hash {
		return true
	}
	return hasRecord && isWriting && slices.ContainsFunc(s.conditions, func(c condition) bool { return !c.summary.readsLike(c.summarize(s.outlook(t, &c), s.boot, t.now)) })
}

// outlook returns what a condition waits for now.
func (s *State) outlook(t *turn, c *condition) describe.Outlook {
	if c.debounce.Level <= probes.OK {
		o := describe.Outlook{Suspicion: c.suspicion(), Soft: s.softShown(c)}
		switch {
		case c.onset.braked != "":
			o.Held = describe.HeldFleetBrake
		case s.awaitsRemoval(c):
			o.Held = describe.HeldAwaitsRemoval
		}
		o.Starting = s.starting(t, c)
		return o
	}
	o := describe.Outlook{Starting: s.starting(t, c), Blind: !c.debounce.unknownSince.IsZero(), Removals: recent(c.removals, t.now)}
	if classOf(c.last) >= bad {
		o.Reason, o.Culprit = c.last.Reason, c.last.Culprit.Who()
	}
	o.KeepFails = s.KeepFails(t.policy, c.name)
	if s.pause.observes(c.name) {
		if o.Would = s.would(c); o.Would != "" {
			o.Held = describe.HeldObserved
		}
	} else {
		o.Held, o.Until, o.Evicting = s.whyNot(t, c)
	}
	if c.debounce.isClearing() {
		o.Clears = c.clearsAt(t.policy, t.now)
		if o.Held == "" && o.Clears.After(c.debounce.goodAt(t.policy.debounce(c.name), t.now)) {
			o.Held, o.Until = describe.HeldWriteBudget, o.Clears
		}
	}
	return o
}

// would names the pairs of the rules that ask for a taint of an observed condition now.
func (s *State) would(c *condition) string {
	var pairs []string // of several rules for one pair, one
	for i := range s.ledger.policy.Rules {
		if rule := &s.ledger.policy.Rules[i]; rule.Level > probes.OK && !rule.IsGraver() && s.asks(c, rule) {
			pairs = append(pairs, rule.Taint.Pair().String())
		}
	}
	return strings.Join(pairs, " and ")
}

// softShown returns the taint before Degraded that is desired, for people; empty: there is none.
func (s *State) softShown(c *condition) string {
	for _, d := range s.ledger.desired {
		if d.Condition == c.name && d.IsSoft() {
			taint := d.Taint()
			return taint.String()
		}
	}
	return ""
}

// awaitsRemoval reports whether a taint of the condition stays until somebody removes it.
func (s *State) awaitsRemoval(c *condition) bool {
	return slices.ContainsFunc(s.ledger.desired, func(d DesiredTaint) bool { return d.Condition == c.name && d.manual })
}

// starting returns what keeps the start-up taint on the Node, if that is this condition.
func (s *State) starting(t *turn, c *condition) describe.Starting {
	if !s.IsStarting() {
		return describe.Starting{}
	}
	missing := s.awaits(t, c)
	if missing == "" {
		return describe.Starting{}
	}
	return describe.Starting{Taint: t.policy.Startup.Taint, Since: s.startup.since, Missing: missing}
}

// describe returns what the Node condition of a condition is rendered from.
func (s *State) describe(t *turn, c *condition, o describe.Outlook, reported probes.Observation) describe.Condition {
	debounce := t.policy.debounce(c.name)
	d := describe.Condition{
		Outlook: o, Level: c.debounce.Level, Newest: c.last, Reported: reported, IsBad: classOf(c.last) >= bad,
		SetFor: c.reason(), SetBy: c.decisive.Message, SetAt: c.debounce.SetAt, Good: c.last.Clears,
		ClearAfter: c.debounce.ClearAfter(debounce), NoRule: !s.isRuled(t, c), Manual: s.awaitsRemoval(c),
		Braked: c.onset.braked, Unrecorded: s.ledger.unrecorded,
	}
	if d.NoRule && t.policy.HasRule(c.name, probes.Degraded) {
		d.NoRuleFor = c.reason()
	}
	if c.debounce.Level == probes.Critical {
		d.CriticalAt = c.since
	}
	if classOf(c.last) == clear && c.debounce.Level > probes.OK && c.decisive.Clears != "" {
		d.Good = c.decisive.Clears // of what is to become good
	}
	if c.debounce.isDamped(debounce) {
		d.Damped = c.debounce.flaps()
	}
	return d
}

// isRuled reports whether a rule asks for a taint for a reason that the condition has.
func (s *State) isRuled(t *turn, c *condition) bool {
	return slices.ContainsFunc(t.policy.Rules, func(r Rule) bool { return r.Level == probes.Degraded && c.isFor(&r) })
}

// rendered is what a Node condition was rendered with.
type rendered struct {
	describe.Outlook
	level      probes.Level
	since      time.Time
	sample     probes.Observation
	unrecorded bool
	at         time.Time // when it was told
}

// gist is what a sample says in one word.
type gist struct {
	level  probes.Level
	reason string
}

// gistOf returns what a sample says. How near a good sample is to its threshold is part of
// its value: on a host that is near one all the time, it changes with the noise.
func gistOf(o probes.Observation) gist {
	if o.Level == probes.OK && o.Clears != "" {
		return gist{level: probes.OK}
	}
	return gist{o.Level, o.Reason}
}

// flapsFor is how long a condition that is OK again shows how often it was set.
const flapsFor = time.Hour

// summary is what the record says of a condition to people. But for FaultSince,
// nothing is decided by it. It
// changes only when the record is written for another cause, or when the Node's condition
// is rendered anew. Times are those of the wall clock.
type summary struct {
	// Since is when the level last changed, ClearsAt when the condition clears if
	// every sample is good until then.
	Since    string `json:"since,omitempty"`
	ClearsAt string `json:"clearsAt,omitempty"`
	// HeldBy says what holds the condition back.
	HeldBy describe.Hold `json:"heldBy,omitempty"`
	// Flaps is how often the condition was set most recently.
	Flaps int `json:"flaps,omitempty"`
	// Removals is how often others removed its taints, RemovedBy the field manager of the
	// newest removal, and RemovedAt when that was noticed.
	Removals  int    `json:"removals,omitempty"`
	RemovedBy string `json:"removedBy,omitempty"`
	RemovedAt string `json:"removedAt,omitempty"`
	// FaultSince is since when there is a fault that a repair of the host cures, from the
	// host's boot. A restarted agent reads it.
	FaultSince time.Duration `json:"faultSince,omitempty"`
}

// readsLike reports whether both say the same. For the flaps or the removals alone the
// record is not written.
func (s summary) readsLike(other summary) bool {
	s.Flaps, s.Removals, s.RemovedBy, s.RemovedAt = other.Flaps, other.Removals, other.RemovedBy, other.RemovedAt
	return s == other
}

// conditionWrites is what our Node conditions are to say.
type conditionWrites struct {
	// refresh: their heartbeat is due.
	refresh bool
	// pending are being written. They do not change until they are written: a
	// message that moves with every sample must not make every sample a write.
	pending []taints.NodeCondition
	// updates are when the conditions were last written for a difference alone, the newest first.
	updates [updatesEach]time.Time
}

const (
	// updatesEach is how many reports in updatesWithin are due to a difference alone. What comes
	// and goes must not make every sample a write. For what a condition that is OK
	// says, half of them. A suspicion that begins is beyond that.
	updatesEach, updatesWithin = 2, time.Minute
	// staleAfter and up to staleSpread more, by the name of the process, is how long the value
	// of a condition that is not OK stands on the Node while samples have another one.
	staleAfter, staleSpread = time.Minute, 15 * time.Second
	// moved is how far the severity moves until the value is told anew: a quarter of
	// the way from the threshold, which is 50, to the worst.
	moved = 13
	// falseAfter is how long samples must say something else than the Node until it is
	// told: another reason, or another level. With a sample each few seconds, what the
	// Node says is true within 30 s.
	falseAfter = 20 * time.Second
)

// difference is how a condition, or all, differ from what the Node shows: the greatest.
type difference int

const (
	same    difference = iota
	differs            // something else is waited for
	ofBad              // the condition is not OK, and that is so or its value has moved
	urgent             // a suspicion begins
	isNew              // the Node shows another level, or this process has shown nothing yet
)
