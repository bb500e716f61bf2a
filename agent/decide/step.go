package decide

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Decision is what one Step came to.
type Decision struct {
	// Change is what the Node lacks; nil when it lacks nothing.
	Change *taints.Change
	// Notices tell what happened, in order.
	Notices []Notice
	// Slot is what is wished of the eviction slot.
	Slot SlotWish
}

// Step takes in what is new and returns what to write, if anything. The same
// inputs give the same answer; asking again before the write has landed gives
// the same Change.
func Step(cfg *config.Config, s State, in Inputs, now time.Time) (State, Decision) {
	var d Decision
	s.bucket = s.bucket.within(cfg.WriteBudget, now)
	if in.Node != nil && s.mayTakeOver(cfg, in.Node, now, &d) {
		s = s.restore(cfg, in.Node, now, &d)
	}
	for _, o := range in.Observations {
		s = s.observe(cfg, o, in.Slot, now, &d)
	}
	if in.Written {
		s.report = nil
	}
	if in.Refresh {
		s.conditionsDue, s.settled = true, nil
	}
	if in.Node != nil && s.restored && !s.readOnly && !s.isSettled(cfg, in, now) {
		s = s.reconcile(cfg, in, now, &d)
	}
	if in.Node != nil && s.restored && !s.readOnly {
		d.Slot = s.slotWish(cfg, in, now)
		s.tellWaiting(in.Slot, &d)
	}
	if s.standBack.by.Name != "" {
		d.Slot = SlotLeft
	}
	return s, d
}

// observe adds an observation and moves the condition's level as far as the
// evidence and the write budget allow.
func (s State) observe(cfg *config.Config, o probes.Observation, slot Slot, now time.Time, d *Decision) State {
	c := &s.conditions[index(o.Condition)]
	first := c.last.Condition == ""
	c.last = o
	before := c.debounce
	c.debounce = before.Next(o, now)
	if first {
		c.because, s.settled = o, nil
	}
	if !s.restored {
		return s
	}
	debounce := cfg.Debounce(o.Condition)
	if c.debounce.unknownFor(now) >= debounce.UnknownAfter.Duration && now.Sub(c.toldUnknown) >= time.Hour {
		c.toldUnknown = now
		d.Notices = append(d.Notices, Notice{Kind: StillUnknown, Condition: o.Condition, Reason: o.Reason, Message: o.Message})
	}
	target := c.debounce.Target(debounce, s.mayBeCritical(cfg, o.Condition, slot, now), now)
	if before.Level == probes.Critical && slot == SlotNone { // also when the look could not tell
		target = min(target, probes.Degraded)
	}
	if target == before.Level {
		c.waitingSince = time.Time{}
		return s
	}
	if !s.allow(cfg, c, target, now) {
		return s
	}
	c.waitingSince = time.Time{}
	c.debounce = c.debounce.Enter(target, debounce, now)
	if target == probes.Critical {
		s.evictedAt = now
	}
	c.because = o
	s.dirty, s.conditionsDue, s.settled = true, true, nil
	d.Notices = append(d.Notices, Notice{Kind: LevelChanged, Condition: o.Condition, From: before.Level, To: target, Reason: o.Reason, Message: o.Message})
	return s
}

// allow takes a token for the steps that the write budget meters: clears and
// steps up to Critical.
func (s *State) allow(cfg *config.Config, c *perCondition, to probes.Level, now time.Time) bool {
	if to == probes.Degraded {
		return true
	}
	if c.waitingSince.IsZero() {
		c.waitingSince = now
	}
	if s.outwaited(c, now) {
		return false
	}
	var ok bool
	s.bucket, ok = s.bucket.take(cfg.WriteBudget, now)
	return ok
}

// outwaited reports whether another condition has waited longer for a token:
// first come, first served. Otherwise a condition that is looked at every
// second could keep one that is looked at every ten from clearing for ever.
// One that is not looked at any more holds up nobody.
func (s *State) outwaited(c *perCondition, now time.Time) bool {
	for i := range s.conditions {
		other := &s.conditions[i]
		if !other.waitingSince.IsZero() && other.waitingSince.Before(c.waitingSince) && now.Sub(other.debounce.seenAt) <= maxGap {
			return true
		}
	}
	return false
}

