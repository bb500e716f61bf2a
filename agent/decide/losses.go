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
			c.forgetLoss(d.Level) // which, perhaps, was the controller's too
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
	switch *dispute = dispute.lose(d.Pair, t.now); {
	case dispute.conceded != before && dispute.conceded == vetoed:
		t.notify(Notice{Kind: TaintVetoed, Condition: c.name, Message: describe.Vetoed(by, d.Taint())})
	case dispute.conceded != before:
		t.notify(Notice{Kind: TaintContested, Condition: c.name, Message: describe.Contested(by, d.Taint())})
	case c.removals.Count == 1 && !isReconciled: // whoever removes it again does not know yet what stops that
		t.notify(Notice{Kind: TaintSetAgain, Condition: c.name, Message: describe.SetAgain(by, d.Taint(), c.name, t.in.Node.Name)})
	}
}

// forgetLoss forgets a first removal; nil has none.
func (c *condition) forgetLoss(level probes.Level) {
	if c != nil {
		c.disputeOf(level).lostAt = time.Time{}
	}
}

// notifyLost tells who removed a taint. It is that removal since its condition was set.
func (t *turn) notifyLost(d DesiredTaint, by string, count int) {
	lost := d.Taint()
	t.notify(Notice{Kind: TaintLost, Condition: d.Condition, Taint: lost, Via: d.Via, By: by, Count: count, Message: describe.Lost(by, lost)})
}

// settleDisputes ends the disputes of the conditions that are OK.
func (s *State) settleDisputes(t *turn) {
	for _, rule := range t.policy.Rules {
		c := s.conditions.of(rule.Condition)
		dispute := c.disputeOf(rule.Level)
		*dispute = dispute.settle(c.debounce.Level)
	}
}

// contestWithin: a pair that others remove twice within this time is contested.
const contestWithin = time.Minute

// concession says how far a rule has given way to others who remove its taint. Whatever
// it is, it ends when the condition is OK.
type concession uint8

const (
	asRuled   concession = iota // its taint is set
	contested                   // removed twice within a minute: it is not, until a person ends a pause
	vetoed                      // a NoExecute pair was removed: it is not
)

// dispute is what a rule remembers of others who removed its taint.
type dispute struct {
	conceded concession
	lostAt   time.Time // the last loss, when it was not the second one
}

// lose notes that somebody removed the pair of a rule. One removal of a NoExecute pair is
// a veto. For any other pair the second removal within a minute is a contest.
func (d dispute) lose(pair taints.Pair, now time.Time) dispute {
	switch {
	case pair.Effect == taints.NoExecute:
		return dispute{conceded: vetoed}
	case d.lostAt.IsZero() || now.Sub(d.lostAt) > contestWithin:
		d.lostAt = now
		return d
	}
	return dispute{conceded: contested}
}

// settle ends a dispute with the trouble that it is about.
func (d dispute) settle(level probes.Level) dispute {
	if level == probes.OK {
		return dispute{}
	}
	return d
}

// holds says how a dispute keeps a taint from the Node; empty: it does not.
func (d dispute) holds() describe.Hold {
	return [...]describe.Hold{asRuled: "", contested: describe.HeldContested, vetoed: describe.HeldVetoed}[d.conceded]
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
	removalsFor = 24 * time.Hour
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
