package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
)

// maxReasons is how many reasons a rule may name.
const maxReasons = 16

// validateReasons refuses a reason that no sample can have. Those of conditions that others
// report are not known.
func (c *Config) validateReasons(r decide.Rule, at *field.Path) field.ErrorList {
	if len(r.Reasons) > maxReasons {
		return field.ErrorList{field.TooMany(at, len(r.Reasons), maxReasons)}
	}
	var errs field.ErrorList
	condition, _ := c.Condition(r.Condition)
	for i, reason := range r.Reasons {
		switch known := condition.Reasons; {
		case slices.Contains(r.Reasons[:i], reason):
			errs = append(errs, field.Duplicate(at.Index(i), reason))
		case len(known) > 0 && !slices.Contains(known, reason):
			errs = append(errs, field.NotSupported(at.Index(i), reason, known))
		case !probes.IsReason(reason):
			errs = append(errs, field.Invalid(at.Index(i), reason, "must be a reason: letters, digits, _ , and :, such as TaskHung, at most 64"))
		}
	}
	return errs
}

// The reasons of bad samples, by which rules choose. They are an interface: one that is
// renamed, or that comes to mean something else, breaks the rules of files.

func memoryReasons() []string {
	return []string{"MemoryLow", "MemoryStalled", "MemoryStalledFully"}
}

func diskReasons() []string {
	return append(diskFaults(), "SpaceLow", "InodesLow", "MountReadOnly", "WriteSlow", "WriteNoSpace")
}

func pidReasons() []string { return []string{"PIDsLow", "PIDsExhausted"} }

func networkReasons() []string { return append(networkFaults(), "PacketLoss") }
