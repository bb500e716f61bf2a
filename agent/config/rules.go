package config

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

const (
	// maxReasons is how many reasons a rule may name.
	maxReasons = 16
	// maxKeys is the total length of all keys of the rules, in bytes. It keeps the
	// record, which names each owned pair, within its 4 KiB.
	maxKeys = 1500
)

// refusals collects what is forbidden at a path.
type refusals struct {
	at   *field.Path
	errs field.ErrorList
}

// when forbids a field below the path, if that is so.
func (r *refusals) when(isSo bool, child, why string) {
	if isSo {
		at := r.at
		for name := range strings.SplitSeq(child, ".") {
			at = at.Child(name)
		}
		r.errs = append(r.errs, field.Forbidden(at, why))
	}
}

// also adds errors of other checks.
func (r *refusals) also(errs field.ErrorList) { r.errs = append(r.errs, errs...) }

func (c *Config) validateRules(at *field.Path) (errs field.ErrorList) {
	if most := c.maxRules(); len(c.Rules) > most {
		return field.ErrorList{field.TooMany(at, len(c.Rules), most)}
	}
	length := 0
	for _, rule := range c.SoftRules { // which the record names too
		length += len(rule.Taint.Key)
	}
	for i, rule := range c.Rules {
		here := at.Index(i)
		errs = append(errs, oneOf(rule.Condition, here.Child("condition"), c.Names()...)...)
		errs = append(errs, validateRule(rule, here)...)
		errs = append(errs, c.validateReasons(rule, here.Child("reasons"))...)
		if _, found := c.base(rule); !rule.IsGraver() {
			length += len(rule.Taint.Key)
		} else if !found && !switchesOff(rule) {
			errs = append(errs, field.Invalid(here.Child("severity"), rule.Severity, fmt.Sprintf("changes the value of a taint; a rule for %s %s without severity must ask for %s", rule.Condition, rule.Level, rule.Taint.Pair())))
		}
		if slices.ContainsFunc(c.SoftRules, func(early decide.Rule) bool { return early.Taint.Pair() == rule.Taint.Pair() }) {
			errs = append(errs, field.Forbidden(here.Child("taint"), rule.Taint.Pair().String()+" is an early taint"))
		}
		for j, earlier := range c.Rules[:i] {
			switch isSame := earlier.Taint.Pair() == rule.Taint.Pair() && earlier.Severity == rule.Severity && !switchesOff(rule); {
			case isSame && c.isDefaultRule(rule): // which may not be in the file
				errs = append(errs, field.Invalid(at.Index(j).Child("taint"), rule.Taint.Pair().String(), fmt.Sprintf("the default rule for %s %s asks for it; a rule without reasons replaces that rule", rule.Condition, rule.Level)))
			case isSame:
				errs = append(errs, field.Duplicate(here.Child("taint"), rule.Taint.Pair().String()))
			}
			errs = append(errs, validateTwo(earlier, rule, here)...)
		}
	}
	if length > maxKeys {
		errs = append(errs, field.TooLong(at, "", maxKeys))
	}
	return errs
}

// base returns the rule whose taint a rule with a severity only gives another value; false if
// there is none.
func (c *Config) base(graver decide.Rule) (decide.Rule, bool) {
	i := slices.IndexFunc(c.Rules, func(r decide.Rule) bool {
		return graver.IsGraver() && r.Severity == 0 && r.Condition == graver.Condition && r.Level == graver.Level && r.Taint.Pair() == graver.Taint.Pair()
	})
	if i < 0 {
		return decide.Rule{}, false
	}
	return c.Rules[i], true
}

// validateRule refuses parts of a rule that do not go together. A taint that waits for a removal
// must not evict, or it would keep its slot until then. The control plane must not remove it
// either, or that would acknowledge the fault. It puts its own keys back without a value.
func validateRule(r decide.Rule, at *field.Path) field.ErrorList {
	pair, isManual, isValue := r.Taint.Pair(), r.Clear == decide.ClearManual, r.Severity > 0
	_, isReconciled := taints.LifecycleCondition(pair)
	wrong := refusals{at: at}
	wrong.also(oneOf(r.Clear, at.Child("clear"), decide.ClearAutomatic, decide.ClearManual))
	wrong.also(oneOf(r.Level.String(), at.Child("level"), probes.Degraded.String(), probes.Critical.String()))
	wrong.when(r.Level == probes.Degraded && pair.Effect == taints.NoExecute, "taint.effect", "NoExecute evicts pods and goes with level Critical only")
	wrong.when(switchesOff(r) && len(r.Reasons) > 0, "reasons", "the effect None replaces the default rule, which a rule with reasons does not")
	wrong.when(isManual && r.Level == probes.Critical, "clear", "manual goes with level Degraded only: a taint that evicts would keep its eviction slot")
	wrong.when(isManual && isReconciled, "clear", "manual needs a key of your own: the control plane removes "+pair.String())
	wrong.when(isManual && switchesOff(r), "clear", "the effect None asks for no taint that could stay")
	wrong.when(isValue && r.Level == probes.Critical, "severity", "goes with level Degraded only")
	wrong.when(isValue && len(r.Reasons) > 0, "reasons", "the rule without severity says for which")
	wrong.when(isValue && isManual, "clear", "the rule without severity says who removes the taint")
	wrong.when(isValue && switchesOff(r), "severity", "the effect None asks for no taint that could have a value")
	wrong.when(isValue && isOfControlPlane(pair.Key), "severity", "needs a key of your own: "+pair.Key+" belongs to the control plane")
	if r.Level == probes.Critical {
		wrong.also(oneOf(pair.Effect, at.Child("taint", "effect"), taints.NoExecute))
	}
	return append(wrong.errs, validateTaint(r.Taint, at.Child("taint"))...)
}

