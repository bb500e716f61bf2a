package decide

import (
	"strings"

	"github.com/taintlet/taintlet/taints"
)

// desired renders what the Node should carry: taints, record, held annotation,
// conditions. It reports whether the Node lacks any of it but the conditions.
func (s *State) desired(t *turn) (desired taints.Desired, differs bool) {
	desired = taints.Desired{Owned: s.ledger.mayRemove(t.in.Facts, t.in.Node), Conditions: s.writes.pending}
	var held []string
	for _, d := range s.ledger.desired {
		desired.Taints = append(desired.Taints, d.Taint())
		if d.Via == taints.Kept {
			held = append(held, d.Pair.Key)
		}
	}
	desired.Owned = append(desired.Owned, s.startupPairs(t)...)
	next, owned, _ := taints.Plan(t.in.Node.Taints, desired.Owned, desired.Taints)
	differs = !taints.Equal(next, t.in.Node.Taints)
	if s.ledger.revision == 0 {
		return desired, differs // nothing was ever decided: nothing to remember
	}
	owned = append(owned, s.ledger.unasked(t.in.Node, upToMax(s.ledger.owned))...)
	desired.Annotations = map[string]string{
		taints.RecordAnnotation: s.record(owned).String(),
		taints.HeldAnnotation:   strings.Join(held, ","),
	}
	// A taint that is due must not wait for room: without the record it is set all
	// the same, and a restart forgets what the record would have said.
	if s.ledger.unrecorded = !desired.AnnotationsFit(t.in.Node.Node); s.ledger.unrecorded {
		s.ledger.plan(owned)
		delete(desired.Annotations, taints.RecordAnnotation)
	}
	if !taints.AnnotationsChangeable(t.in.Node.Node) {
		desired.Annotations = nil
	}
	return desired, differs || desired.AnnotationsDiffer(t.in.Node.Node)
}

// heldFits reports whether the annotation by which pairs are kept would fit on the
// Node with the keys of all rules. If not, a taint that is due must not wait for
// room: its stand-in needs no annotation.
func heldFits(t *turn) bool {
	keys := make([]string, 0, len(t.policy.Rules))
	for _, rule := range t.policy.Rules {
		keys = append(keys, rule.Taint.Key)
	}
	largest := taints.Desired{Annotations: map[string]string{taints.RecordAnnotation: "", taints.HeldAnnotation: strings.Join(keys, ",")}}
	return largest.AnnotationsFit(t.in.Node.Node)
}
