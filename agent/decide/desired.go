package decide

import (
	"slices"

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

// otherWay is the same taint as it stands where the policy is there although it
// has gone, or is not there although it has come.
func (d desired) otherWay() desired {
	if d.via != taints.StandIn {
		return d.as(taints.StandIn, d.standIn)
	}
	if _, reconciled := taints.LifecycleCondition(d.ruled); reconciled {
		return d.as(taints.Kept, d.ruled)
	}
	return d.as(taints.Direct, d.ruled)
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