// validateTaint refuses impossible taints and other programs' keys.
func validateTaint(t decide.Taint, at *field.Path) field.ErrorList {
	wrong := refusals{at: at}
	if t.Effect == NoTaint {
		if t.Key != "" || t.Value != "" {
			return field.ErrorList{field.Forbidden(at, "the effect None asks for no taint: neither key nor value goes with it")}
		}
		return nil
	}
	for _, msg := range validation.IsQualifiedName(t.Key) {
		wrong.also(field.ErrorList{field.Invalid(at.Child("key"), t.Key, msg)})
	}
	for _, msg := range validation.IsValidLabelValue(t.Value) {
		wrong.also(field.ErrorList{field.Invalid(at.Child("value"), t.Value, msg)})
	}
	owner := taints.Reserved(t.Key)
	wrong.when(owner != "", "key", t.Key+" belongs to "+owner)
	wrong.also(oneOf(t.Effect, at.Child("effect"), taints.NoSchedule, taints.PreferNoSchedule, taints.NoExecute, NoTaint))
	return wrong.errs
}

// validateTwo refuses two rules of a condition and level for one reason, two rules for Critical,
// and two taints that wait for a removal, because it would not be clear which fault a removal
// acknowledges.
func validateTwo(earlier, later decide.Rule, at *field.Path) field.ErrorList {
	if earlier.Condition != later.Condition || earlier.IsGraver() || later.IsGraver() {
		return nil
	}
	wrong := refusals{at: at}
	wrong.when(earlier.Clear == decide.ClearManual && later.Clear == decide.ClearManual, "clear", "another rule for "+string(later.Condition)+" has manual too; one may have it")
	isNarrow := len(earlier.Reasons) > 0 || len(later.Reasons) > 0
	switch {
	case earlier.Level != later.Level:
	case !isNarrow || later.Level == probes.Critical:
		wrong.also(field.ErrorList{field.Duplicate(at, string(later.Condition)+" "+later.Level.String())})
	default:
		for i, reason := range later.Reasons {
			if slices.Contains(earlier.Reasons, reason) {
				wrong.also(field.ErrorList{field.Duplicate(at.Child("reasons").Index(i), reason)})
			}
		}
	}
	return wrong.errs
}

// validateCritical refuses rules that would evict without a bound, and those
// that would leave the Node without a taint on the way down.
func (c *Config) validateCritical(at *field.Path) (errs field.ErrorList) {
	policy := c.Policy()
	for i, rule := range c.Rules {
		if rule.Level != probes.Critical {
			continue
		}
		if c.Eviction.Slots == 0 {
			errs = append(errs, field.Forbidden(at.Index(i).Child("level"), "Critical evicts pods and needs a bound: eviction.slots is 0"))
		}
		if bare := withoutDegraded(policy, rule); bare != "" {
			errs = append(errs, field.Required(at.Index(i).Child("level"), "Critical comes after Degraded: a rule for "+string(rule.Condition)+" Degraded is needed too, for "+bare))
		}
	}
	return errs
}

// withoutDegraded returns a reason, or "all reasons", that a rule for Critical covers and no rule
// for Degraded does; empty: there is none.
func withoutDegraded(policy *decide.Policy, critical decide.Rule) string {
	isCovered := func(reason string) bool {
		return slices.ContainsFunc(policy.Rules, func(r decide.Rule) bool {
			return r.Condition == critical.Condition && r.Level == probes.Degraded && r.Covers(reason)
		})
	}
	for _, reason := range critical.Reasons {
		if !isCovered(reason) {
			return "the reason " + reason
		}
	}
	if len(critical.Reasons) == 0 && !isCovered("") {
		return "all reasons"
	}
	return ""
}

// validateReasons refuses a reason that no sample can have. Those of conditions that others
// report are not known.
func (c *Config) validateReasons(r decide.Rule, at *field.Path) field.ErrorList {
	condition, _ := c.Condition(r.Condition)
	return entries(r.Reasons, maxReasons, at, func(reason string, at *field.Path) field.ErrorList {
		if known := condition.Reasons; len(known) > 0 {
			return oneOf(reason, at, known...)
		}
		if !probes.IsReason(reason) {
			return field.ErrorList{field.Invalid(at, reason, "must be a reason: letters, digits, _ , and :, such as TaskHung, at most 64")}
		}
		return nil
	})
}

// The reasons of bad samples, by which rules choose. They are an interface: a reason that is
// renamed, or whose meaning changes, breaks the rules of files.

func memoryReasons() []string {
	return []string{"MemoryLow", "MemoryStalled", "MemoryStalledFully"}
}

func diskReasons() []string {
	return append(diskFaults(), "SpaceLow", "InodesLow", "MountReadOnly", "NotMounted", "WriteSlow", "WriteNoSpace")
}

func pidReasons() []string { return []string{"PIDsLow", "PIDsExhausted"} }

func networkReasons() []string { return append(networkFaults(), "PacketLoss") }
