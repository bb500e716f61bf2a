package decide

import (
	"slices"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

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
	if dispute.conceded == standIn {
		via, pair = taints.StandIn, d.standIn
	}
	return d.as(via, pair)
}

// IsSoft reports whether a rule asks for the taint before the condition is Degraded.
func (d DesiredTaint) IsSoft() bool { return d.Level == probes.OK }
