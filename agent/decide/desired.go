package decide

import (
	"slices"
	"strings"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// desired is one taint that a rule asks for, as it is to stand on the Node.
type desired struct {
	condition probes.Condition
	level     probes.Level // of the rule
	taint     Taint
	via       taints.Via
	ruled     taints.Pair // the pair of the rule
	standIn   taints.Pair // what takes its place when it cannot stay
}

// desire decides which taints are to stand on the Node now.
func (s *State) desire(t *turn) {
	s.ledger.desired = underSlot(t.in, s.underPause(t.in.Node, s.asked(t)))
}

// asked returns the taints that the rules ask for at the decided levels. Levels
// add up: at Critical the taint of Degraded stays.
func (s *State) asked(t *turn) []desired {
	var all []desired
	for _, rule := range t.policy.Rules {
		c := s.conditions.of(rule.Condition)
		if c.debounce.Level < rule.Level {
			continue
		}
		if d, ok := place(rule, *c.disputeOf(rule.Level), t.in.Facts); ok && !isDesired(all, d.taint.Pair()) {
			all = append(all, d)
		}
	}
	return all
}

// place returns how and as which pair the rule's taint is to stand on the
// Node; false when others do not let it stand at all.
func place(rule Rule, dispute dispute, facts taints.Facts) (desired, bool) {
	d := desired{condition: rule.Condition, level: rule.Level, taint: rule.Taint, ruled: rule.Taint.Pair()}
	d.standIn = taints.StandInFor(rule.Taint.Pair(), facts.StandInPrefix)
	via, pair := taints.Resolve(rule.Taint.Pair(), facts)
	if dispute.stage == standIn {
		via, pair = taints.StandIn, d.standIn
	}
	return d.as(via, pair), dispute.stage != withdrawn
}

// as returns the same taint as another pair, and how that one stays.
func (d desired) as(via taints.Via, pair taints.Pair) desired {
	d.via, d.taint.Key, d.taint.Effect = via, pair.Key, pair.Effect
	return d
}

// full is the taint with its value, as it is to stand on the Node.
func (d desired) full() taints.Taint {
	return d.taint.Pair().With(d.taint.Value)
}

func isDesired(all []desired, p taints.Pair) bool {
	return slices.ContainsFunc(all, func(d desired) bool { return d.taint.Pair() == p })
}

// underSlot leaves out NoExecute taints that are yet to be set while the slot is
// not certain. Everything else is written all the same.
func underSlot(in Inputs, all []desired) []desired {
	if in.Slot == SlotHeld {
		return all
	}
	return slices.DeleteFunc(all, func(d desired) bool {
		return d.taint.Effect == taints.NoExecute && !in.Node.Has(d.taint.Pair())
	})
}

// change renders what the Node should carry: taints, record, held annotation,
// conditions.
func (s *State) change(t *turn) taints.Change {
	change := taints.Change{Owned: s.ledger.mayRemove(t.in.Facts, t.in.Node), Conditions: s.report.pending}
	var held []string
	for _, d := range s.ledger.desired {
		change.Taints = append(change.Taints, d.full())
		if d.via == taints.Kept {
			held = append(held, d.taint.Key)
		}
	}
	if s.ledger.revision == 0 {
		return change // nothing was ever decided: nothing to remember
	}
	_, owned, _ := taints.Plan(t.in.Node.Taints, change.Owned, change.Taints)
	owned = append(owned, s.ledger.unasked(t.in.Node, upTo(maxUnasked, s.ledger.owned))...)
	change.Annotations = map[string]string{
		taints.RecordAnnotation: s.record(owned).String(),
		taints.HeldAnnotation:   strings.Join(held, ","),
	}
	// A taint that is due must not wait for room: without the record it is set all
	// the same, and a restart forgets what the record would have said.
	if s.ledger.unrecorded = !change.AnnotationsFit(t.in.Node.Node); s.ledger.unrecorded {
		s.ledger.plan(owned)
		delete(change.Annotations, taints.RecordAnnotation)
	}
	if !taints.AnnotationsChangeable(t.in.Node.Node) {
		change.Annotations = nil
	}
	return change
}

// heldFits reports whether the annotation by which pairs are kept would fit on the
// Node with the keys of all rules. If not, a taint that is due must not wait for
// room: its stand-in needs no annotation.
func heldFits(t *turn) bool {
	keys := make([]string, 0, len(t.policy.Rules))
	for _, rule := range t.policy.Rules {
		keys = append(keys, rule.Taint.Key)
	}
	largest := taints.Change{Annotations: map[string]string{taints.RecordAnnotation: "", taints.HeldAnnotation: strings.Join(keys, ",")}}
	return largest.AnnotationsFit(t.in.Node.Node)
}

// maxUnasked bounds the length of the pairs that the record names although no
// rule asks for them, so that a forged list cannot make it too long to be read.
const maxUnasked = 1000

// upTo returns the first of the pairs, as many as have this length in bytes
// together.
func upTo(length int, pairs []taints.Pair) []taints.Pair {
	for i, pair := range pairs {
		if length -= len(pair.String()); length < 0 {
			return pairs[:i]
		}
	}
	return pairs
}
