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
func (c *Config) Validate() field.ErrorList {
	var no refusals
	no.also(oneOf(c.APIVersion, field.NewPath("apiVersion"), APIVersion))
	no.also(oneOf(c.Kind, field.NewPath("kind"), Kind))
	no.also(oneOf(c.Mode, field.NewPath("mode"), decide.Enforce, decide.Observe))
	wrong := c.Debounce.validate(field.NewPath(debounceField))
	no.also(wrong)
	for _, condition := range c.Conditions {
		at, common := field.NewPath(condition.Field), condition.Common()
		no.also(condition.Validate(at))
		no.also(oneOf(common.Mode, at.Child("mode"), "", decide.Enforce, decide.Observe))
		if len(wrong) == 0 { // else each condition would repeat it
			no.also(common.Debounce.validate(at.Child(debounceField)))
		}
	}
	types := make([]string, len(c.Reported))
	for i, r := range c.Reported {
		types[i] = r.Type
	}
	no.also(entries(types, maxReported, field.NewPath(reportedField), func(string, *field.Path) field.ErrorList { return nil }))
	no.also(c.validateRules(field.NewPath(rulesField)))
	no.also(entries(c.Maintenance.Conditions, maxMaintenance, field.NewPath("maintenance", "conditions"), c.validateMaintenance))
	no.also(c.validateStartup(field.NewPath("startup", "taint")))
	no.also(oneOf(c.Keys, field.NewPath("keys"), WellKnownKeys, OwnKeys))
	no.invalid(field.NewPath("keyPrefix"), c.KeyPrefix, "", validation.IsDNS1123Subdomain(c.KeyPrefix))
	no.when(isOfControlPlane(c.KeyPrefix+"/"), field.Invalid(field.NewPath("keyPrefix"), c.KeyPrefix, "keys with this prefix belong to the control plane"))
	return no.errs
}

// refusals collects what is refused.
type refusals struct{ errs field.ErrorList }

func (r *refusals) when(isSo bool, err *field.Error) {
	if isSo {
		r.errs = append(r.errs, err)
	}
}

func (r *refusals) also(errs field.ErrorList) { r.errs = append(r.errs, errs...) }

// invalid refuses a value for which there are messages.
func (r *refusals) invalid(at *field.Path, value, hint string, messages []string) {
	for _, msg := range messages {
		r.errs = append(r.errs, field.Invalid(at, value, hint+msg))
	}
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
func entries[T comparable](list []T, most int, at *field.Path, check func(T, *field.Path) field.ErrorList) field.ErrorList {
	if len(list) > most {
		return field.ErrorList{field.TooMany(at, len(list), most)}
	}
	var no refusals
	for i, entry := range list {
		no.when(slices.Contains(list[:i], entry), field.Duplicate(at.Index(i), entry))
		no.also(check(entry, at.Index(i)))
	}
	return no.errs
}

func absolute(p string, at *field.Path) field.ErrorList {
	var no refusals
	no.when(!path.IsAbs(p) || path.Clean(p) != p || len(p) > maxPath,
		field.Invalid(at, p, "must be an absolute path without . and .. and trailing /, of at most "+strconv.Itoa(maxPath)+" bytes"))
	return no.errs
}

// validate refuses values that do not go together.
func (d Debounce) validate(at *field.Path) field.ErrorList {
	var no refusals
	no.when(d.BadSamples > d.Samples, field.Invalid(at.Child("badSamples"), d.BadSamples, "must be 1 to the number of samples"))
	no.when(d.MaxClearAfter.Duration < d.ClearAfter.Duration, field.Invalid(at.Child("maxClearAfter"), d.MaxClearAfter.String(), "must be at least clearAfter, "+d.ClearAfter.String()))
	return no.errs
}

// reachable refuses a threshold that is so high that the easier one could never be reached, and an
// early threshold that is not reached before. free is the share that must be free, early that
// which must be free for no early taint; 0: there is none.
func reachable(d Debounce, at *field.Path, name string, free, early float64) field.ErrorList {
	var no refusals
	no.when(d.ClearFactor*free > 100, field.Forbidden(at.Child(name), fmt.Sprintf("the condition could never clear: debounce.clearFactor, %g, times %g %% free is over 100 %%", d.ClearFactor, free)))
	no.when(early > 0 && early <= free, field.Forbidden(at.Child("earlyPercent"), "must be reached before "+name))
	return no.errs
}

// validateStartup refuses a key that a rule or a stand-in can have: the taint of a condition
// would go with the start.
func (c *Config) validateStartup(at *field.Path) field.ErrorList {
	key, policy := c.Startup.Taint, c.Policy()
	if key == "" {
		return nil
	}
	isRuled := func(e taints.Effect) bool { return policy.Produces(taints.Pair{Key: key, Effect: e}) }
	var no refusals
	no.invalid(at, key, "must be the key of a taint, without value and effect: ", validation.IsQualifiedName(key))
	no.when(taints.Reserved(key) != "", field.Forbidden(at, key+" belongs to "+taints.Reserved(key)))
	no.when(isRuled(taints.NoSchedule) || isRuled(taints.NoExecute) || isRuled(taints.PreferNoSchedule), field.Forbidden(at, key+" is a key of a rule or of a stand-in; must be another one"))
	return no.errs
}

// maxMaintenance is how many types of conditions a file may have.
const maxMaintenance = 16

// validateMaintenance refuses types that are True on a healthy Node, and our own: a
// condition that is set would stop the taint that it is set for.
func (c *Config) validateMaintenance(kind string, at *field.Path) field.ErrorList {
	isOurs := slices.ContainsFunc(c.Conditions, func(c Condition) bool { return kind == decide.ConditionType(c.Name) })
	var no refusals
	no.invalid(at, kind, "", validation.IsQualifiedName(kind))
	no.when(kind == "Ready", field.Forbidden(at, "Ready is True on every healthy Node"))
	no.when(isOurs || kind == decide.RepairType, field.Forbidden(at, kind+" is a condition of taintlet's own"))
	return no.errs
}

// isOfControlPlane reports whether a key has the prefix of all reserved and all reconciled keys.
func isOfControlPlane(key string) bool {
	return strings.HasPrefix(key, "node.kubernetes.io/") || strings.HasPrefix(key, "node.cloudprovider.kubernetes.io/")
}