// isSettled reports whether the last reconcile found nothing to do and nothing
// that it looked at has changed since.
func (s *State) isSettled(cfg *config.Config, in Inputs, now time.Time) bool {
	return s.settled == in.Node && s.slot == in.Slot && s.facts == in.Facts && s.cfg == cfg &&
		(s.reviewAt.IsZero() || now.Before(s.reviewAt))
}

// reconcile compares what is wanted with what the Node carries.
func (s State) reconcile(cfg *config.Config, in Inputs, now time.Time, d *Decision) State {
	if s.cfg != nil && s.cfg != cfg {
		s.drop(cfg)
	}
	s.settled, s.facts, s.slot, s.cfg, s.reviewAt = nil, in.Facts, in.Slot, cfg, time.Time{}
	if !s.meet(in.Node, now, d) {
		return s
	}
	s.heedPause(cfg, in.Node.paused, now, d)
	if !s.compared { // just after a start: what the record asks for
		s.want, s.compared = s.wants(cfg, in.Facts), true
	}
	s.countLosses(in.Node, now, d)
	s.settleDisputes(cfg, now)
	if want := underSlot(s.underPause(s.wants(cfg, in.Facts), in.Node), in); !slices.Equal(want, s.want) {
		s.want, s.dirty = want, true
	}
	if s.dirty {
		s.decide(now)
	}
	if s.conditionsDue && s.allSeen() {
		s.conditionsDue, s.report = false, s.nodeConditions(cfg, now)
	}
	change := s.change(cfg, in.Node)
	_, differs := change.Differs(in.Node.Node)
	if differs && reached(s.landed, s.revision) {
		if !s.repair(cfg, now) {
			s.settled = in.Node
			return s
		}
		change = s.change(cfg, in.Node)
	}
	if differs || len(change.Conditions) > 0 {
		d.Change = &change
	} else {
		s.settled, s.dropped = in.Node, nil
	}
	return s
}

// drop remembers the pairs of ours, on the Node or on their way to it, that the
// new configuration does not know.
func (s *State) drop(cfg *config.Config) {
	ours := slices.Clone(s.owned)
	for _, w := range s.want {
		ours = append(ours, w.taint.Pair())
	}
	for _, pair := range ours {
		if s.cfg.Produces(pair) && !cfg.Produces(pair) && !slices.Contains(s.dropped, pair) {
			s.dropped = append(slices.Clip(s.dropped), pair)
		}
	}
}

// decide gives what was decided a new revision, to be told from all before.
func (s *State) decide(now time.Time) {
	s.dirty = false
	s.revision = max(1, s.revision+1) // 0 is none
	s.decidedAt, s.decidedTime = now, now.UTC().Format(time.RFC3339)
}

// repair decides the same once more, because somebody undid a part of it after
// it had landed. Without a token it waits, so that no fight over a Node can
// make more writes than the budget has.
func (s *State) repair(cfg *config.Config, now time.Time) bool {
	var ok bool
	if s.bucket, ok = s.bucket.take(cfg.WriteBudget, now); !ok {
		s.reviewBy(s.bucket.nextAt(cfg.WriteBudget))
		return false
	}
	s.decide(now)
	return true
}

// reviewBy makes sure that reconcile looks again by then.
func (s *State) reviewBy(t time.Time) {
	if s.reviewAt.IsZero() || t.Before(s.reviewAt) {
		s.reviewAt = t
	}
}

