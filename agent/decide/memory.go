package decide

import (
	"slices"
	"strings"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// record returns what the next process has to know.
func (s *State) record(owned []taints.Pair) record {
	r := record{
		Version:       recordVersion,
		Revision:      s.ledger.revision,
		Boot:          s.boot.ID,
		At:            s.ledger.decidedAt.Sub(s.boot.At),
		Time:          s.ledger.decidedTime,
		Instance:      s.active.instance,
		EvictedAt:     s.boot.since(s.eviction.at),
		Owned:         owned,
		Freed:         s.startup.freed,
		Soft:          s.softRecord(),
		Keep:          s.boot.keep(s.keep),
		RepairEndedAt: s.boot.since(s.hostRepair.endedAt),
		Conditions:    make(map[probes.Condition]recordCondition, len(s.conditions)),
	}
	if !s.budget.fullAt.IsZero() {
		r.TokensAt = s.budget.fullAt.Sub(s.boot.At)
	}
	for i := range s.conditions {
		c := &s.conditions[i]
		entry := recordCondition{Level: c.debounce.Level, Penalty: c.debounce.Penalty, SetAt: s.boot.since(c.debounce.SetAt), Reason: c.reason, Ruled: c.ruled, Manual: c.manual, summary: c.summary}
		for _, level := range disputed() {
			if d := *c.disputeOf(level); d != (dispute{}) {
				if entry.Dispute == nil {
					entry.Dispute = map[string]recordDispute{}
				}
				entry.Dispute[level.String()] = s.boot.dispute(d)
			}
		}
		r.Conditions[c.name] = entry
	}
	return r
}

// isRevisionDue reports whether the record has to remember something else than its
// last revision does. Until something was decided there is no record, and it need not
// say who is active.
func (s *State) isRevisionDue(t *turn) bool {
	l := &s.ledger
	for i := range s.conditions {
		if c := &s.conditions[i]; c.remembered() != c.recorded || c.soft != nil && c.soft.softMemory != c.soft.recorded {
			return true
		}
	}
	d := &l.decided
	switch {
	case s.soft.budget != s.soft.recorded || d.budget != s.budget || d.freed != s.startup.freed || d.repairEndedAt != s.hostRepair.endedAt || d.keep != s.keep || !slices.Equal(d.desired, l.desired):
		return true
	case l.revision == 0: // without a record, a restart would not know what is ours on the Node
		return len(l.owned) > 0 && t.in.Node.recordErr == nil && t.in.Node.record.Revision == 0
	}
	return d.uid != l.uid || d.instance != s.active.instance
}

// revise gives what was decided a new revision, and has the record say to people
// what the conditions say now.
func (s *State) revise(t *turn) {
	l := &s.ledger
	l.revise(t.now)
	s.soft.recorded = s.soft.budget
	l.decided = decision{l.uid, s.active.instance, s.budget, l.desired, s.startup.freed, s.hostRepair.endedAt, s.keep}
	for i := range s.conditions {
		c := &s.conditions[i]
		c.recorded, c.summary = c.remembered(), c.summarize(s.outlook(t, c), s.boot, t.now)
		if c.soft != nil {
			c.soft.recorded = c.soft.softMemory
		}
	}
}

// restore takes over what the Node's record remembers. Evidence that was
// collected before is kept. The taints that stand stay until new evidence
// clears them.
func (s *State) restore(t *turn) {
	node := t.in.Node
	s.active.restored, s.ledger.uid, s.startup = true, node.UID, startup{}
	s.restoreRepair(t)
	if node.recordErr != nil {
		if s.observeNode(t) {
			t.notify(Notice{Kind: RecordRefused, Reason: "UnreadableRecord", Message: describe.RecordUnreadable(node.recordErr)})
		}
		return
	}
	r := node.record
	s.active.source = r.Revision
	line := r.timeline(s.boot, t.now)
	at, past := line.at, line.past
	if r.Freed == node.UID {
		s.startup = startup{freed: r.Freed, isGone: true} // one patch wrote both
	}
	s.ledger.revision, s.ledger.decidedAt, s.ledger.decidedTime = r.Revision, at(r.At), r.Time
	if r.Revision > 0 {
		// So the record differs and is written anew, in the time of this boot: whoever
		// wrote it before has to learn that it is over.
		s.active.instance.Term = r.Instance.Term + 1
		s.budget = bucket{at(r.TokensAt)}.within(t.policy.WriteBudget, t.now)
	} else {
		s.budget = bucket{}
	}
	s.eviction.at = past(r.EvictedAt)
	s.keep = line.keep(r.Keep)
	s.restoreSoft(t, r.Soft, line)
	for i := range s.conditions {
		c := &s.conditions[i]
		entry, found := r.Conditions[c.name]
		if !found {
			continue
		}
		c.debounce.Level, c.debounce.Penalty, c.debounce.SetAt = entry.Level, min(entry.Penalty, maxPenalty), past(entry.SetAt)
		c.since = earlier(readWall(entry.Since), t.now)
		c.removals = entry.removals(t.now)
		if entry.Level > probes.OK {
			c.reason = describe.Cut(entry.Reason)
			for reason := range strings.FieldsSeq(entry.Ruled) {
				c.addReason(t.policy, reason)
			}
		}
		c.restoreManual(t.policy, entry, r.Owned)
		if entry.Level == probes.Critical && !owns(t.policy, r.Owned, func(r *Rule) bool { return r.Condition == c.name && r.Level == probes.Critical }) {
			c.debounce.Level = probes.Degraded // an eviction begins with a sample, an Event and a slot
		}
		for _, level := range disputed() {
			*c.disputeOf(level) = line.dispute(entry.Dispute[level.String()])
		}
	}
}
