package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// NoTaint is the effect of a rule that switches off the default rule of its condition. No such rule
// reaches a Policy.
const NoTaint taints.Effect = "None"

func switchesOff(r decide.Rule) bool { return r.Taint.Effect == NoTaint }

// maxRules is how many rules a file may have: one for Critical of each condition, three for
// Degraded, each for other reasons, and two values.
func (c *Config) maxRules() int { return 6 * len(c.Conditions) }

// addDefaultRules adds the default rule of each condition that a file has no rule for Degraded
// without reasons for: it asks for NoSchedule. Nothing evicts unless the operator says so. The
// rules of the file keep their places, by which errors name them.
func (c *Config) addDefaultRules() {
	if c.Rules != nil && len(c.Rules) == 0 {
		return // no taint at all
	}
	for _, rule := range c.ownPolicy().BuiltInRules() {
		isRuled := slices.ContainsFunc(c.Rules, func(r decide.Rule) bool {
			return r.Condition == rule.Condition && r.Level == rule.Level && len(r.Reasons) == 0 && !r.IsGraver()
		})
		if c.Keys == OwnKeys {
			rule.Taint.Key = taints.StandInFor(rule.Taint.Pair(), c.KeyPrefix).Key
		}
		if rule.Level == probes.Degraded && !isRuled && len(c.Rules) < c.maxRules() {
			c.Rules = append(c.Rules, rule)
		}
	}
}

// rules returns those that the decider follows.
func (c *Config) rules() (rules []decide.Rule) {
	for _, rule := range c.Rules {
		if base, found := c.base(rule); found {
			rule.Reasons, rule.Clear = base.Reasons, base.Clear
		}
		if !switchesOff(rule) {
			rules = append(rules, rule)
		}
	}
	return append(rules, c.SoftRules...)
}

// base returns the rule whose taint a rule with a severity gives another value; false if there is none.
func (c *Config) base(graver decide.Rule) (decide.Rule, bool) {
	for _, r := range c.Rules {
		if graver.IsGraver() && r.Severity == 0 && r.Condition == graver.Condition && r.Level == graver.Level && r.Taint.Pair() == graver.Taint.Pair() {
			return r, true
		}
	}
	return decide.Rule{}, false
}

func (c *Config) validateRules(at *field.Path) field.ErrorList {
	if most := c.maxRules(); len(c.Rules) > most {
		return field.ErrorList{field.TooMany(at, len(c.Rules), most)}
	}
	length := 0
	for _, rule := range slices.Concat(c.SoftRules, c.Rules) {
		if !rule.IsGraver() {
			length += len(rule.Taint.Key)
		}
	}
	errs := when(length > maxKeys, field.TooLong(at, "", maxKeys))
	for i, rule := range c.Rules {
		here := at.Index(i)
		errs = slices.Concat(errs,
			oneOf(rule.Condition, here.Child("condition"), c.Names()...), validateRule(rule, here), validateTaint(rule.Taint, here.Child("taint")),
			c.validateReasons(rule, here.Child("reasons")), c.validateBeside(rule, here))
		for j, earlier := range c.Rules[:i] {
			errs = append(errs, validateTwo(earlier, rule, at.Index(j), here)...)
		}
	}
	return errs
}

// validateRule refuses parts of a rule that do not go together. A taint that waits for a removal
// must not evict, or it would keep its slot until then. The control plane must not remove it
// either, or that would acknowledge the fault. It puts its own keys back without a value.
func validateRule(r decide.Rule, at *field.Path) field.ErrorList {
	pair, isManual, isValue, isCritical := r.Taint.Pair(), r.Clear == decide.ClearManual, r.Severity > 0, r.Level == probes.Critical
	_, isReconciled := taints.LifecycleCondition(pair)
	hasMore := len(r.Reasons) > 0 || r.Clear != ""
	effects := []taints.Effect{taints.NoSchedule, taints.PreferNoSchedule, taints.NoExecute, NoTaint}
	if isCritical {
		effects = []taints.Effect{taints.NoExecute}
	}
	taint, clear, severity := at.Child("taint"), at.Child("clear"), at.Child("severity")
	return slices.Concat(
		when(!isManual && r.Clear != "", field.NotSupported(clear, r.Clear, []decide.Clearing{decide.ClearManual})),
		oneOf(r.Level.String(), at.Child("level"), probes.Degraded.String(), probes.Critical.String()),
		oneOf(pair.Effect, taint.Child("effect"), effects...),
		when(switchesOff(r) && (hasMore || isValue || pair.Key != "" || r.Taint.Value != ""), field.Forbidden(taint, "the effect None switches the default rule off: only condition and level go with it")),
		when(!isCritical && pair.Effect == taints.NoExecute, field.Forbidden(taint, "the effect NoExecute evicts pods and goes with level Critical only")),
		when(isManual && isCritical, field.Forbidden(clear, "manual goes with level Degraded only: a taint that evicts would keep its eviction slot")),
		when(isManual && isReconciled, field.Forbidden(clear, "manual needs a key of your own: the control plane removes "+pair.String())),
		when(isValue && isCritical, field.Forbidden(severity, "goes with level Degraded only")),
		when(isValue && hasMore, field.Forbidden(severity, "the rule without severity has the reasons, and says who removes the taint")),
		when(isValue && isOfControlPlane(pair.Key), field.Forbidden(severity, "needs a key of your own: "+pair.Key+" belongs to the control plane")),
	)
}