// meet takes in a version of the Node: whether it is a new object, how much of
// ours has landed on it, whether another instance has taken it over. It
// reports whether the Node may be written.
func (s *State) meet(node *Node, now time.Time, d *Decision) bool {
	if node.UID != s.uid {
		s.uid, s.owned, s.lost, s.landed = node.UID, nil, nil, 0
		s.conditionsDue = true
		s.dirty = s.dirty || s.revision > 0
	}
	if errors.Is(node.recordErr, errNewer) {
		s.readOnly = true
		d.Notices = append(d.Notices, Notice{Kind: RecordRefused, Reason: "NewerRecord", Message: "the record on the Node was written by a newer release of taintlet; this one leaves the Node as it is"})
		return false
	}
	s.controlPlane = isControlPlane(node.Node)
	if s.instance.isOvertakenBy(node.record, s.boot) {
		s.leaveTo(node, now, d)
		return false
	}
	if seen := node.record.Revision; node.recordErr == nil && seen > 0 && reached(seen, s.landed) {
		if seen != s.landed { // what is ours is read once: a forged list costs nothing
			owned := node.record.Owned
			if seen != s.revision { // nor does one with another revision
				owned = s.stillOwned(node, owned)
			}
			s.landed, s.owned, s.lost = seen, owned, nil
		}
	}
	// A revision that is not ours is an older instance's. What differs then is
	// repaired within the budget, so that two agents cannot outbid each other.
	if reached(s.landed, s.revision) {
		s.revision = s.landed
	}
	return true
}

// stillOwned adds to the pairs those that were ours before and are on the Node.
func (s *State) stillOwned(node *Node, pairs []taints.Pair) []taints.Pair {
	for _, pair := range s.owned {
		if !slices.Contains(pairs, pair) && taints.Has(node.Spec.Taints, pair) {
			pairs = append(slices.Clip(pairs), pair)
		}
	}
	return pairs
}

// reached reports whether revision a is b or a later one. Counting goes round
// (RFC 1982), so that no forged revision can bring it to an end. 0 is none.
func reached(a, b uint64) bool {
	return b == 0 || a != 0 && int64(a-b) >= 0 //nolint:gosec // the wrap is meant
}

// countLosses notes, once for each time that it was written, which of our
// pairs somebody took off the Node, whatever else is being decided meanwhile.
// What a person removes while the condition is paused is not disputed: they
// have already said that they decide. A NoExecute taint is vetoed even so: it
// must not return when the pause ends.
func (s *State) countLosses(node *Node, now time.Time, d *Decision) {
	for _, w := range s.want {
		pair := w.taint.Pair()
		isPaused := s.paused.has(w.condition) && pair.Effect != corev1.TaintEffectNoExecute
		if !slices.Contains(s.owned, pair) || slices.Contains(s.lost, pair) || taints.Has(node.Spec.Taints, pair) || isPaused {
			continue
		}
		s.lost = append(slices.Clip(s.lost), pair)
		by := taints.LastWriter(node.Node)
		d.Notices = append(d.Notices, Notice{Kind: TaintLost, Condition: w.condition, Via: w.via, By: by, Reason: string(TaintLost), Message: somebody(by) + " removed " + pair.String()})
		dispute := s.conditions[index(w.condition)].disputeOf(w.level)
		before := dispute.stage
		*dispute = dispute.lose(pair, w.standIn, now)
		if dispute.stage != before {
			d.Notices = append(d.Notices, disputeNotice(w, by, dispute.stage))
		}
	}
}

// settleDisputes ends the disputes that are over and plans the next review.
func (s *State) settleDisputes(cfg *config.Config, now time.Time) {
	for _, rule := range cfg.Rules {
		c := &s.conditions[index(rule.Condition)]
		dispute := c.disputeOf(rule.Level)
		if next := dispute.settle(c.debounce.Level, now); next != *dispute {
			*dispute = next
			s.dirty = true
		}
		if dispute.until.After(now) {
			s.reviewBy(dispute.until)
		}
	}
}

// wants returns the taints that the rules ask for at the decided levels. Levels
// add up: at Critical the taint of Degraded stays.
func (s *State) wants(cfg *config.Config, facts taints.Facts) []wanted {
	var want []wanted
	for _, rule := range cfg.Rules {
		c := &s.conditions[index(rule.Condition)]
		if c.debounce.Level < rule.Level {
			continue
		}
		if w, ok := place(rule, *c.disputeOf(rule.Level), facts); ok && !wantsPair(want, w.taint.Pair()) {
			want = append(want, w)
		}
	}
	return want
}

func (s *State) allSeen() bool {
	for i := range s.conditions {
		if s.conditions[i].last.Condition == "" {
			return false
		}
	}
	return true
}
