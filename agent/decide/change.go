package decide

import (
	"strings"

	"github.com/taintlet/taintlet/taints"
)

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