// validateTaint refuses impossible taints and other programs' keys.
func validateTaint(t decide.Taint, at *field.Path) field.ErrorList {
	if t.Effect == NoTaint {
		return nil
	}
	return slices.Concat(
		invalid(at.Child("key"), t.Key, "", validation.IsQualifiedName(t.Key)),
		invalid(at.Child("value"), t.Value, "", validation.IsValidLabelValue(t.Value)),
		when(taints.Reserved(t.Key) != "", field.Forbidden(at.Child("key"), t.Key+" belongs to "+taints.Reserved(t.Key))),
	)
}

// validateReasons refuses a reason that no sample can have. Those that others report are not known.
func (c *Config) validateReasons(r decide.Rule, at *field.Path) field.ErrorList {
	condition, _ := c.Condition(r.Condition)
	return entries(r.Reasons, maxReasons, at, func(reason string, at *field.Path) field.ErrorList {
		if known := condition.Reasons; len(known) > 0 {
			return oneOf(reason, at, known...)
		}
		return when(!probes.IsReason(reason), field.Invalid(at, reason, "must be a reason: letters, digits, _ , and :, such as TaskHung, at most 64"))
	})
}

// validateBeside refuses a rule that another rule or a bound must be there for. Critical evicts,
// and must leave the Node with a taint on the way down.
func (c *Config) validateBeside(rule decide.Rule, at *field.Path) field.ErrorList {
	_, hasBase := c.base(rule)
	isEarly := slices.ContainsFunc(c.SoftRules, func(early decide.Rule) bool { return early.Taint.Pair() == rule.Taint.Pair() })
	errs := slices.Concat(
		when(rule.IsGraver() && !hasBase && !switchesOff(rule), field.Invalid(at.Child("severity"), rule.Severity,
			fmt.Sprintf("changes the value of a taint; a rule for %s %s without severity must ask for %s", rule.Condition, rule.Level, rule.Taint.Pair()))),
		when(isEarly, field.Forbidden(at.Child("taint"), rule.Taint.Pair().String()+" is an early taint")),
	)
	if rule.Level != probes.Critical {
		return errs
	}
	bare := slices.Clone(rule.Reasons)
	if len(bare) == 0 {
		bare = []string{""} // all
	}
	for _, other := range c.rules() {
		if other.Condition == rule.Condition && other.Level == probes.Degraded {
			bare = slices.DeleteFunc(bare, other.Covers)
		}
	}
	return slices.Concat(errs,
		when(c.Eviction.Slots == 0, field.Forbidden(at.Child("level"), "Critical evicts pods and needs a bound: eviction.slots is 0")),
		when(len(bare) > 0, field.Required(at.Child("level"), fmt.Sprintf("Critical comes after Degraded: a rule for %s Degraded is needed too, for %s", rule.Condition, cmp.Or(strings.Join(bare, ", "), "all reasons")))),
	)
}

// validateTwo refuses two rules for one pair. Of a condition it refuses two rules for Critical, and
// two for one level without reasons. It also refuses two taints that wait for a removal, because it
// would not be clear which fault a removal acknowledges. The later rule may be a default rule,
// which is not in the file.
func validateTwo(earlier, later decide.Rule, atEarlier, at *field.Path) field.ErrorList {
	pair := later.Taint.Pair()
	isOfOne := earlier.Condition == later.Condition && !earlier.IsGraver() && !later.IsGraver()
	isForAll := len(earlier.Reasons)+len(later.Reasons) == 0
	return slices.Concat(
		when(earlier.Taint.Pair() == pair && earlier.Severity == later.Severity && !switchesOff(later),
			field.Invalid(atEarlier.Child("taint"), pair.String(), fmt.Sprintf("the rule for %s %s asks for it too", later.Condition, later.Level))),
		when(isOfOne && earlier.Clear == decide.ClearManual && later.Clear == decide.ClearManual, field.Forbidden(at.Child("clear"), "another rule for "+string(later.Condition)+" has manual too; one may have it")),
		when(isOfOne && earlier.Level == later.Level && (isForAll || later.Level == probes.Critical), field.Duplicate(at, string(later.Condition)+" "+later.Level.String())),
	)
}
