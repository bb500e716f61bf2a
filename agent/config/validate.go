package config

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// The most that a file may have. The record, of 4 KiB, remembers each condition that others report,
// and names each owned pair.
const (
	maxReported    = 20
	maxKeys        = 1500 // bytes of all keys of the rules
	maxReasons     = 16   // of a rule
	maxMaintenance = 16
	maxOverrides   = 32
	maxPaths       = 32
	maxPath        = 4096 // bytes (PATH_MAX)
)

// Validate returns the values that are impossible, or that do not fit together, with the paths
// of their fields. Those that a field's own bounds rule out are refused when it is read.
func (c *Config) Validate() field.ErrorList {
	modes := []decide.Mode{decide.Enforce, decide.Observe}
	wrong := c.Debounce.validate(field.NewPath("debounce"))
	errs := slices.Concat(
		oneOf(c.APIVersion, field.NewPath("apiVersion"), APIVersion),
		oneOf(c.Kind, field.NewPath("kind"), Kind),
		oneOf(c.Mode, field.NewPath("mode"), modes...),
		wrong,
	)
	reported := c.Names()[len(c.Conditions)-len(c.Reported):]
	for _, condition := range c.Conditions {
		at, common := field.NewPath(condition.Field), condition.Common()
		errs = slices.Concat(errs, condition.Validate(at), oneOf(cmp.Or(common.Mode, decide.Enforce), at.Child("mode"), modes...))
		if len(wrong) == 0 { // else each condition would repeat it
			errs = append(errs, common.Debounce.validate(at.Child("debounce"))...)
		}
	}
	return slices.Concat(errs,
		entries(reported, maxReported, field.NewPath("conditions"), func(probes.Condition, *field.Path) field.ErrorList { return nil }),
		c.validateRules(field.NewPath("rules")),
		entries(c.Maintenance.Conditions, maxMaintenance, field.NewPath("maintenance", "conditions"), c.validateMaintenance),
		c.validateStartup(field.NewPath("startup", "taint")),
		oneOf(c.Keys, field.NewPath("keys"), WellKnownKeys, OwnKeys),
		invalid(field.NewPath("keyPrefix"), c.KeyPrefix, "", validation.IsDNS1123Subdomain(c.KeyPrefix)),
		when(isOfControlPlane(c.KeyPrefix+"/"), field.Invalid(field.NewPath("keyPrefix"), c.KeyPrefix, "keys with this prefix belong to the control plane")),
	)
}

// when is a refusal if that is so.
func when(isSo bool, refusal *field.Error) field.ErrorList {
	if !isSo {
		return nil
	}
	return field.ErrorList{refusal}
}

// invalid refuses a value for which there are messages.
func invalid(at *field.Path, value, hint string, messages []string) (errs field.ErrorList) {
	for _, msg := range messages {
		errs = append(errs, field.Invalid(at, value, hint+msg))
	}
	return errs
}

// oneOf refuses a value that is not known.
func oneOf[T ~string](value T, at *field.Path, known ...T) field.ErrorList {
	return when(!slices.Contains(known, value), field.NotSupported(at, value, known))
}

// entries refuses lists that are too long, and entries that are there twice or that check refuses.
func entries[T comparable](list []T, most int, at *field.Path, check func(T, *field.Path) field.ErrorList) (errs field.ErrorList) {
	if len(list) > most {
		return field.ErrorList{field.TooMany(at, len(list), most)}
	}
	for i, entry := range list {
		errs = slices.Concat(errs, when(slices.Contains(list[:i], entry), field.Duplicate(at.Index(i), entry)), check(entry, at.Index(i)))
	}
	return errs
}

func absolute(p string, at *field.Path) field.ErrorList {
	return when(!path.IsAbs(p) || path.Clean(p) != p || len(p) > maxPath,
		field.Invalid(at, p, "must be an absolute path without . and .. and trailing /, of at most "+strconv.Itoa(maxPath)+" bytes"))
}

// validate refuses values that do not go together.
func (d Debounce) validate(at *field.Path) field.ErrorList {
	return slices.Concat(
		when(d.BadSamples > d.Samples, field.Invalid(at.Child("badSamples"), d.BadSamples, "must be 1 to the number of samples")),
		when(d.MaxClearAfter.Duration < d.ClearAfter.Duration, field.Invalid(at.Child("maxClearAfter"), d.MaxClearAfter.String(), "must be at least clearAfter, "+d.ClearAfter.String())),
	)
}

// reachable refuses a threshold that is so high that the easier one could never be reached, and an
// early threshold that is not reached before. free is the share that must be free, early that
// which must be free for no early taint; 0: there is none.
func reachable(d Debounce, at *field.Path, name string, free, early float64) field.ErrorList {
	return slices.Concat(
		when(d.ClearFactor*free > 100, field.Forbidden(at.Child(name), fmt.Sprintf("the condition could never clear: debounce.clearFactor, %g, times %g %% free is over 100 %%", d.ClearFactor, free))),
		when(early > 0 && early <= free, field.Forbidden(at.Child("earlyPercent"), "must be reached before "+name)),
	)
}

// validateStartup refuses a key that a rule or a stand-in can have: the taint of a condition
// would go with the start.
func (c *Config) validateStartup(at *field.Path) field.ErrorList {
	key, policy := c.Startup.Taint, c.Policy()
	if key == "" {
		return nil
	}
	effects := []taints.Effect{taints.NoSchedule, taints.NoExecute, taints.PreferNoSchedule}
	isRuled := slices.ContainsFunc(effects, func(e taints.Effect) bool { return policy.Produces(taints.Pair{Key: key, Effect: e}) })
	return slices.Concat(
		invalid(at, key, "must be the key of a taint, without value and effect: ", validation.IsQualifiedName(key)),
		when(taints.Reserved(key) != "", field.Forbidden(at, key+" belongs to "+taints.Reserved(key))),
		when(isRuled, field.Forbidden(at, key+" is a key of a rule or of a stand-in; must be another one")),
	)
}

// validateMaintenance refuses types that are True on a healthy Node, and our own: a
// condition that is set would stop the taint that it is set for.
func (c *Config) validateMaintenance(kind string, at *field.Path) field.ErrorList {
	isOurs := slices.ContainsFunc(c.Conditions, func(c Condition) bool { return kind == decide.ConditionType(c.Name) })
	return slices.Concat(
		invalid(at, kind, "", validation.IsQualifiedName(kind)),
		when(kind == "Ready", field.Forbidden(at, "Ready is True on every healthy Node")),
		when(isOurs || kind == decide.RepairType, field.Forbidden(at, kind+" is a condition of taintlet's own")),
	)
}

// isOfControlPlane reports whether a key has the prefix of all reserved and all reconciled keys.
func isOfControlPlane(key string) bool {
	return strings.HasPrefix(key, "node.kubernetes.io/") || strings.HasPrefix(key, "node.cloudprovider.kubernetes.io/")
}
