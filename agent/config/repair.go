package config

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
)

// Repair says when the Node condition HostRepairNeeded becomes True.
type Repair struct {
	// After (0 to 24h) is how long a fault that a reboot or a replacement of the host cures
	// must be found by each sample, Reasons the same for one reason.
	After   decide.Duration            `json:"after"`
	Reasons map[string]decide.Duration `json:"reasons"`
}

// of returns how long each of the faults must be found.
func (r Repair) of(faults []string) map[string]time.Duration {
	after := map[string]time.Duration{}
	for _, reason := range faults {
		after[reason] = r.After.Duration
		if own, found := r.Reasons[reason]; found {
			after[reason] = own.Duration
		}
	}
	return after
}

func (r Repair) validate(known []string, at *field.Path) field.ErrorList {
	errs := between(r.After, 0, 24*time.Hour, at.Child("after"))
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		here := at.Child("reasons").Key(reason)
		if !slices.Contains(known, reason) {
			errs = append(errs, field.NotSupported(here, reason, known))
		}
		errs = append(errs, between(r.Reasons[reason], 0, 24*time.Hour, here)...)
	}
	return errs
}
