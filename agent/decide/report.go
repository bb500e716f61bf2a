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

// toldAgain is the budget of writes that only a difference causes and that may wait: a flapping
// difference must not make every sample a write.
var toldAgain = WriteBudget{Burst: 2, Interval: Duration{time.Minute}} //nolint:gochecknoglobals // constant

// How many tokens of that budget must be there before a difference is written. Differences of a
// condition that is OK are written half as often.
const (
	atOnce = iota
	ofBad
	ofOK
	notYet // it waits for the heartbeat
)

// areConditionsDue reports whether the conditions are to be written: for their heartbeat, for a
// difference that cannot wait, or for a difference for which there are enough tokens. landed: the
// Node had the last decision when this Step began. The mere value of a condition that is OK waits
// for the heartbeat. A difference that may wait does so until the last report is written, and then
// for its tokens.
func (s *State) areConditionsDue(t *turn, landed bool) bool {
	r, need := &s.writes, s.tokensForRepair(t)
	for i := range s.conditions {
		s.conditions[i].hear(t.now)
		need = min(need, s.tokensFor(t, &s.conditions[i]))
	}
	switch {
	case r.refresh || need == atOnce:
		return true
	case !t.Adopted.IsZero() || !landed || len(r.pending) > 0 || r.updates.left(toldAgain, t.now) < need:
		return false
	}
	return r.updates.take(toldAgain, t.now)
}

// tokensFor is how many tokens must be there before the condition is written. A suspicion that begins
// needs none, since the peers decide by it.
func (s *State) tokensFor(t *turn, c *condition) int {
	shown, isBad := c.shown, c.debounce.Level > probes.OK
	switch {
	case shown == nil && s.adopt(t, c):
		return notYet
	case shown == nil || shown.level != c.debounce.Level:
		return atOnce
	case t.in.Node.Condition(ConditionType(c.name)) == nil: // somebody removed it
		return ofBad
	}
	now := s.outlook(t, c)
	isOther := !now.ReadsLike(shown.Outlook) || !c.saysMore() && gistOf(c.said) != shown.gist
	switch {
	case now.Unrecorded != shown.Unrecorded || now.Suspicion != "" && shown.Suspicion == "":
		return atOnce
	case isBad && isOther || s.isStale(c, t.now):
		return ofBad
	case isOther:
		return ofOK
	}
	return notYet
}

// isStale reports whether the Node tells a value of a condition that is not OK for longer than
// people may take it for the present one.
func (s *State) isStale(c *condition, now time.Time) bool {
	if c.debounce.Level <= probes.OK || c.last.Level == probes.Unknown || c.shown.message == c.last.Message {
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
	next := s.describe(t, c, o).Node(ConditionType(c.name), t.now)
	if stands.Status != next.Status || stands.Reason != next.Reason || !strings.HasSuffix(stands.Message, strings.TrimPrefix(next.Message, c.said.Message)) {
		return false
	}
	s.show(c, o, t.now)
	if t.Adopted.IsZero() || stands.LastHeartbeatTime.Before(t.Adopted) {
		t.Adopted = stands.LastHeartbeatTime
	}
	return true
}

// show remembers what the Node's condition says.
func (s *State) show(c *condition, o describe.Outlook, now time.Time) {
	c.shown = &rendered{o, c.debounce.Level, gistOf(c.said), c.said.Message, now}
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
		now := s.outlook(t, c)
		r.pending = append(r.pending, s.describe(t, c, now).Node(ConditionType(c.name), t.now))
		s.show(c, now, t.now)
	}
	r.pending = append(r.pending, s.describeRepair(t).Node(RepairType, t.now)) // the last: see tokensForRepair
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
		o := describe.Outlook{Suspicion: c.suspicion(), Soft: s.softShown(c), Unrecorded: s.ledger.unrecorded}
		switch {
		case c.onset.braked != "":
			o.Held = describe.HeldFleetBrake
		case s.awaitsRemoval(c):
			o.Held = describe.HeldAwaitsRemoval
		}
		o.Starting = s.starting(t, c)
		return o
	}
	o := describe.Outlook{Starting: s.starting(t, c), Blind: !c.debounce.unknownSince.IsZero(), Removals: recent(c.removals, t.now), Unrecorded: s.ledger.unrecorded}
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

// awaitsRemoval reports whether a taint of the condition stays until an operator removes it.
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
func (s *State) describe(t *turn, c *condition, o describe.Outlook) describe.Condition {
	debounce := t.policy.debounce(c.name)
	d := describe.Condition{
		Outlook: o, Level: c.debounce.Level, Newest: c.said, IsBad: classOf(c.last) >= bad,
		SetFor: c.reason(), SetBy: c.decisive.Message, SetAt: c.debounce.SetAt, Good: c.last.Clears,
		ClearAfter: c.debounce.ClearAfter(debounce), NoRule: !s.isRuled(t, c), Manual: s.awaitsRemoval(c),
		Braked: c.onset.braked,
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
	level   probes.Level
	gist    gist
	message string    // of the sample
	at      time.Time // when it was written
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

// summary is what the record says of a condition to people. But for FaultSince, nothing is decided
// by it. It changes only when the record is written for another cause, or when the Node's condition
// is rendered again. Times are those of the wall clock.
type summary struct {
	// Since is when the level last changed, ClearsAt when the condition clears if
	// every sample is good until then.
	Since    wallTime `json:"since,omitzero"`
	ClearsAt wallTime `json:"clearsAt,omitzero"`
	// HeldBy says what holds the condition back.
	HeldBy describe.Hold `json:"heldBy,omitempty"`
	// Flaps is how often the condition was set most recently.
	Flaps int `json:"flaps,omitempty"`
	// Removals is how often others removed its taints, RemovedBy the field manager of the
	// newest removal, and RemovedAt when that was noticed.
	Removals  int      `json:"removals,omitempty"`
	RemovedBy string   `json:"removedBy,omitempty"`
	RemovedAt wallTime `json:"removedAt,omitzero"`
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
	// updates meters the reports of differences.
	updates bucket
}

const (
	// staleAfter is how long the Node shows an old value of a condition that is not OK. The name of
	// the process adds up to staleSpread.
	staleAfter, staleSpread = time.Minute, 15 * time.Second
	// otherFor is how long samples must have another reason or level until it is written. With a
	// sample each few seconds, the Node is right within 30 s.
	otherFor = 20 * time.Second
)
