package config

import (
	"strings"

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
