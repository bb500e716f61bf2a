package decide

import (
	"slices"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// desire decides which taints are to stand on the Node now.
func (s *State) desire(t *turn) {
	for i := range s.conditions {
		s.conditions[i].settleManual(t.policy)
	}
	asked := s.asked(t)
	s.ledger.desired = asked[:0]
	for _, d := range asked {
		d = s.asItStands(t.in.Node, d)
		if held, _ := s.taintGate(t, d); held != "" {
			continue
		}
		s.ledger.desired = append(s.ledger.desired, d)
		if d.manual {
			s.conditions.of(d.Condition).manual = awaiting
		}
	}
}

// asked returns the taints that the rules ask for at the decided levels, and that others
// let stand. Levels add up: at Critical the taint of Degraded stays.
func (s *State) asked(t *turn) []DesiredTaint {
	var all []DesiredTaint
	for i := range t.policy.Rules {
		rule := &t.policy.Rules[i]
		dispute, asks := s.asks(rule)
		if !asks {
			continue
		}
		if d := place(rule, dispute, t.in.Facts); !isDesired(all, d.Pair) {
			d.Value = s.valueOf(rule, d.Via)
			all = append(all, d)
		}
	}
	for _, rule := range t.policy.Soft {
		if s.conditions.of(rule.Condition).soft.isDesired {
			all = append(all, rule.desired())
		}
	}
	return all
}

// asks reports whether a rule asks for its taint at the decided level and others let it
// stand, and returns how far they do.
func (s *State) asks(rule *Rule) (dispute, bool) {
	c := s.conditions.of(rule.Condition)
	d := *c.disputeOf(rule.Level)
	held, _ := d.holds()
	return d, held == "" && c.asksFor(rule)
}

// DesiredTaint is one taint that a rule asks for, as it is to stand on the Node.
type DesiredTaint struct {
	Condition probes.Condition
	Level     probes.Level // of the rule; OK: it is a soft one
	Pair      taints.Pair
	Value     string
	Via       taints.Via
	ruled     taints.Pair // the pair of the rule
	standIn   taints.Pair // what takes its place when it cannot stay
	manual    bool        // somebody else removes it
}

// Taint returns the taint with its value.
func (d DesiredTaint) Taint() taints.Taint { return d.Pair.With(d.Value) }

// as returns the same taint as another pair, and how that one stays.
func (d DesiredTaint) as(via taints.Via, pair taints.Pair) DesiredTaint {
	d.Via, d.Pair = via, pair
	return d
}

func isDesired(all []DesiredTaint, p taints.Pair) bool {
	return slices.ContainsFunc(all, func(d DesiredTaint) bool { return d.Pair == p })
}

// otherWay is the same taint as it stands where the policy is there although it
// has gone, or is not there although it has come.
func (d DesiredTaint) otherWay() DesiredTaint {
	if d.Via != taints.StandIn {
		return d.as(taints.StandIn, d.standIn)
	}
	if _, reconciled := taints.LifecycleCondition(d.ruled); reconciled {
		return d.as(taints.Kept, d.ruled)
	}
	return d.as(taints.Direct, d.ruled)
}

// place returns how and as which pair the rule's taint is to stand on the
// Node.
func place(rule *Rule, dispute dispute, facts taints.Facts) DesiredTaint {
	d := DesiredTaint{Condition: rule.Condition, Level: rule.Level, Value: rule.Taint.Value, ruled: rule.Taint.Pair(), manual: rule.Clear == ClearManual}
	d.standIn = taints.StandInFor(d.ruled, facts.StandInPrefix)
	via, pair := taints.Resolve(d.ruled, facts)
	if dispute.stage == standIn {
		via, pair = taints.StandIn, d.standIn
	}
	return d.as(via, pair)
}
