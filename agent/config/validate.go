package config

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/taints"
)

// Validate returns the values that are impossible, or that do not fit together, with the paths
// of their fields. Those that a field's own bounds rule out are refused when it is read.
func (c *Config) Validate() (errs field.ErrorList) {
	errs = append(errs, oneOf(c.APIVersion, field.NewPath("apiVersion"), APIVersion)...)
	errs = append(errs, oneOf(c.Kind, field.NewPath("kind"), Kind)...)
	errs = append(errs, oneOf(c.Mode, field.NewPath("mode"), decide.Enforce, decide.Observe)...)
	wrong := c.Debounce.validate(field.NewPath(debounceField))
	errs = append(errs, wrong...)
	for _, condition := range c.Conditions {
		at, common := field.NewPath(condition.Field), condition.Common()
		errs = append(errs, condition.Validate(at)...)
		errs = append(errs, oneOf(common.Mode, at.Child("mode"), "", decide.Enforce, decide.Observe)...)
		if len(wrong) == 0 { // else each condition would repeat it
			errs = append(errs, common.Debounce.validate(at.Child(debounceField))...)
		}
	}
	types := make([]string, len(c.Reported))
	for i, r := range c.Reported {
		types[i] = r.Type
	}
	errs = append(errs, entries(types, maxReported, field.NewPath(reportedField), func(string, *field.Path) field.ErrorList { return nil })...)
	errs = append(errs, c.validateRules(field.NewPath(rulesField))...)
	errs = append(errs, entries(c.Maintenance.Conditions, maxMaintenance, field.NewPath("maintenance", "conditions"), c.validateMaintenance)...)
	errs = append(errs, c.validateStartup(field.NewPath("startup", "taint"))...)
	errs = append(errs, oneOf(c.Keys, field.NewPath("keys"), WellKnownKeys, OwnKeys)...)
	return append(errs, validatePrefix(c.KeyPrefix, field.NewPath("keyPrefix"))...)
}

// oneOf refuses a value that is not known.
func oneOf[T ~string](value T, at *field.Path, known ...T) field.ErrorList {
	if slices.Contains(known, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, slices.DeleteFunc(slices.Clone(known), func(k T) bool { return k == "" }))}
}

// entries refuses lists that are too long, and entries that are there twice or that check
// refuses.
func entries[T comparable](list []T, most int, at *field.Path, check func(T, *field.Path) field.ErrorList) (errs field.ErrorList) {
	if len(list) > most {
		return field.ErrorList{field.TooMany(at, len(list), most)}
	}
	for i, entry := range list {
		if slices.Contains(list[:i], entry) {
			errs = append(errs, field.Duplicate(at.Index(i), entry))
		}
		errs = append(errs, check(entry, at.Index(i))...)
	}
	return errs
}

func absolute(p string, at *field.Path) field.ErrorList {
	if !path.IsAbs(p) || path.Clean(p) != p || len(p) > maxPath {
		return field.ErrorList{field.Invalid(at, p, "must be an absolute path without . and .. and trailing /, of at most "+strconv.Itoa(maxPath)+" bytes")}
	}
	return nil
}

// validate refuses values that do not go together.
func (d Debounce) validate(at *field.Path) (errs field.ErrorList) {
	if d.BadSamples > d.Samples {
		errs = append(errs, field.Invalid(at.Child("badSamples"), d.BadSamples, "must be 1 to the number of samples"))
	}
	if d.MaxClearAfter.Duration < d.ClearAfter.Duration {
		errs = append(errs, field.Invalid(at.Child("maxClearAfter"), d.MaxClearAfter.String(), "must be at least clearAfter, "+d.ClearAfter.String()))
	}
	return errs
}

// reachable refuses a threshold that is so high that the easier one could never be reached, and an
// early threshold that is not reached before. free is the share that must be free, early that
// which must be free for no early taint; 0: there is none.
func reachable(d Debounce, at *field.Path, name string, free, early float64) (errs field.ErrorList) {
	if d.ClearFactor*free > 100 {
		errs = append(errs, field.Forbidden(at.Child(name), fmt.Sprintf("the condition could never clear: debounce.clearFactor, %g, times %g %% free is over 100 %%", d.ClearFactor, free)))
	}
	if early > 0 && early <= free {
		errs = append(errs, field.Forbidden(at.Child("earlyPercent"), "must be reached before "+name))
	}
	return errs
}

// validateStartup refuses a key that a rule or a stand-in can have: the taint of a condition
// would go with the start.
func (c *Config) validateStartup(at *field.Path) field.ErrorList {
	key, policy := c.Startup.Taint, c.Policy()
	if key == "" {
		return nil
	}
	errs := notReserved(key, at)
	for _, msg := range validation.IsQualifiedName(key) {
		errs = append(errs, field.Invalid(at, key, "must be the key of a taint, without value and effect: "+msg))
	}
	if slices.ContainsFunc([]taints.Effect{taints.NoSchedule, taints.NoExecute, taints.PreferNoSchedule}, func(e taints.Effect) bool { return policy.Produces(taints.Pair{Key: key, Effect: e}) }) {
		errs = append(errs, field.Forbidden(at, key+" is a key of a rule or of a stand-in; must be another one"))
	}
	return errs
}

// maxMaintenance is how many types of conditions a file may have.
const maxMaintenance = 16

// validateMaintenance refuses types that are True on a healthy Node, and our own: a
// condition that is set would stop the taint that it is set for.
func (c *Config) validateMaintenance(kind string, at *field.Path) (errs field.ErrorList) {
	for _, msg := range validation.IsQualifiedName(kind) {
		errs = append(errs, field.Invalid(at, kind, msg))
	}
	if kind == "Ready" {
		errs = append(errs, field.Forbidden(at, "Ready is True on every healthy Node"))
	}
	isOurs := slices.ContainsFunc(c.Conditions, func(c Condition) bool { return kind == decide.ConditionType(c.Name) })
	if isOurs || kind == decide.RepairType {
		errs = append(errs, field.Forbidden(at, kind+" is a condition of taintlet's own"))
	}
	return errs
}

// validatePrefix refuses what cannot begin a key of our own.
func validatePrefix(prefix string, at *field.Path) (errs field.ErrorList) {
	for _, msg := range validation.IsDNS1123Subdomain(prefix) {
		errs = append(errs, field.Invalid(at, prefix, msg))
	}
	if isOfControlPlane(prefix + "/") {
		errs = append(errs, field.Invalid(at, prefix, "keys with this prefix belong to the control plane"))
	}
	return errs
}

// isOfControlPlane reports whether a key has the prefix of all reserved and all reconciled keys.
func isOfControlPlane(key string) bool {
	return strings.HasPrefix(key, "node.kubernetes.io/") || strings.HasPrefix(key, "node.cloudprovider.kubernetes.io/")
}
