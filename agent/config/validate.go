package config

import (
	"fmt"
	"slices"
	"time"

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
	wrong := validateDebounce(c.Debounce, field.NewPath("debounce"))
	errs = append(errs, wrong...)
	for _, condition := range c.Conditions {
		errs = append(errs, condition.validate()...)
		if len(wrong) == 0 { // else each condition would repeat it
			errs = append(errs, validateDebounce(condition.Common().Debounce, field.NewPath(condition.Field, "debounce"))...)
		}
	}
	errs = append(errs, c.validateReported(field.NewPath(reportedField))...)
	errs = append(errs, c.validateRules(field.NewPath("rules"))...)
	errs = append(errs, c.validateSoftRules(field.NewPath("softRules"))...)
	errs = append(errs, validateBudget(c.WriteBudget, field.NewPath("writeBudget"))...)
	errs = append(errs, c.Eviction.validate(field.NewPath("eviction"))...)
	errs = append(errs, validateBrake(c.FleetBrake, field.NewPath("fleetBrake"))...)
	errs = append(errs, between(c.Repair.After, 0, 24*time.Hour, field.NewPath("repair", "after"))...)
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
	if d := c.Heartbeat.Duration; d != 0 && (d < minHeartbeat || d > maxHeartbeat) {
		errs = append(errs, field.Invalid(field.NewPath("heartbeat"), d.String(), fmt.Sprintf("must be 0 (never), or %s to %s", minHeartbeat, maxHeartbeat)))
	}
	return errs
}

func (c Condition) validate() field.ErrorList {
	at := field.NewPath(c.Field)
	errs := between(c.Common().Period, c.MinInterval(), maxPeriod, at.Child("period"))
	if mode := c.Common().Mode; mode != "" {
		errs = append(errs, validateMode(mode, at.Child("mode"))...)
	}
	return append(errs, c.Validate(at)...)
}

func validateMode(mode decide.Mode, at *field.Path) field.ErrorList {
	if known := []decide.Mode{decide.Enforce, decide.Observe}; !slices.Contains(known, mode) {
		return field.ErrorList{field.NotSupported(at, mode, known)}
	}
	return nil
}

func validateDebounce(d decide.Debounce, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if d.Samples < 1 || d.Samples > maxSamples {
		errs = append(errs, field.Invalid(at.Child("samples"), d.Samples, "must be 1 to 32"))
	}
	if d.BadSamples < 1 || d.BadSamples > d.Samples {
		errs = append(errs, field.Invalid(at.Child("badSamples"), d.BadSamples, "must be 1 to the number of samples"))
	}
	errs = append(errs, between(d.ClearAfter, 0, maxClearAfter, at.Child("clearAfter"))...)
	errs = append(errs, between(d.MaxClearAfter, d.ClearAfter.Duration, maxClearAfter, at.Child("maxClearAfter"))...)
	errs = append(errs, between(d.PenaltyHalfLife, time.Minute, 7*24*time.Hour, at.Child("penaltyHalfLife"))...)
	errs = append(errs, between(d.CriticalAfter, 0, time.Hour, at.Child("criticalAfter"))...)
	return append(errs, between(d.UnknownAfter, time.Minute, maxClearAfter, at.Child("unknownAfter"))...)
}

func validateBudget(b decide.WriteBudget, at *field.Path) field.ErrorList {
	errs := between(b.Interval, time.Second, 24*time.Hour, at.Child("interval"))
	if b.Burst < 1 || b.Burst > 100 {
		errs = append(errs, field.Invalid(at.Child("burst"), b.Burst, "must be 1 to 100"))
	}
	return errs
}

func (e Eviction) validate(at *field.Path) field.ErrorList {
	errs := between(e.Cooldown, time.Second, 24*time.Hour, at.Child("cooldown"))
	errs = append(errs, between(e.Interval, 0, 7*24*time.Hour, at.Child("interval"))...)
	if e.Slots < 0 || e.Slots > 100 {
		errs = append(errs, field.Invalid(at.Child("slots"), e.Slots, "must be 0 (never evict) to 100"))
	}
	return errs
}

// maxPeers is how many peers an agent asks (fleet.MaxPeers).
const maxPeers = 12

func validateBrake(b decide.FleetBrake, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if b.Percent < 0 || b.Percent > 100 {
		errs = append(errs, field.Invalid(at.Child("percent"), b.Percent, "must be 0 (no brake) to 100"))
	}
	if b.MinPeers < 1 || b.MinPeers > maxPeers {
		errs = append(errs, field.Invalid(at.Child("minPeers"), b.MinPeers, "must be 1 to 12"))
	}
	return errs
}

// validateStartup refuses a key that a rule or a stand-in can have: the taint of a condition
// would go with the start.
func (c *Config) validateStartup(at *field.Path) field.ErrorList {
	errs := between(c.Startup.Timeout, time.Minute, 24*time.Hour, at.Child("timeout"))
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
