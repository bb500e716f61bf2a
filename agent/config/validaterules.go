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

func (c *Config) validateRules(at *field.Path) field.ErrorList {
	if most := c.maxRules(); len(c.Rules) > most {
		return field.ErrorList{field.TooMany(at, len(c.Rules), most)}
	}
	var errs field.ErrorList
	length := lengthOfKeys(c.SoftRules)
	for i, rule := range c.Rules {
		here := at.Index(i)
		if names := c.Names(); !slices.Contains(names, rule.Condition) {
			errs = append(errs, field.NotSupported(here.Child("condition"), rule.Condition, names))
		}
		errs = append(errs, validateRule(rule, here)...)
		errs = append(errs, c.validateReasons(rule, here.Child("reasons"))...)
		length += len(rule.Taint.Key)
		for j, earlier := range c.Rules[:i] {
			switch isSame := earlier.Taint.Pair() == rule.Taint.Pair() && !switchesOff(rule); {
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

func validateRule(r decide.Rule, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch r.Level {
	case probes.Degraded:
		if r.Taint.Effect == taints.NoExecute {
			errs = append(errs, field.Forbidden(at.Child("taint", "effect"), "NoExecute evicts pods and goes with level Critical only"))
		}
	case probes.Critical:
		if r.Taint.Effect != taints.NoExecute {
			errs = append(errs, field.NotSupported(at.Child("taint", "effect"), r.Taint.Effect, []taints.Effect{taints.NoExecute}))
		}
	default:
		errs = append(errs, field.NotSupported(at.Child("level"), r.Level.String(), []string{probes.Degraded.String(), probes.Critical.String()}))
	}
	if switchesOff(r) && len(r.Reasons) > 0 {
		errs = append(errs, field.Forbidden(at.Child("reasons"), "the effect None replaces the default rule, which a rule with reasons does not"))
	}
	errs = append(errs, validateClear(r, at)...)
	return append(errs, validateTaint(r.Taint, at.Child("taint"))...)
}

// validateTwo refuses two rules of a condition and level for the same reason, two for
// Critical, and two taints that somebody else removes: which one that acknowledges would
// not be clear.
func validateTwo(earlier, later decide.Rule, at *field.Path) field.ErrorList {
	if earlier.Condition != later.Condition {
		return nil
	}
	var errs field.ErrorList
	isManual := earlier.Clear == decide.ClearManual && later.Clear == decide.ClearManual
	if isManual {
		errs = append(errs, field.Forbidden(at.Child("clear"), "another rule for "+string(later.Condition)+" has manual too; one may have it"))
	}
	if earlier.Level != later.Level {
		return errs
	}
	isNarrow := len(earlier.Reasons) > 0 || len(later.Reasons) > 0
	if !isNarrow || later.Level == probes.Critical {
		return append(errs, field.Duplicate(at, string(later.Condition)+" "+later.Level.String()))
	}
	for i, reason := range later.Reasons {
		if slices.Contains(earlier.Reasons, reason) {
			errs = append(errs, field.Duplicate(at.Child("reasons").Index(i), reason))
		}
	}
	return errs
}

// validateClear refuses what somebody else could not acknowledge: a taint that evicts would
// keep its slot until then, and one that the control plane removes would be acknowledged by
// that.
func validateClear(r decide.Rule, at *field.Path) field.ErrorList {
	at = at.Child("clear")
	_, isReconciled := taints.LifecycleCondition(r.Taint.Pair())
	switch {
	case r.Clear == decide.ClearAutomatic:
		return nil
	case r.Clear != decide.ClearManual:
		return field.ErrorList{field.NotSupported(at, r.Clear, []decide.Clearing{decide.ClearManual})}
	case r.Level == probes.Critical:
		return field.ErrorList{field.Forbidden(at, "manual goes with level Degraded only: a taint that evicts would keep its eviction slot")}
	case isReconciled:
		return field.ErrorList{field.Forbidden(at, "manual needs a key of your own: the control plane removes "+r.Taint.Pair().String())}
	case r.Taint.Effect == NoTaint:
		return field.ErrorList{field.Forbidden(at, "the effect None asks for no taint that could stay")}
	}
	return nil
}

// validateCritical refuses rules that would evict without a bound, and those
// that would leave the Node without a taint on the way down.
func (c *Config) validateCritical(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	policy := c.Policy()
	for i, rule := range c.Rules {
		if rule.Level != probes.Critical {
			continue
		}
		if c.Eviction.Slots == 0 {
			errs = append(errs, field.Forbidden(at.Index(i).Child("level"), "Critical evicts pods and needs a bound: eviction.slots is 0"))
		}
		if !policy.HasRule(rule.Condition, probes.Degraded) {
			errs = append(errs, field.Required(at.Index(i).Child("level"), "Critical comes after Degraded: a rule for "+string(rule.Condition)+" Degraded is needed too"))
			continue
		}
		if bare := withoutDegraded(policy, rule); bare != "" {
			errs = append(errs, field.Required(at.Index(i), "Critical comes after Degraded: no rule for "+string(rule.Condition)+" Degraded covers "+bare))
		}
	}
	return errs
}

// withoutDegraded returns what a rule for Critical covers and no rule for Degraded does: a
// reason, or "all reasons"; empty: nothing.
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

// validateSoftRules refuses soft rules that evict, that come no sooner than Degraded, or
// whose taint the rules, their stand-ins or the control plane have.
func (c *Config) validateSoftRules(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	policy := c.Policy()
	policy.Rules = slices.DeleteFunc(policy.Rules, func(r decide.Rule) bool { return r.Level == probes.OK })
	for i, rule := range c.SoftRules {
		here, pair := at.Index(i), rule.Taint.Pair()
		if names := c.Names(); !slices.Contains(names, rule.Condition) {
			errs = append(errs, field.NotSupported(here.Child("condition"), rule.Condition, names))
		}
		if effects := []taints.Effect{taints.PreferNoSchedule, taints.NoSchedule}; !slices.Contains(effects, pair.Effect) {
			errs = append(errs, field.NotSupported(here.Child("taint", "effect"), pair.Effect, effects))
		} else {
			errs = append(errs, validateTaint(rule.Taint, here.Child("taint"))...)
		}
		if rule.Taint.ValueFrom != "" {
			errs = append(errs, field.Forbidden(here.Child("taint", "valueFrom"), "goes with rules for Degraded only"))
		}
		if policy.Produces(pair) {
			errs = append(errs, field.Forbidden(here.Child("taint"), fmt.Sprintf("%s is a pair of a rule or of a stand-in; must be another one", pair)))
		}
		for _, earlier := range c.SoftRules[:i] {
			switch {
			case earlier.Condition == rule.Condition:
				errs = append(errs, field.Duplicate(here.Child("condition"), rule.Condition))
			case earlier.Taint.Pair() == pair:
				errs = append(errs, field.Duplicate(here.Child("taint"), pair.String()))
			}
		}
	}
	return errs
}

// lengthOfKeys is that of the keys of soft rules, which the record names too, in bytes.
func lengthOfKeys(soft []SoftRule) (length int) {
	for _, rule := range soft {
		length += len(rule.Taint.Key)
	}
	return length
}

// validateValueFrom refuses a value that could evict when it rises, that is given twice, or
// that others write: the control plane puts its keys back without one.
func validateValueFrom(t decide.Taint, at *field.Path) field.ErrorList {
	at = at.Child("valueFrom")
	switch {
	case t.ValueFrom == "":
		return nil
	case t.ValueFrom != FromSeverity:
		return field.ErrorList{field.NotSupported(at, t.ValueFrom, []string{FromSeverity})}
	case t.Value != "":
		return field.ErrorList{field.Forbidden(at, "the taint has a value already")}
	case t.Effect == taints.NoExecute:
		return field.ErrorList{field.Forbidden(at, "NoExecute would evict pods when the value rises")}
	}
	for _, prefix := range controlPlanePrefixes() {
		if strings.HasPrefix(t.Key, prefix+"/") {
			return field.ErrorList{field.Forbidden(at, "needs a key of your own: "+t.Key+" belongs to the control plane")}
		}
	}
	return nil
}

func validateTaint(t decide.Taint, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Effect == NoTaint {
		if t.Key != "" || t.Value != "" || t.ValueFrom != "" {
			errs = append(errs, field.Forbidden(at, "the effect None asks for no taint: neither key nor value goes with it"))
		}
		return errs
	}
	for _, msg := range validation.IsQualifiedName(t.Key) {
		errs = append(errs, field.Invalid(at.Child("key"), t.Key, msg))
	}
	if owner := taints.Reserved(t.Key); owner != "" {
		errs = append(errs, field.Forbidden(at.Child("key"), t.Key+" belongs to "+owner))
	}
	for _, msg := range validation.IsValidLabelValue(t.Value) {
		errs = append(errs, field.Invalid(at.Child("value"), t.Value, msg))
	}
	errs = append(errs, validateValueFrom(t, at)...)
	effects := []taints.Effect{taints.NoSchedule, taints.PreferNoSchedule, taints.NoExecute, NoTaint}
	if !slices.Contains(effects, t.Effect) {
		errs = append(errs, field.NotSupported(at.Child("effect"), t.Effect, effects))
	}
	return errs
}

// maxReasons is how many reasons a rule may name.
const maxReasons = 16

// validateReasons refuses a reason that no sample can have. Those of conditions that others
// report are not known.
func (c *Config) validateReasons(r decide.Rule, at *field.Path) field.ErrorList {
	if len(r.Reasons) > maxReasons {
		return field.ErrorList{field.TooMany(at, len(r.Reasons), maxReasons)}
	}
	var errs field.ErrorList
	condition, _ := c.Condition(r.Condition)
	for i, reason := range r.Reasons {
		switch known := condition.Reasons; {
		case slices.Contains(r.Reasons[:i], reason):
			errs = append(errs, field.Duplicate(at.Index(i), reason))
		case len(known) > 0 && !slices.Contains(known, reason):
			errs = append(errs, field.NotSupported(at.Index(i), reason, known))
		case !probes.IsReason(reason):
			errs = append(errs, field.Invalid(at.Index(i), reason, "must be a reason: letters, digits, _ , and :, such as TaskHung, at most 64"))
		}
	}
	return errs
}

// The reasons of bad samples, by which rules choose. They are an interface: one that is
// renamed, or that comes to mean something else, breaks the rules of files.

func memoryReasons() []string {
	return []string{"MemoryLow", "MemoryStalled", "MemoryStalledFully"}
}

func diskReasons() []string {
	return append(diskFaults(), "SpaceLow", "InodesLow", "MountReadOnly", "WriteSlow", "WriteNoSpace")
}

func pidReasons() []string { return []string{"PIDsLow", "PIDsExhausted"} }

func networkReasons() []string { return append(networkFaults(), "PacketLoss") }
