package config

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/taints"
)

// validateSoftRules refuses soft rules that evict, that come no sooner than Degraded, or
// whose taint the rules, their stand-ins or the control plane have.
func (c *Config) validateSoftRules(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	policy := c.Policy()
	policy.Soft = nil
	for i, rule := range c.SoftRules {
		here, pair := at.Index(i), rule.Taint.Pair()
		if names := c.Names(); !slices.Contains(names, rule.Condition) {
			errs = append(errs, field.NotSupported(here.Child("condition"), rule.Condition, names))
		}
		if rule.Severity < 1 || rule.Severity > 49 {
			errs = append(errs, field.Invalid(here.Child("severity"), rule.Severity, "must be 1 to 49; 50 is the threshold of Degraded"))
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
func lengthOfKeys(soft []decide.SoftRule) (length int) {
	for _, rule := range soft {
		length += len(rule.Taint.Key)
	}
	return length
}
