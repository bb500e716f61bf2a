package decide

import (
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// desired renders what the Node should carry: taints, record, held annotation,
// conditions. It reports whether the Node lacks any of it but the conditions.
func (s *State) desired(t *turn) (desired taints.Desired, differs bool) {
	l := &s.ledger
	desired = taints.Desired{Owned: l.mayRemove(t.in.Node), Conditions: s.writes.pending()}
	var held []string
	for _, d := range l.desired {
		desired.Taints = append(desired.Taints, d.Taint())
		if d.Via == taints.Kept {
			held = append(held, d.Pair.Key)
		}
	}
	desired.Owned = append(desired.Owned, s.startupPairs(t)...)
	next, owned, _ := taints.Plan(t.in.Node.Taints, desired.Owned, desired.Taints)
	differs = !taints.Equal(next, t.in.Node.Taints)
	if l.revision == 0 {
		return desired, differs // nothing was ever decided: nothing to remember
	}
	owned = append(owned, l.unasked(t.in.Node, upToMax(l.owned))...)
	desired.Annotations = map[string]string{
		taints.RecordAnnotation: s.record(owned).String(),
		taints.HeldAnnotation:   strings.Join(held, ","),
	}
	// A taint that is due must not wait for room: without the record it is set all
	// the same, and a restart forgets what the record would have said.
	if l.unrecorded = !desired.AnnotationsFit(t.in.Node.Node); l.unrecorded {
		if l.plannedFor != l.revision {
			l.planned, l.plannedFor = owned, l.revision
		}
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

// desire decides which taints are to stand on the Node now.
func (s *State) desire(t *turn) {
	asked, before := s.asked(t), s.ledger.desired
	s.ledger.desired = asked[:0]
	for _, d := range asked {
		d = s.asItStands(t.in.Node, d)
		if held, _ := s.refusesTaint(t, s.conditions.of(d.Condition), d); held != "" || s.isOver(t, d) {
			continue
		}
		if d.Pair.Effect == taints.NoExecute && !isDesired(before, d.Pair) && !t.in.Node.Has(d.Pair) {
			s.eviction.at = t.now // again, if the slot was lost before the taint was written
		}
		s.ledger.desired = append(s.ledger.desired, d)
	}
	s.ledger.isChanged = s.ledger.isChanged || !slices.Equal(before, s.ledger.desired)
}

// asked returns the taints that the rules ask for at the decided levels, and that others
// let stand. Levels add up: at Critical the taint of Degraded stays.
func (s *State) asked(t *turn) []DesiredTaint {
	var all []DesiredTaint
	for i := range t.policy.Rules {
		rule := &t.policy.Rules[i]
		if !s.letsStand(rule) {
			continue
		}
		d := place(rule, t.in.Facts)
		switch i := slices.IndexFunc(all, func(other DesiredTaint) bool { return other.Pair == d.Pair }); {
		case i < 0:
			all = append(all, d)
		case d.severity > all[i].severity: // the gravest gives the value
			all[i].Value, all[i].severity = d.Value, d.severity
		}
	}
	return all
}

// letsStand reports whether a rule asks for its taint at the decided level, it is not only
// observed, and others let it stand.
func (s *State) letsStand(rule *Rule) bool {
	c := s.conditions.of(rule.Condition)
	return !c.isObserved() && s.asks(c, rule)
}

// asks reports whether a rule asks for its taint at the decided level, and others let it stand. A
// taint that an operator must remove stays when the condition is OK again, because it is ours and
// on the Node.
func (s *State) asks(c *condition, rule *Rule) bool {
	if c.disputeOf(rule.Level).conceded != asRuled || !c.isLatched(rule) {
		return false
	}
	pair, isOurs := rule.Taint.Pair(), false
	if rule.Clear == ClearManual {
		isOurs = (slices.Contains(s.ledger.owned, pair) || isDesired(s.ledger.desired, pair)) && !slices.Contains(s.ledger.lost, pair)
	}
	return isOurs || c.debounce.Level >= rule.Level && c.isFor(rule)
}

// DesiredTaint is one taint that a rule asks for, as it is written to the Node.
type DesiredTaint struct {
	Condition probes.Condition
	Level     probes.Level // of the rule; OK: it is a soft one
	Pair      taints.Pair
	Value     string
	Via       taints.Via
	ruled     taints.Pair // the pair of the rule
	standIn   taints.Pair // what takes its place when it cannot stay
	manual    bool        // somebody else removes it
	severity  int         // of the rule that gives the value
}

// Taint returns the taint with its value.
func (d DesiredTaint) Taint() taints.Taint { return d.Pair.With(d.Value) }

func isDesired(all []DesiredTaint, p taints.Pair) bool {
	return slices.ContainsFunc(all, func(d DesiredTaint) bool { return d.Pair == p })
}

// place returns how and as which pair the rule's taint is to stand on the
// Node.
func place(rule *Rule, facts taints.Facts) DesiredTaint {
	d := DesiredTaint{Condition: rule.Condition, Level: rule.Level, Value: rule.Taint.Value, ruled: rule.Taint.Pair(), manual: rule.Clear == ClearManual, severity: rule.Severity}
	d.standIn = taints.StandInFor(d.ruled, facts.StandInPrefix)
	d.Via, d.Pair = taints.Resolve(d.ruled, facts)
	return d
}

// IsSoft reports whether a rule asks for the taint before the condition is Degraded.
func (d DesiredTaint) IsSoft() bool { return d.Level == probes.OK }

// Cleanup returns the desired state of a Node that no longer has an agent: without the taints and
// conditions of taintlet, the record and the held annotation. A taint that the kubelet's own
// condition asks for is left to the lifecycle controller. stays are pairs that the record names and
// that neither this configuration nor a built-in rule can produce: they may not be removed. While
// there are any, the record stays too. The annotation taintlet.dev/paused always stays, because an
// operator set it. A record that cannot be read is an error, because the taints that it names would
// be forgotten.
func Cleanup(policy *Policy, node *taints.Node) (desired taints.Desired, stays []taints.Pair, err error) {
	read := Read(node)
	if read.recordErr != nil {
		return desired, nil, read.recordErr
	}
	ours := ledger{policy: policy, owned: read.record.Owned}
	desired.Owned = ours.mayRemove(read)
	stays = ours.unasked(read, ours.owned)
	desired.Gone = []string{RepairType}
	desired.Annotations = map[string]string{taints.HeldAnnotation: ""}
	if len(stays) == 0 {
		desired.Annotations[taints.RecordAnnotation] = ""
	}
	for _, name := range policy.names() {
		desired.Gone = append(desired.Gone, ConditionType(name))
	}
	return desired, stays, nil
}

// IsTouched reports whether a cleanup would remove anything from a Node.
func IsTouched(node *taints.Node, policy *Policy) bool {
	for _, key := range []string{taints.RecordAnnotation, taints.HeldAnnotation} {
		if _, found := node.Annotations[key]; found {
			return true
		}
	}
	return slices.ContainsFunc(node.Conditions, func(c taints.NodeCondition) bool { return isOurs(c.Type, policy) })
}

// LastSign is when taintlet most recently wrote the Node. It is by the API server's clock. If the
// API server did not note it, it is the newest heartbeat or decision, by the clock of the host that
// wrote it. Zero when it is not known.
func LastSign(node *taints.Node, policy *Policy) time.Time {
	if at := node.WrittenAt(); !at.IsZero() {
		return at
	}
	last := LastHeartbeat(node, policy)
	if decided := Read(node).record.Time.Time; decided.After(last) {
		last = decided
	}
	return last
}

// LastHeartbeat is the newest heartbeat of our conditions on a Node, by the clock of the host that
// wrote it. Zero when there are none.
func LastHeartbeat(node *taints.Node, policy *Policy) (newest time.Time) {
	for _, c := range node.Conditions {
		if isOurs(c.Type, policy) {
			newest = later(newest, c.LastHeartbeatTime)
		}
	}
	return newest
}
