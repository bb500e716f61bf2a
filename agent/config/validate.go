package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/taints"
)

// Validate returns every impossible value with the path of its field.
func (c *Config) Validate() field.ErrorList {
	var errs field.ErrorList
	if c.APIVersion != APIVersion {
		errs = append(errs, field.NotSupported(field.NewPath("apiVersion"), c.APIVersion, []string{APIVersion}))
	}
	if c.Kind != Kind {
		errs = append(errs, field.NotSupported(field.NewPath("kind"), c.Kind, []string{Kind}))
	}
	errs = append(errs, validateMode(c.Mode, field.NewPath("mode"))...)
	errs = append(errs, c.validateBounds()...)
	wrong := validateDebounce(c.Debounce, field.NewPath(debounceField))
	errs = append(errs, wrong...)
	for _, condition := range c.Conditions {
		at := field.NewPath(condition.Field)
		if mode := condition.Common().Mode; mode != "" {
			errs = append(errs, validateMode(mode, at.Child("mode"))...)
		}
		errs = append(errs, condition.Validate(at)...)
		if len(wrong) == 0 { // else each condition would repeat it
			errs = append(errs, validateDebounce(condition.Common().Debounce, at.Child(debounceField))...)
		}
	}
	errs = append(errs, c.validateReported(field.NewPath(reportedField))...)
	errs = append(errs, c.validateRules(field.NewPath("rules"))...)
	errs = append(errs, c.validateSoftRules(field.NewPath("softRules"))...)
	errs = append(errs, c.validateCritical(field.NewPath("rules"))...)
	errs = append(errs, c.validateMaintenance(field.NewPath("maintenance", "conditions"))...)
	errs = append(errs, c.validateStartup(field.NewPath("startup"))...)
	if known := []string{"", ClusterAutoscaler}; !slices.Contains(known, c.Autoscaler) {
		errs = append(errs, field.NotSupported(field.NewPath("autoscaler"), c.Autoscaler, known))
	}
	for _, msg := range validation.IsDNS1123Subdomain(c.StandInPrefix) {
		errs = append(errs, field.Invalid(field.NewPath("standInPrefix"), c.StandInPrefix, msg))
	}
	if slices.Contains(controlPlanePrefixes(), c.StandInPrefix) {
		errs = append(errs, field.Invalid(field.NewPath("standInPrefix"), c.StandInPrefix, "keys with this prefix belong to the control plane"))
	}
	return errs
}

func validateMode(mode decide.Mode, at *field.Path) field.ErrorList {
	if known := []decide.Mode{decide.Enforce, decide.Observe}; !slices.Contains(known, mode) {
		return field.ErrorList{field.NotSupported(at, mode, known)}
	}
	return nil
}

// validateDebounce refuses values that do not go together.
func validateDebounce(d decide.Debounce, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if d.BadSamples > d.Samples {
		errs = append(errs, field.Invalid(at.Child("badSamples"), d.BadSamples, "must be 1 to the number of samples"))
	}
	if d.MaxClearAfter.Duration < d.ClearAfter.Duration {
		errs = append(errs, field.Invalid(at.Child("maxClearAfter"), d.MaxClearAfter.String(), "must be at least clearAfter, "+d.ClearAfter.String()))
	}
	return errs
}

// validateStartup refuses a key that a rule or a stand-in can have: the taint of a condition
// would go with the start.
func (c *Config) validateStartup(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	key := c.Startup.Taint
	if key == "" {
		return errs
	}
	for _, msg := range validation.IsQualifiedName(key) {
		errs = append(errs, field.Invalid(at.Child("taint"), key, "must be the key of a taint, without value and effect: "+msg))
	}
	if owner := taints.Reserved(key); owner != "" {
		errs = append(errs, field.Forbidden(at.Child("taint"), key+" belongs to "+owner))
	}
	policy := c.Policy()
	for _, effect := range []taints.Effect{taints.NoSchedule, taints.NoExecute, taints.PreferNoSchedule} {
		if policy.Produces(taints.Pair{Key: key, Effect: effect}) {
			return append(errs, field.Forbidden(at.Child("taint"), key+" is a key of a rule or of a stand-in; must be another one"))
		}
	}
	return errs
}

// maxMaintenance is how many types of conditions a file may have.
const maxMaintenance = 16

// defaultMaintenance has those of the lifecycle conditions of Kubernetes (KEP-5683, in
// staging/src/k8s.io/api/core/v1/types.go since 1.37) that say that a Node is disturbed
// now. MaintenancePlanned is none of them: a plan that is made weeks ahead would leave the
// Node without taints until then.
func defaultMaintenance() Maintenance {
	return Maintenance{Conditions: []string{"DrainInProgress", decide.Drained, "MaintenanceInProgress", "GracefulNodeShutdownInProgress"}}
}

// validateMaintenance refuses types that are True on a healthy Node, and our own: a
// condition that is set would stop the taint that it is set for.
func (c *Config) validateMaintenance(at *field.Path) field.ErrorList {
	types := c.Maintenance.Conditions
	if len(types) > maxMaintenance {
		return field.ErrorList{field.TooMany(at, len(types), maxMaintenance)}
	}
	ours := []string{decide.RepairType}
	for _, name := range c.Names() {
		ours = append(ours, decide.ConditionType(name))
	}
	var errs field.ErrorList
	for i, kind := range types {
		here := at.Index(i)
		for _, msg := range validation.IsQualifiedName(kind) {
			errs = append(errs, field.Invalid(here, kind, msg))
		}
		switch {
		case kind == "Ready":
			errs = append(errs, field.Forbidden(here, "Ready is True on every healthy Node"))
		case slices.Contains(ours, kind):
			errs = append(errs, field.Forbidden(here, kind+" is a condition of taintlet's own"))
		case slices.Contains(types[:i], kind):
			errs = append(errs, field.Duplicate(here, kind))
		}
	}
	return errs
}
