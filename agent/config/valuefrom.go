package config

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/taints"
)

// validateValueFrom refuses a value that could evict when it rises, that is given twice, or
// that others write: the control plane puts its keys back without one.
func validateValueFrom(t decide.Taint, at *field.Path) field.ErrorList {
	at = at.Child("valueFrom")
	switch {
	case t.ValueFrom == "":
		return nil
	case t.ValueFrom != decide.FromSeverity:
		return field.ErrorList{field.NotSupported(at, t.ValueFrom, []string{decide.FromSeverity})}
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
