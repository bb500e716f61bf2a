// Package probes has the words in which a host's health is told: conditions,
// their levels, and Observations. The probe of each condition is a package below
// this one, in which reading (I/O) and judging (pure) stand apart. What probes
// share is in the packages pressure, trend and hostfile.
//
// No probe knows anything of Kubernetes objects: what a Level means for a Node
// is decided in package agent/decide.
package probes

import (
	"context"
	"fmt"
	"time"
)

// Condition names a part of a host's health. The names are those of the
// NodeConditions that Kubernetes itself has for the same trouble.
type Condition string

// The conditions, in the order in which they are shown.
const (
	MemoryPressure     Condition = "MemoryPressure"
	DiskPressure       Condition = "DiskPressure"
	PIDPressure        Condition = "PIDPressure"
	NetworkUnavailable Condition = "NetworkUnavailable"
)

// Conditions returns all conditions in the order in which they are shown.
func Conditions() []Condition {
	return []Condition{MemoryPressure, DiskPressure, PIDPressure, NetworkUnavailable}
}

// Level says how bad a condition is.
type Level int8

const (
	// Unknown says that the probe could not tell. It is neither good nor bad
	// news: it neither sets nor clears anything. It is the zero Level, so that
	// a forgotten assignment can do no harm.
	Unknown Level = iota
	// OK asks for nothing.
	OK
	// Degraded asks that no new pods come to the host (NoSchedule).
	Degraded
	// Critical asks that pods leave the host (NoExecute).
	Critical
)

var levelNames = [...]string{Unknown: "Unknown", OK: "OK", Degraded: "Degraded", Critical: "Critical"} //nolint:gochecknoglobals // a constant table

// String returns the level's name as it stands in configuration and metrics.
func (l Level) String() string {
	if l < Unknown || l > Critical {
		return fmt.Sprintf("Level(%d)", int8(l))
	}
	return levelNames[l]
}

// MarshalText writes the level's name.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads a level's name; anything else is an error that lists
// the names.
func (l *Level) UnmarshalText(text []byte) error {
	for level, name := range levelNames {
		if name == string(text) {
			*l = Level(level)
			return nil
		}
	}
	return fmt.Errorf("level %q is not one of Unknown, OK, Degraded, Critical", text)
}

// Observation is what one look of a probe found.
type Observation struct {
	Condition Condition `json:"condition"`
	Level     Level     `json:"level"`
	// Severity is 0 (nothing wrong) to 100 (as bad as it gets) and never falls
	// as things get worse. 50 is the threshold of Degraded.
	Severity int `json:"severity"`
	// Certain means that one look is proof: no second sample is needed.
	Certain bool `json:"certain,omitempty"`
	// Hysteresis goes with Level OK: better than the threshold that sets, not
	// yet past the easier one that clears. Such a look keeps what is.
	Hysteresis bool `json:"hysteresis,omitempty"`
	// Reason is CamelCase, for machines and for the first glance.
	Reason string `json:"reason"`
	// Message is a sentence for a person: value, unit, threshold.
	Message string `json:"message"`
}

// Probe looks at one condition of one host.
type Probe interface {
	// Condition is the condition that every Observation of this probe is about.
	Condition() Condition
	// Observe looks once and returns by the context's deadline. What cannot be
	// read or understood is an Observation of Level Unknown, never an error
	// and never a guess. It is called from one goroutine at a time.
	Observe(ctx context.Context) Observation
	// Wake yields a value when the kernel says that looking now is worth it;
	// nil when the probe is to be asked by period only.
	Wake() <-chan struct{}
	// WakeMode says in a few words what wakes the probe besides its period.
	WakeMode() string
	// Run runs what feeds Wake until the context ends; it returns at once where
	// there is nothing to run. It is called once at most.
	Run(ctx context.Context)
}

// PeriodOnly is embedded by probes that nothing wakes.
type PeriodOnly struct{}

// Wake is nil: the probe is asked by period only.
func (PeriodOnly) Wake() <-chan struct{} { return nil }

// WakeMode is "period".
func (PeriodOnly) WakeMode() string { return "period" }

// Run returns at once: there is nothing to run.
func (PeriodOnly) Run(context.Context) {}

// Host says where the host's file trees are mounted. Another place than the
// usual one serves containers and tests.
type Host struct {
	Root string // the root file system, usually "/"
	Proc string // procfs, usually "/proc"
	Sys  string // sysfs, usually "/sys"
}

// LongestGap is how far apart two looks may be for the time between them to
// say something. Beyond it the host slept, or the agent stood still.
const LongestGap = 30 * time.Second
