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
	"errors"
	"fmt"
	"regexp"
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
	// Hysteresis is true only with Level OK: the value is between the threshold that sets and the
	// easier one that clears. Such a sample neither sets nor clears.
	Hysteresis bool `json:"hysteresis,omitempty"`
	// Suspicion is true only with Level Unknown: the host suspects itself, and queries the states
	// of other hosts before it taints its Node. The Node's condition publishes the suspicion
	// immediately, with this Reason.
	Suspicion bool `json:"suspicion,omitempty"`
	// Warns is true only with Level OK: the host is healthy, but an operator has to act. An Event
	// with this Reason reports it once, until a good sample comes without it.
	Warns bool `json:"-"`
	// Due is when the next sample decides more, although this one is not bad. It is
	// taken then, at the soonest like one after a bad sample. Zero: no such time.
	Due time.Time `json:"-"`
	// Reason is one word in CamelCase, for machines and for a first impression.
	Reason string `json:"reason"`
	// Message is a text with the value, its unit and the threshold.
	Message string `json:"message"`
	// NeverHealthy goes with Level OK only. It has the reasons of Degraded whose own check was
	// not well since the probe started. So this sample clears no condition that was set for
	// one of them.
	NeverHealthy []string `json:"-"`
	// Clears completes "it stays" in a message with the requirement of a good sample: "above 7.5
	// %". Empty: no threshold to name.
	Clears string `json:"-"`
	// Culprit is the consumer that took most of the scarce resource, if it is known. The Message
	// names it as well. No decision uses it.
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
	// Observe takes one sample and returns by the context's deadline. Input that cannot be read or
	// parsed gives an Observation of Level Unknown, never an error and never a guess. Observe is
	// called from one goroutine at a time.
	Observe(ctx context.Context) Observation
	// Wake returns a channel that yields a value when a sample is worth taking
	// before the period is over. It is nil where nothing wakes the probe.
	Wake() <-chan struct{}
	// Run feeds Wake until the context ends. It returns at once where there is
	// nothing to run. Run is called at most once.
	Run(ctx context.Context)
}

// PeriodOnly is embedded by probes that nothing wakes.
type PeriodOnly struct{}

// Wake returns nil.
func (PeriodOnly) Wake() <-chan struct{} { return nil }

// Run returns at once.
func (PeriodOnly) Run(context.Context) {}

// Host says where the host's file trees are mounted. In containers and tests their paths differ
// from the usual ones.
type Host struct {
	Root string // the root file system, usually "/"
	Proc string // procfs, usually "/proc"
	Sys  string // sysfs, usually "/sys"
}

// LongestGap is the longest time between two samples that may be compared. After
// a longer one the host slept or the agent stood still.
const LongestGap = 30 * time.Second

// Unit is the unit of a Measure.
type Unit uint8

// The units.
const (
	Bytes   Unit = iota
	Seconds      // of a time
	Ratio        // a share, 0 to 1
	Items        // whole things, such as tasks or inodes
)

// Measure is a quantity that a probe compares with thresholds.
type Measure struct {
	// Name is a constant of the probe, in lower case with underscores.
	Name string
	// Path tells quantities of one name apart. It is a path of the configuration,
	// and empty where there is one such quantity.
	Path string
	Unit Unit
	// Value is that of the newest sample.
	Value float64
	// Degraded and Critical are the thresholds of these levels, and Clear is the easier threshold
	// that clears. 0: no such threshold.
	Degraded, Critical, Clear float64
}

// Measurer is a Probe that tells the quantities that it judges by.
type Measurer interface {
	Probe
	// Measures appends the quantities of the newest sample. What is not known is
	// left out. It is called from the goroutine that calls Observe, after it.
	Measures(all []Measure) []Measure
}

// maxReason is the longest reason, in bytes.
const maxReason = 64

// aReason is the form of metav1.Condition in k8s.io/apimachinery.
var aReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// IsReason reports whether a text from outside this program has the form of a reason, and at most
// 64 bytes.
func IsReason(text string) bool { return len(text) <= maxReason && aReason.MatchString(text) }

// reasonError says why a part of the host could not be read or understood. The
// reason is for machines, the error for people.
type reasonError struct {
	reason string
	err    error
}

func (e *reasonError) Error() string { return e.err.Error() }
func (e *reasonError) Unwrap() error { return e.err }

// Because returns an error with a text, formatted as by fmt.Errorf, and with the reason of the
// Unknown sample that it leads to.
func Because(reason, format string, args ...any) error {
	return &reasonError{reason: reason, err: fmt.Errorf(format, args...)}
}

// UnknownBecause returns the Observation of a probe that could not tell because
// of err. Its reason is that of Because, or ReadFailed for any other error.
func UnknownBecause(c Condition, err error) Observation {
	reason := "ReadFailed"
	if known, ok := errors.AsType[*reasonError](err); ok {
		reason = known.reason
	}
	return Observation{Condition: c, Level: Unknown, Reason: reason, Message: err.Error()}
}

// Culprit is the group that took most of the scarce resource, a third or more. The zero value means
// that no culprit is known.
type Culprit struct {
	// Kind is pod, unit, cgroup, process, kernel or own, or none where no consumer took a third.
	// Empty: it is not known.
	Kind string `json:"kind,omitempty"`
	// Name is the UID of the pod, or the name of the unit, of the control group or of the
	// process.
	Name string `json:"name,omitempty"`
	// Command is the name of most of its processes.
	Command string `json:"command,omitempty"`
	// Took is the amount that it took since the host was healthy, in bytes or tasks, within
	// Seconds. Holds is the amount that it has now.
	Took    float64 `json:"took,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Holds   float64 `json:"holds,omitempty"`
	// TookText is the same as a text: "4.1 GiB in 2.7 s".
	TookText string `json:"-"`
	// IsGone: it has ended.
	IsGone bool `json:"gone,omitempty"`
	// IsTold: the Message names the culprit, or says that none can be named.
	IsTold bool `json:"-"`
	// Unreadable says why no culprit can ever be named on this host.
	Unreadable string `json:"unreadable,omitempty"`
}

// Who names the culprit in one word that is equal in each sample; empty: the Message does not name
// one.
func (c Culprit) Who() string {
	who := c.Kind
	if who == "" && c.IsTold {
		who = "not known"
	}
	if c.Name != "" {
		who += " " + c.Name
	}
	if c.IsGone {
		who += " (gone)"
	}
	return who
}
