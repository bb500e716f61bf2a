package config

import (
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
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
	// Repairable are the reasons of faults that a reboot or a replacement of the host cures.
	// Consumption by pods is not among them, because it moves with the pods. Neither are an
	// operator's changes, nor faults that load alone can cause.
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
// probe. Mode and Debounce are none of the probe's business.
func SameProbe(a, b Condition) bool {
	return reflect.DeepEqual(probeOf(a.Section), probeOf(b.Section))
}

// Section is what the configuration file says about one condition. It is a
// pointer to a struct that embeds Sampling.
type Section interface {
	// Common returns what every section has.
	Common() *Sampling
	// MinInterval is the shortest time between two samples, but for those that
	// FollowUp asks for.
	MinInterval() time.Duration
	// FollowUp is the time from a bad sample to the next, until the condition is
	// decided.
	FollowUp() time.Duration
	// Validate returns every impossible value but those of Sampling.
	Validate(at *field.Path) field.ErrorList
}

// Names of fields that the sections share.
const (
	debounceField = "debounce"
	periodField   = "period"
)

// Sampling says how often a probe takes a sample and which samples change the
// condition's level.
type Sampling struct {
	// Period is the longest time between two samples, ±10 %: MinInterval to 10m.
	// The nearer a threshold is, the sooner the next sample is taken.
	Period decide.Duration `json:"period" range:"250ms..10m"`
	// Mode is that of the condition. Empty: that of all conditions.
	Mode decide.Mode `json:"mode,omitempty"`
	// Debounce of a file has what differs from that of all conditions.
	Debounce Debounce `json:"debounce"`
}

// Debounce says which samples change the level of a condition.
type Debounce struct {
	decide.Debounce
	// ClearFactor is how much easier the threshold is that clears: 1.5 times as much must be
	// free before there is enough again.
	ClearFactor float64 `json:"clearFactor" range:"1..10"`
}

// Common returns the Sampling itself.
func (s *Sampling) Common() *Sampling { return s }

// MinInterval is 250 ms: at most four samples a second.
func (*Sampling) MinInterval() time.Duration { return 250 * time.Millisecond }

// FollowUp is 100 ms: a bad sample is confirmed quickly.
func (*Sampling) FollowUp() time.Duration { return 100 * time.Millisecond }

// probeOf returns a copy of a section without what is none of its probe's business.
func probeOf(s Section) Section {
	value := reflect.New(reflect.TypeOf(s).Elem())
	value.Elem().Set(reflect.ValueOf(s).Elem())
	copied := value.Interface().(Section)
	common := copied.Common()
	common.Mode, common.Debounce = "", Debounce{ClearFactor: common.Debounce.ClearFactor}
	return copied
}

func seconds(n int) decide.Duration {
	return decide.Duration{Duration: time.Duration(n) * time.Second}
}

// DefaultSampling has the defaults that all conditions share.
func DefaultSampling(period time.Duration, badSamples, samples int) Sampling {
	return Sampling{Period: decide.Duration{Duration: period}, Debounce: defaultDebounce(badSamples, samples)}
}

func defaultDebounce(badSamples, samples int) Debounce {
	return Debounce{ClearFactor: 1.5, Debounce: decide.Debounce{
		BadSamples: badSamples, Samples: samples, ClearAfter: seconds(120), MaxClearAfter: seconds(3600), CriticalAfter: seconds(60),
		// A condition that was damped by an incident in the morning clears as soon as any other in
		// the afternoon.
		PenaltyHalfLife: decide.Duration{Duration: time.Hour},
		// Long enough for a file system or an API server that does not answer for a moment, and
		// short enough for an alert.
		UnknownAfter: decide.Duration{Duration: 5 * time.Minute},
	}}
}

// NoTaint is the effect of a rule that asks for no taint. It switches off the default
// rule of its condition. No such rule reaches a Policy.
const NoTaint taints.Effect = "None"

func switchesOff(r decide.Rule) bool { return r.Taint.Effect == NoTaint }
