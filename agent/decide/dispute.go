package decide

import (
	"fmt"
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

const (
	// contestWithin: a pair that others remove twice within this time is
	// contested.
	contestWithin = time.Minute
	// contestFor is how long a contest is remembered.
	contestFor = 24 * time.Hour
)

// stage says how far a rule has given way to others who remove its taint.
type stage uint8

const (
	asRuled   stage = iota // the pair of the rule, by the via of the cluster
	standIn                // contested: the stand-in
	withdrawn              // the stand-in was contested too, or a NoExecute pair was removed: nothing
)

// dispute is what a rule remembers of others who removed its taint.
type dispute struct {
	stage  stage
	until  time.Time // a contest ends then
	lostAt time.Time // the last loss, when it was not the second one
}

// lose notes that somebody removed the pair of a rule. One removal of a
// NoExecute pair is a veto. For any other pair the second removal within a
// minute is a contest: first the stand-in takes its place, then nothing does.
func (d dispute) lose(pair, standInPair taints.Pair, now time.Time) dispute {
	if pair.Effect == taints.NoExecute {
		return dispute{stage: withdrawn}
	}
	if d.lostAt.IsZero() || now.Sub(d.lostAt) > contestWithin {
		d.lostAt = now
		return d
	}
	next := dispute{stage: standIn, until: now.Add(contestFor)}
	if pair == standInPair {
		next.stage = withdrawn
	}
	return next
}

// settle ends what time or recovery ends: a veto when the condition is OK, a
// contest after a day. What was withdrawn comes back only with the condition's
// next set, so that a person who removed it by hand is not overruled.
func (d dispute) settle(level probes.Level, now time.Time) dispute {
	over := !now.Before(d.until)
	if d.stage == withdrawn && level != probes.OK {
		over = false
	}
	if d.stage != asRuled && over {
		return dispute{}
	}
	return d
}

// countLosses notes, once for each time that it was written, which of our
// pairs somebody removed from the Node, whatever else is being decided. What a
// person removes while the condition is paused is not disputed: they have
// already said that they decide. A NoExecute taint is vetoed even so: it must
// not return when the pause ends.
func (s *State) countLosses(t *turn) {
	l, node := &s.ledger, t.in.Node
	for _, d := range l.desired {
		pair := d.taint.Pair()
		isPaused := s.pause.has(d.condition) && pair.Effect != taints.NoExecute
		if !slices.Contains(l.owned, pair) || slices.Contains(l.lost, pair) || node.Has(pair) || isPaused {
			continue
		}
		l.lost = append(slices.Clip(l.lost), pair)
		by := node.Node.LastWriter
		lost := d.full()
		t.tell(Notice{
			Kind: TaintLost, Condition: d.condition, Taint: lost, Via: d.via, By: by, Reason: string(TaintLost),
			Message: somebody(by) + " removed " + lost.String(),
		})
		c := s.conditions.of(d.condition)
		if c == nil {
			continue // its section was dropped from the configuration
		}
		dispute := c.disputeOf(d.level)
		before := dispute.stage
		*dispute = dispute.lose(pair, d.standIn, t.now)
		if dispute.stage != before {
			t.tell(disputeNotice(d, by, dispute.stage))
		}
	}
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
func disputeNotice(d desired, by string, now stage) Notice {
	n := Notice{Condition: d.condition}
	who, lost, instead := somebody(by), d.full(), d.as(taints.StandIn, d.standIn).full()
	switch {
	case now == standIn:
		n.Kind = TaintContested
		n.Message = fmt.Sprintf("%s removed %s twice within a minute; %s takes its place for 24 h", who, lost.String(), instead.String())
	case lost.Effect == taints.NoExecute:
		n.Kind = TaintVetoed
		n.Message = fmt.Sprintf("%s removed %s; it will not be set again until the condition has been OK", who, lost.String())
	default:
		n.Kind = TaintWithdrawn
		n.Message = fmt.Sprintf("%s removed %s twice within a minute; taintlet gives way for 24 h and until the condition has been OK. To keep taints off for good, set the annotation %s on the Node; to have them again, set and remove it", who, lost.String(), taints.PausedAnnotation)
	}
	n.Reason = string(n.Kind)
	return n
}

func somebody(fieldManager string) string {
	if fieldManager == "" {
		return "somebody"
	}
	return "field manager " + fieldManager
}
