package decide

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// countLosses notes, once for each time that it was written, which of our
// pairs somebody removed from the Node, whatever else is being decided. What a
// person removes while the condition is paused is not disputed: they have
// already said that they decide. Nor is what goes during maintenance. A NoExecute taint is
// vetoed even so: it must not return when the pause ends. What the node-lifecycle-controller
// removes although the policy is there is nobody's decision.
func (s *State) countLosses(t *turn) {
	l, node := &s.ledger, t.in.Node
	for _, d := range l.desired {
		if d.IsSoft() {
			continue // followSoft counts these
		}
		pair := d.Pair
		isPaused := s.pause.has(d.Condition) && pair.Effect != taints.NoExecute && !d.manual
		if !slices.Contains(l.owned, pair) || slices.Contains(l.lost, pair) || node.Has(pair) {
			continue
		}
		isBroken := s.losesKept(t, d)
		if isPaused && !isBroken {
			continue
		}
		l.lost = append(slices.Clip(l.lost), pair)
		switch c := s.conditions.of(d.Condition); {
		case isBroken:
		case c == nil: // its section was dropped from the configuration
			t.notifyLost(d, node.LastWriter, 1)
		case d.manual:
			s.acknowledge(t, c, d)
		default:
			c.lose(t, d, c.disputeOf(d.Level))
		}
	}
	t.in.Facts.KeepPolicy = t.in.Facts.KeepPolicy && !s.IsKeepFailing()
}

// lose counts that somebody removed a taint of the condition, and how far its rule gives way.
func (c *condition) lose(t *turn, d DesiredTaint, dispute *dispute) {
	by, before := t.in.Node.LastWriter, dispute.conceded
	c.removals = oneMore(c.removals, by, t.now)
	t.notifyLost(d, by, c.removals.Count)
	isReconciled := d.Via == taints.Kept && !t.in.Facts.KeepPolicy // the controller did it
	switch *dispute = dispute.lose(d.Pair, d.standIn, t.now); {
	case dispute.conceded != before:
		t.notify(disputeNotice(d, by, dispute.conceded))
	case c.removals.Count == 1 && !isReconciled: // whoever removes it again does not know yet what stops that
		t.notify(Notice{Kind: TaintSetAgain, Condition: c.name, Message: describe.SetAgain(by, d.Taint(), c.name, t.in.Node.Name)})
	}
}

// notifyLost tells who removed a taint. It is that removal since its condition was set.
func (t *turn) notifyLost(d DesiredTaint, by string, count int) {
	lost := d.Taint()
	t.notify(Notice{Kind: TaintLost, Condition: d.Condition, Taint: lost, Via: d.Via, By: by, Count: count, Message: describe.Lost(by, lost)})
}

// settleDisputes ends the disputes that are over.
func (s *State) settleDisputes(t *turn) {
	for _, rule := range t.policy.Rules {
		c := s.conditions.of(rule.Condition)
		dispute := c.disputeOf(rule.Level)
		*dispute = dispute.settle(c.debounce.Level, t.now)
	}
}

// disputeNotice tells people what became of the taint that somebody removed.
func disputeNotice(d DesiredTaint, by string, now concession) Notice {
	n := Notice{Condition: d.Condition}
	lost := d.Taint()
	switch {
	case now == standIn:
		n.Kind, n.Message = TaintContested, describe.Contested(by, lost, d.as(taints.StandIn, d.standIn).Taint())
	case lost.Effect == taints.NoExecute:
		n.Kind, n.Message = TaintVetoed, describe.Vetoed(by, lost)
	default:
		n.Kind, n.Message = TaintWithdrawn, describe.Withdrawn(by, lost)
	}
	return n
}

const (
	// contestWithin: a pair that others remove twice within this time is
	// contested.
	contestWithin = time.Minute
	// contestFor is how long a contest is remembered.
	contestFor = 24 * time.Hour
)

// concession says how far a rule has given way to others who remove its taint.
type concession uint8

const (
	asRuled   concession = iota // the pair of the rule, by the via of the cluster
	standIn                     // contested: the stand-in
	withdrawn                   // the stand-in was contested too, or a NoExecute pair was removed: nothing
)

// dispute is what a rule remembers of others who removed its taint.
type dispute struct {
	conceded concession
	until    time.Time // a contest ends then
	lostAt   time.Time // the last loss, when it was not the second one
}

// lose notes that somebody removed the pair of a rule. One removal of a
// NoExecute pair is a veto. For any other pair the second removal within a
// minute is a contest: first the stand-in takes its place, then nothing does.
func (d dispute) lose(pair, standInPair taints.Pair, now time.Time) dispute {
	if pair.Effect == taints.NoExecute {
		return dispute{conceded: withdrawn}
	}
	if d.lostAt.IsZero() || now.Sub(d.lostAt) > contestWithin {
		d.lostAt = now
		return d
	}
	next := dispute{conceded: standIn, until: now.Add(contestFor)}
	if pair == standInPair {
		next.conceded = withdrawn
	}
	return next
}

// settle ends what time or recovery ends: a veto when the condition is OK, a
// contest after a day. What was withdrawn comes back only with the condition's
// next set, so that a person who removed it by hand is not overruled.
func (d dispute) settle(level probes.Level, now time.Time) dispute {
	over := !now.Before(d.until)
	if d.conceded == withdrawn && level != probes.OK {
		over = false
	}
	if d.conceded != asRuled && over {
		return dispute{}
	}
	return d
}

// isVeto reports whether a NoExecute pair was removed.
func (d dispute) isVeto() bool { return d.conceded == withdrawn && d.until.IsZero() }

// holds says how a dispute keeps a taint from the Node.
func (d dispute) holds() (describe.Hold, time.Time) {
	switch {
	case d.conceded != withdrawn:
		return "", time.Time{}
	case d.isVeto():
		return describe.HeldVetoed, time.Time{}
	}
	return describe.HeldContested, d.until
}

// disputed are the levels that a rule, and so a dispute, can be about.
func disputed() []probes.Level { return []probes.Level{probes.Degraded, probes.Critical} }

// manual is what became of the taint of a rule with ClearManual.
type manual uint8

const (
	unset        manual = iota // no fault, or its taint is not set yet
	awaiting                   // set: it stays until somebody removes it
	acknowledged               // somebody removed it, and the condition is not OK yet
)

const (
	// removalsFor is how long removals are told after the newest.
	removalsFor = contestFor
	// maxRemovals bounds the number that a forged record can tell.
	maxRemovals = 1_000_000
)

// oneMore counts one removal more.
func oneMore(r describe.Removals, by string, now time.Time) describe.Removals {
	return describe.Removals{Count: min(maxRemovals, recent(r, now).Count+1), By: describe.Cut(by), At: now}
}

// recent returns the removals as long as they are told.
func recent(r describe.Removals, now time.Time) describe.Removals {
	if r.Count == 0 || now.Sub(r.At) >= removalsFor {
		return describe.Removals{}
	}
	return r
}

// removals are those that a record tells of.
func (s summary) removals(now time.Time) describe.Removals {
	at := readWall(s.RemovedAt)
	if s.Removals <= 0 || at.IsZero() {
		return describe.Removals{}
	}
	return describe.Removals{Count: min(s.Removals, maxRemovals), By: describe.Cut(s.RemovedBy), At: earlier(at, now)}
}
