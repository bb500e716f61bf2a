package config

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/probes"
)

// Definition says what a condition is. A new condition needs a Section, a Definition
// in a Schema, and a probe that package hostprobes makes of the Section.
type Definition struct {
	// Name is the condition's name.
	Name probes.Condition
	// Field is the name of its section in the configuration file.
	Field string
	// TaintKey is the well-known key that the built-in rules ask for; empty:
	// there is no built-in rule.
	TaintKey string
	// BecomesCritical: its probe knows the level Critical, so that a rule can evict without
	// naming reasons.
	BecomesCritical bool
	// NewSection makes its section with all defaults.
	NewSection func() Section
	// Repairable are the reasons of its faults that a reboot or a replacement of the host
	// cures. What pods take is none: it follows the pods. Nor is what a person did, or what
	// load alone can cause.
	Repairable []string
	// Reasons are those of its bad samples, by which rules choose.
	Reasons []string
}

// Schema is the list of conditions that a configuration has, in the order in
// which they are shown.
type Schema []Definition

// HostSchema returns the conditions that taintlet itself probes. It is the one
// place that says which those are.
func HostSchema() Schema {
	return Schema{
		{probes.MemoryPressure, "memory", corev1.TaintNodeMemoryPressure, true, defaultMemory, nil, memoryReasons()},
		{probes.DiskPressure, "disk", corev1.TaintNodeDiskPressure, false, defaultDisk, diskFaults(), diskReasons()},
		{probes.PIDPressure, "pid", corev1.TaintNodePIDPressure, true, defaultPID, nil, pidReasons()},
		{probes.NetworkUnavailable, "network", corev1.TaintNodeNetworkUnavailable, false, defaultNetwork, networkFaults(), networkReasons()},
	}
}

// Condition is one condition of a configuration.
type Condition struct {
	Definition
	Section
}

// SameProbe reports whether two configurations of a condition make the same
// probe. Debounce is none of the probe's business.
func SameProbe(a, b Condition) bool {
	return reflect.DeepEqual(withoutDebounce(a.Section), withoutDebounce(b.Section))
}
