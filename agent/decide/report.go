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

// conditionWrites is what our Node conditions say, and are to say.
type conditionWrites struct {
	// refresh: their heartbeat is due.
	refresh bool
	// told is what they say once they are written; none of a type: this process has not compared it
	// with the Node yet. It does not change while isPending: a message that moves with every sample
	// must not make every sample a write. It is replaced, never changed.
	told      []report
	isPending bool
	// updates meters the reports of differences.
	updates bucket
}

// follow takes in that the conditions were written, and that a heartbeat is due.
func (w *conditionWrites) follow(in Inputs) {
	w.isPending = w.isPending && !in.Written
	w.refresh = w.refresh || in.Refresh
}

// of returns the last report of the Node condition of a type; nil: there is none yet.
func (w *conditionWrites) of(kind string) *report {
	for i := range w.told {
		if w.told[i].Type == kind {
			return &w.told[i]
		}
	}
	return nil
}

// pending are the conditions that are being written.
func (w *conditionWrites) pending() (all []taints.NodeCondition) {
	if w.isPending {
		for i := range w.told {
			all = append(all, w.told[i].NodeCondition)
		}
	}
	return all
}

// report is what one Node condition says.
type report struct {
	taints.NodeCondition
	level probes.Level
	// value is the message of the sample, with which the message begins. clauses are the other part,
	// without what changes too often to be told for that alone: removals, since nobody makes this
	// agent write more by removing taints, and how many peers brake.
	value, clauses string
	// gist is what a machine reads of it beside the status.
	gist string
	at   time.Time // when it was told
	// isSuspicion: the host suspects itself. Its peers read that.
	isSuspicion bool
	// held is the cause that holds the condition back, and from the change that it holds back.
	held describe.Hold
	from string
}

