// Package probes defines the terms in which a host's health is reported:
// conditions, their levels, and Observations. Each condition has a package with
// its probe below this one. A probe keeps reading (I/O) and judging (pure)
// apart. The packages pressure, trend and hostfile hold what probes share.
//
// Probes know nothing of Kubernetes objects. Package agent/decide decides what a
// Level means for a Node.
package probes

import (
	"context"
	"fmt"
	"time"
)

// Condition names a part of a host's health. Kubernetes has NodeConditions of
// the same names for the same trouble.
type Condition string

// The conditions, in the order in which they are shown.
const (
	MemoryPressure     Condition = "MemoryPressure"
	DiskPressure       Condition = "DiskPressure"
	PIDPressure        Condition = "PIDPressure"
	NetworkUnavailable Condition = "NetworkUnavailable"
)

// Level says how bad a condition is.
type Level int8

const (
	// Unknown says that the probe could not tell. It neither sets nor clears
	// anything. It is the zero Level, so that a forgotten assignment does no
	// harm.
	Unknown Level = iota
	// OK says that nothing is wrong.
	OK
	// Degraded says that the host should get no new pods (NoSchedule).
	Degraded
	// Critical says that pods should leave the host (NoExecute).
	Critical
)

var levelNames = [...]string{Unknown: "Unknown", OK: "OK", Degraded: "Degraded", Critical: "Critical"} //nolint:gochecknoglobals // a constant table

// String returns the level's name as configuration and metrics have it.
func (l Level) String() string {
	if l < Unknown || l > Critical {
		return fmt.Sprintf("Level(%d)", int8(l))
	}
	return levelNames[l]
}

// MarshalText writes the level's name.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads a level's name. Any other text is an error that lists the
// names.
func (l *Level) UnmarshalText(text []byte) error {
	for level, name := range levelNames {
		if name == string(text) {
			*l = Level(level)
			return nil
		}
	}
	return fmt.Errorf("level %q is not one of Unknown, OK, Degraded, Critical", text)
}

// Observation is what one sample of a probe showed.
type Observation struct {
	Condition Condition `json:"condition"`
	Level     Level     `json:"level"`
	// Severity is 0 (nothing wrong) to 100 (as bad as it gets). It never falls
	// while the host gets worse. 50 is the threshold of Degraded.
	Severity int `json:"severity"`
	// Certain means that this sample is proof: no second one is needed.
	Certain bool `json:"certain,omitempty"`
	// Hysteresis goes with Level OK only. The host is better than the threshold
	// that sets, and not yet past the easier one that clears. Such a sample
	// neither sets nor clears.
	Hysteresis bool `json:"hysteresis,omitempty"`
	// Suspicion goes with Level Unknown only. The host suspects itself and asks
	// what others say of themselves before it accuses itself. So the Node's
	// condition tells the others at once, with this Reason.
	Suspicion bool `json:"suspicion,omitempty"`
	// Warns goes with Level OK only. The host is well and somebody has to do something
	// all the same: an Event tells it, with this Reason, once until a sample is good
	// without it.
	Warns bool `json:"-"`
	// Due is when the next sample decides more, although this one is not bad. It is
	// taken then, at the soonest like one after a bad sample. Zero: no such time.
	Due time.Time `json:"-"`
	// Reason is one word in CamelCase, for machines and for a first impression.
	Reason string `json:"reason"`
	// Message tells a person the value, its unit and the threshold.
	Message string `json:"message"`
	// NeverHealthy goes with Level OK only. It has the reasons of Degraded, separated by
	// spaces, whose own check was not well since the probe started. So this sample
	// clears no condition that was set for one of them.
	NeverHealthy string `json:"-"`
	// Clears says what a good sample needs, as it goes on after "it stays": "above
	// 7.5 %". Empty: there is no threshold to tell.
	Clears string `json:"-"`
	// Culprit is who took what is scarce, where that is known. The Message tells it too. It
	// decides nothing.
	Culprit Culprit `json:"culprit,omitzero"`
	// Headroom goes with Level OK only. It is the least time in which the
	// threshold of Degraded can be reached, at the fastest rate that is plausible
	// or was seen. 0: the probe cannot say.
	Headroom time.Duration `json:"-"`
}

// Probe samples one condition of one host.
type Probe interface {
	// Condition is the condition that every Observation of this probe is about.
	Condition() Condition
	// Observe takes one sample and returns by the context's deadline. What cannot
	// be read or understood is an Observation of Level Unknown, never an error
	// and never a guess. Observe is called from one goroutine at a time.
	Observe(ctx context.Context) Observation
	// Wake returns a channel that yields a value when a sample is worth taking
	// before the period is over. It is nil where nothing wakes the probe.
	Wake() <-chan struct{}
	// WakeMode says in a few words what wakes the probe besides its period.
	WakeMode() string
	// Run feeds Wake until the context ends. It returns at once where there is
	// nothing to run. Run is called at most once.
	Run(ctx context.Context)
}

// PeriodOnly is embedded by probes that nothing wakes.
type PeriodOnly struct{}

// Wake returns nil.
func (PeriodOnly) Wake() <-chan struct{} { return nil }

// WakeMode returns "period".
func (PeriodOnly) WakeMode() string { return "period" }

// Run returns at once.
func (PeriodOnly) Run(context.Context) {}

// Host says where the host's file trees are mounted. Containers and tests have
// them in other places than the usual ones.
type Host struct {
	Root string // the root file system, usually "/"
	Proc string // procfs, usually "/proc"
	Sys  string // sysfs, usually "/sys"
}

// LongestGap is the longest time between two samples that may be compared. After
// a longer one the host slept or the agent stood still.
const LongestGap = 30 * time.Second
