package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
)

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
