package decide

import (
	"cmp"
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// countLosses notes which of our pairs are gone from the Node, once for each write of a pair. A
// taint that a person removes while the condition is paused is not disputed: the person has already
// decided. Nor is what goes during maintenance. A NoExecute taint is vetoed even so: it must not
// return when the pause ends. A taint that the node-lifecycle-controller removes in spite of the
// policy is nobody's decision.
func (s *State) countLosses(t *turn) {
	l, node := &s.ledger, t.in.Node
	var counted []*dispute // of this version of the Node: all that is gone from it is one removal
	for _, d := range l.desired {
		pair := d.Pair
		isPaused := s.known(d.Condition).isPaused() && pair.Effect != taints.NoExecute && !d.manual
		if !slices.Contains(l.owned, pair) || slices.Contains(l.lost, pair) || node.Has(pair) {
			continue
		}
		isBroken := s.losesKept(t, d)
		if isPaused && !isBroken {
			continue
		}
		l.lost = append(slices.Clip(l.lost), pair)
		switch c := s.conditions.of(d.Condition); {
		case isBroken: // nobody disputes: the policy is broken
		case c == nil: // its section was dropped from the configuration
			t.notifyLost(d, node.LastWriter, 1)
		case d.manual:
			*c.disputeOf(d.Level) = dispute{conceded: acknowledged}
			t.notify(Notice{Kind: TaintAcknowledged, Condition: c.name, Taint: d.Taint(), By: node.LastWriter, Message: describe.Acknowledged(node.LastWriter, d.Taint(), c.debounce.Level > probes.OK)})
		default:
			dispute := c.disputeOf(d.Level)
			c.lose(t, d, dispute, slices.Contains(counted, dispute))
			counted = append(counted, dispute)
		}
	}
	t.in.Facts.KeepPolicy = t.in.Facts.KeepPolicy && !s.IsKeepFailing()
}

// lose counts a removed taint of the condition, and decides how far its rule gives way.
func (c *condition) lose(t *turn, d DesiredTaint, dispute *dispute, isCounted bool) {
	by, before := t.in.Node.LastWriter, dispute.conceded
	c.removals = describe.Removals{Count: min(maxRemovals, recent(c.removals, t.now).Count+1), By: describe.Cut(by), At: t.now}
	t.notifyLost(d, by, c.removals.Count)
	isReconciled := d.Via == taints.Kept && !t.in.Facts.KeepPolicy // the controller did it
	switch *dispute = dispute.lose(d.Pair, t.now, isCounted); {
	case dispute.conceded != before && dispute.conceded == vetoed:
		t.notify(Notice{Kind: TaintVetoed, Condition: c.name, Message: describe.Vetoed(by, d.Taint())})
	case dispute.conceded != before:
		t.notify(Notice{Kind: TaintContested, Condition: c.name, Message: describe.Contested(by, d.Taint())})
	case c.removals.Count == 1 && !isReconciled: // whoever removes it again does not know yet what stops that
		t.notify(Notice{Kind: TaintSetAgain, Condition: c.name, Message: describe.SetAgain(by, d.Taint(), c.name, t.in.Node.Name)})
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
		level := c.debounce.Level
		if rule.Level == probes.OK && c.isLatched(&rule) {
			level = probes.Degraded
		}
		if level == probes.OK {
			*c.disputeOf(rule.Level) = dispute{}
		}
	}
}

// contestWithin: a pair that others remove twice within this time is contested.
const contestWithin = time.Minute

// concession says how far a rule has given way to others who remove its taint. Whatever
// it is, it ends when the condition is OK.
type concession uint8

const (
	asRuled      concession = iota // its taint is set
	contested                      // removed twice within a minute: it is not, until a person ends a pause
	vetoed                         // a NoExecute pair was removed: it is not
	acknowledged                   // a taint that waits to be removed was removed: it is not
)

// dispute is what a rule remembers of others who removed its taint.
type dispute struct {
	conceded concession
	lostAt   time.Time // the last loss, when it was not the second one
}

// lose notes that the pair of a rule was removed. One removal of a NoExecute pair is a veto. For
// any other pair the second removal within a minute is a contest. isCounted: another pair of the
// same level was removed with it, and that is one removal.
func (d dispute) lose(pair taints.Pair, now time.Time, isCounted bool) dispute {
	switch {
	case pair.Effect == taints.NoExecute:
		return dispute{conceded: vetoed}
	case isCounted:
		return d
	case d.lostAt.IsZero() || now.Sub(d.lostAt) > contestWithin:
		d.lostAt = now
		return d
	}
	return dispute{conceded: contested}
}

// isContested reports whether others removed a taint that was to stay.
func (d dispute) isContested() bool { return d.conceded == contested || d.conceded == vetoed }

// holds says how a dispute keeps a taint from the Node; empty: it does not.
func (d dispute) holds() describe.Hold {
	return [...]describe.Hold{asRuled: "", contested: describe.HeldContested, vetoed: describe.HeldVetoed, acknowledged: describe.HeldAcknowledged}[d.conceded]
}

const (
	// removalsFor is how long removals are shown after the newest.
	removalsFor = 24 * time.Hour
	// maxRemovals bounds the number that a forged record can tell.
	maxRemovals = 1_000_000
)

// recent returns the removals as long as they are shown.
func recent(r describe.Removals, now time.Time) describe.Removals {
	if r.Count == 0 || now.Sub(r.At) >= removalsFor {
		return describe.Removals{}
	}
	return r
}

// removals are those of the record.
func (s summary) removals(now time.Time) describe.Removals {
	if s.Removals == 0 || s.RemovedAt.IsZero() {
		return describe.Removals{}
	}
	return describe.Removals{Count: min(s.Removals, maxRemovals), By: s.RemovedBy, At: earlier(s.RemovedAt.Time, now)}
}

const (
	// controllerWithin is how soon after a set a removal without a known author is counted as the
	// node-lifecycle-controller's. It deletes a taint in well under a second, and a person has to
	// see the taint first.
	controllerWithin = 2 * time.Second
	// keepAgainAfter is when a policy that failed is used again, unless it changes before.
	keepAgainAfter = 24 * time.Hour
)

// controllers are the field managers of the node-lifecycle-controller. It has the name of the
// program that it is a part of; those of k3s and MicroK8s are others.
func controllers() []string { return []string{"kube-controller-manager", "k3s", "kubelite"} }

// keepFailure is what a State knows of an admission policy that is there and lets the
// node-lifecycle-controller remove a kept pair: it has an error that its failurePolicy
// ignores. While that lasts, stand-ins take the place of the kept pairs of all conditions.
// Zero: it has not failed.
type keepFailure struct {
	// lost is the pair that was removed.
	lost taints.Pair
	// version is that of the policy.
	version string
	// until is when the policy is tried again.
	until time.Time
}

// followKeep forgets a failure when the policy has changed or has gone, and a day after it.
// Until then the policy counts as absent.
func (s *State) followKeep(t *turn) {
	if !t.in.Facts.KeepPolicy || s.keep.version != t.in.Facts.KeepVersion || !t.now.Before(s.keep.until) {
		s.keep = keepFailure{}
	}
	t.in.Facts.KeepPolicy = t.in.Facts.KeepPolicy && !s.IsKeepFailing() && heldFits(t)
}

// losesKept notes that the node-lifecycle-controller removed a pair that the policy was to
// keep, and reports whether it did. No person can end that by a removal, and no second try
// is made: the stand-in is what stays.
func (s *State) losesKept(t *turn, d DesiredTaint) bool {
	node, by := t.in.Node, t.in.Node.LastWriter
	isAsked := d.Via == taints.Kept && t.in.Facts.KeepPolicy && slices.Contains(taints.HeldKeys(node.Node), d.Pair.Key)
	isSoon := !s.ledger.setAt.IsZero() && t.in.NodeAt.Sub(s.ledger.setAt) <= controllerWithin && !s.known(d.Condition).isPaused()
	if !isAsked || !slices.Contains(controllers(), by) && (by != "" || !isSoon) {
		return false
	}
	t.notifyLost(d, cmp.Or(by, controllers()[0]), 1)
	if !s.IsKeepFailing() { // one write of the controller removes the pairs of several conditions
		s.keep = keepFailure{d.Pair, t.in.Facts.KeepVersion, t.now.Add(keepAgainAfter)}
		t.notify(Notice{Kind: KeepPolicyFails, Condition: d.Condition, Message: describe.KeepFails(d.Pair)})
	}
	return true
}

// IsKeepFailing reports whether the admission policy has failed and is not used.
func (s *State) IsKeepFailing() bool { return s.keep != keepFailure{} }

// KeepFails reports whether the admission policy fails, and a condition therefore lacks its kept
// taint.
func (s *State) KeepFails(policy *Policy, name probes.Condition) bool {
	isKept := func(r Rule) bool {
		_, isReconciled := taints.LifecycleCondition(r.Taint.Pair())
		return isReconciled && r.Condition == name && r.Level <= s.Level(name)
	}
	return s.IsKeepFailing() && slices.ContainsFunc(policy.Rules, isKept)
}