// isLike reports whether both say the same, but for the value.
func (r *report) isLike(other *report) bool {
	return r.Status == other.Status && r.gist == other.gist && r.clauses == other.clauses
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

// writeConditions has the conditions written when every probe has taken a sample: for their
// heartbeat, for a difference that cannot wait, or for a difference for which there are enough
// tokens. landed: the Node had the last decision when this Step began. The mere value of a condition
// that is OK waits for the heartbeat. A difference that may wait does so until the last report is
// written, and then for its tokens.
func (s *State) writeConditions(t *turn, landed bool) {
	if slices.ContainsFunc(s.conditions, func(c condition) bool { return !c.isSeen() }) {
		return
	}
	w, need := &s.writes, notYet
	if w.refresh {
		need = atOnce
	}
	for i := 0; i <= len(s.conditions) && need > atOnce; i++ {
		_, tokens := s.nextReport(t, i)
		need = min(need, tokens)
	}
	if need > atOnce {
		if !t.Adopted.IsZero() || !landed || w.isPending || w.updates.left(toldAgain, t.now) < need {
			return
		}
		w.updates.take(toldAgain, t.now)
	}
	told := make([]report, len(s.conditions)+1)
	for i := range told {
		told[i], _ = s.nextReport(t, i)
	}
	t.Adopted = time.Time{} // all are written
	w.refresh, w.isPending, w.told = false, true, told
}

// nextReport returns what the i-th Node condition is to say now, and how many tokens must be there
// before that is written. The last one is that of repairs.
func (s *State) nextReport(t *turn, i int) (next report, tokens int) {
	if i == len(s.conditions) {
		next = s.reportRepair(t)
		return next, s.tokensFor(t, &next)
	}
	c := &s.conditions[i]
	next = s.report(t, c)
	tokens = s.tokensFor(t, &next)
	switch told := s.writes.of(next.Type); {
	case tokens == notYet:
		c.otherSince = time.Time{}
		if s.isStale(c, told, t.now) {
			tokens = ofBad
		}
	case tokens > atOnce && c.isMoment(told, &next, t.now):
		next, tokens = *told, notYet
		next.at = t.now
	}
	return next, tokens
}

// tokensFor is how many tokens must be there before a Node condition is written. A suspicion that
// begins needs none, since the peers decide by it.
func (s *State) tokensFor(t *turn, next *report) int {
	stands := t.in.Node.Condition(next.Type)
	switch told := s.writes.of(next.Type); {
	case told == nil && s.adopt(t, next):
		return notYet
	case told == nil || told.level != next.level || next.isSuspicion && !told.isSuspicion:
		return atOnce
	case stands == nil || stands.Status != told.Status && !s.writes.isPending: // somebody else wrote it
		return ofBad
	case next.isLike(told):
		return notYet
	case next.level > probes.OK:
		return ofBad
	}
	return ofOK
}

// isMoment reports whether the samples of a condition that is OK say something else for a moment
// only. A heartbeat must not tell noise, which would be told again when it is over.
func (c *condition) isMoment(told, next *report, now time.Time) bool {
	isMore := c.debounce.Level > probes.OK || c.onset.braked != "" || c.last.Suspicion // than the value
	if isMore || told.isSuspicion || told.held != next.held || next.isLike(told) || next.clauses != told.clauses {
		return false
	}
	if c.otherSince.IsZero() {
		c.otherSince = now
	}
	return now.Sub(c.otherSince) < otherFor
}

// isStale reports whether the Node tells a value of a condition that is not OK for longer than
// people may take it for the present one.
func (s *State) isStale(c *condition, told *report, now time.Time) bool {
	if c.debounce.Level <= probes.OK || c.last.Level == probes.Unknown || told.value == c.last.Message {
		return false
	}
	hash := fnv.New32a()
	hash.Write([]byte(s.active.name)) // what a fleet has at once, it does not tell anew at once
	return now.Sub(told.at) >= staleAfter+time.Duration(hash.Sum32())*time.Microsecond%staleSpread
}

// adopt takes what the Node says for told, where this process would only say the same again, and
// reports whether it did. So a restart costs one write, that of the record, and the heartbeat goes
// on from the time that stands there. As between two heartbeats, the value, with which a message
// begins, may be older than the newest sample. A time in the future is none of this boot's.
func (s *State) adopt(t *turn, next *report) bool {
	stands := t.in.Node.Condition(next.Type)
	if stands == nil || t.now.Sub(stands.LastHeartbeatTime) >= t.policy.Heartbeat || stands.LastHeartbeatTime.After(t.now.Add(time.Second)) ||
		stands.Status != next.Status || stands.Reason != next.Reason || !strings.HasSuffix(stands.Message, strings.TrimPrefix(next.Message, next.value)) {
		return false
	}
	s.writes.told = append(slices.Clip(s.writes.told), *next)
	if t.Adopted.IsZero() || stands.LastHeartbeatTime.Before(t.Adopted) {
		t.Adopted = stands.LastHeartbeatTime
	}
	return true
}

// isSummaryDue reports whether the record does not say what the conditions say that are
// being written, or which configuration is in force. The first record comes with the
// conditions. It is asked only while the Node is as it was decided, so that nothing is
// repaired by that.
func (s *State) isSummaryDue(t *turn) bool {
	hasRecord, isWriting := s.ledger.revision != 0, s.writes.isPending
	if s.ledger.unrecorded || t.in.Node.recordErr != nil || !hasRecord && !isWriting {
		return false
	}
	if t.in.Node.record.Config != t.policy.Hash {
		return true
	}
	return hasRecord && isWriting && slices.ContainsFunc(s.conditions, func(c condition) bool { return !c.recorded.readsLike(s.summarize(t, &c)) })
}

// report returns what the Node condition of a condition is to say now.
func (s *State) report(t *turn, c *condition) report {
	d := s.describe(t, c)
	r := report{
		NodeCondition: d.Node(ConditionType(c.name), t.now), level: d.Level, value: c.last.Message, at: t.now,
		isSuspicion: d.Level == probes.OK && c.last.Suspicion && c.last.Level == probes.Unknown,
		held:        d.Held, from: FromTaint,
	}
	switch {
	case d.Evicting:
		r.from = FromEviction
	case d.Held == describe.HeldAwaitsRemoval, d.Held == describe.HeldWriteBudget && !d.Clears.IsZero():
		r.from = FromClearing
	}
	if r.clauses = r.Message[len(r.value):]; d.Braked != "" || d.Removals.Count > 0 {
		d.Braked, d.Removals = "", describe.Removals{}
		r.clauses = d.Node("", t.now).Message[len(r.value):]
	}
	switch {
	case d.IsBad && d.Level > probes.OK:
		r.gist = r.Reason + c.last.Culprit.Who()
	case c.last.Level != probes.OK || c.last.Clears == "" || d.Level > probes.OK:
		// How near a good sample is to its threshold is part of its value: on a host that is near
		// one all the time, it changes with the noise.
		r.gist = r.Reason
	}
	return r
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

// starting says that the start-up taint waits for this condition; empty: it does not.
func (s *State) starting(t *turn, c *condition) string {
	if !s.IsStarting() {
		return ""
	}
	return describe.StartupWaits(t.policy.Startup.Taint, s.startup.since, s.awaits(t, c), t.now)
}

// reportRepair returns what the Node condition for repairers is to say now.
func (s *State) reportRepair(t *turn) report {
	r := report{NodeCondition: s.describeRepair(t).Node(RepairType, t.now), level: probes.OK, at: t.now}
	if r.clauses = r.Message; r.Status == taints.ConditionTrue {
		r.level = probes.Degraded
	}
	return r
}

// describe returns what the Node condition of a condition is rendered from.
func (s *State) describe(t *turn, c *condition) describe.Condition {
	awaitsRemoval := slices.ContainsFunc(s.ledger.desired, func(d DesiredTaint) bool { return d.Condition == c.name && d.manual })
	d := describe.Condition{Level: c.debounce.Level, Newest: c.last, IsBad: classOf(c.last) >= bad, Manual: awaitsRemoval, Starting: s.starting(t, c), Unrecorded: s.ledger.unrecorded}
	if d.Level <= probes.OK {
		d.Soft, d.Braked = s.softShown(c), c.onset.braked
		switch {
		case d.Braked != "":
			d.Held = describe.HeldFleetBrake
		case d.Manual:
			d.Held = describe.HeldAwaitsRemoval
		}
		return d
	}
	debounce := t.policy.debounce(c.name)
	d.SetFor, d.SetBy, d.SetAt = c.reason(), c.decisive.Message, c.debounce.SetAt
	d.Blind, d.Removals = !c.debounce.unknownSince.IsZero(), recent(c.removals, t.now)
	if s.KeepFails(t.policy, c.name) {
		d.KeepFails = describe.KeepFailing
	}
	d.Good, d.ClearAfter = c.last.Clears, c.debounce.ClearAfter(debounce)
	d.NoRule = noRule(t.policy, c)
	if d.Level == probes.Critical {
		d.CriticalAt = c.since
	}
	if classOf(c.last) == clear && c.decisive.Clears != "" {
		d.Good = c.decisive.Clears // of what is to become good
	}
	if c.debounce.isDamped(debounce) {
		d.Damped = c.debounce.flaps()
	}
	if !c.isObserved() {
		d.Held, d.Until, d.Evicting = s.whyNot(t, c)
	} else if d.Would = s.would(c); d.Would != "" {
		d.Held = describe.HeldObserved
	}
	if c.debounce.isClearing() {
		d.Clears = c.clearsAt(t.policy, t.now)
		if d.Held == "" && d.Clears.After(c.debounce.goodAt(debounce, t.now)) {
			d.Held, d.Until = describe.HeldWriteBudget, d.Clears
		}
	}
	return d
}

// noRule says that no rule asks for a taint for a reason that the condition has; empty: one does.
func noRule(policy *Policy, c *condition) string {
	switch {
	case slices.ContainsFunc(policy.Rules, func(r Rule) bool { return r.Level == probes.Degraded && c.isFor(&r) }):
		return ""
	case policy.HasRule(c.name, probes.Degraded):
		return describe.NoRule + " for " + c.reason()
	}
	return describe.NoRule
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

const (
	// staleAfter is how long the Node shows an old value of a condition that is not OK. The name of
	// the process adds up to staleSpread.
	staleAfter, staleSpread = time.Minute, 15 * time.Second
	// otherFor is how long samples must have another reason or level until it is written. With a
	// sample each few seconds, the Node is right within 30 s.
	otherFor = 20 * time.Second
)
