package config

import (
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints"
)

// Definition says what a condition is. A new condition needs a Section, a Definition
// in a Schema, and a probe that package hostprobes makes of the Section.
type Definition struct {
	// Name is the condition's name, Field that of its section in the configuration file.
	Name  probes.Condition
	Field string
	// TaintKey is the well-known key that the built-in rule asks for; empty: there is no such rule.
	TaintKey string
	// BecomesCritical: its probe knows the level Critical, so a rule can evict without naming reasons.
	BecomesCritical bool
	// NewSection makes its section with all defaults.
	NewSection func() Section
	// Repairable are the reasons of faults that a reboot or a replacement of the host cures.
	// Consumption by pods is not among them, because it moves with the pods. Neither are an
	// operator's changes, nor faults that load alone can cause.
	Repairable []string
	// Reasons are those of its bad samples, by which rules choose. They are an interface: a
	// reason that is renamed, or whose meaning changes, breaks the rules of files.
	Reasons []string
}

// Schema is the list of conditions that a configuration has, in the order in which they are shown.
type Schema []Definition

// HostSchema returns the conditions that taintlet itself probes. Only this function says which those are.
func HostSchema() Schema {
	// A file system that is broken or does not answer.
	broken := []string{"FileSystemReadOnly", "FileSystemShutDown", "FileSystemFailed", "FileSystemBlocked", "WriteFailed", "WriteBlocked"}
	// A host that is cut off, or whose own part of the network fails, as its peers prove.
	cutOff := []string{"RouteLost", "ConntrackDrops", "PodsUnreachable", "DNSUnreachable", "NodeDaemonFails", "LargePacketsLost", "CutOff"}
	return Schema{
		{probes.MemoryPressure, "memory", corev1.TaintNodeMemoryPressure, true, func() Section { // the floor is the kubelet's memory.available
			return &Memory{Sampling: DefaultSampling(4*time.Second, 2, 3), AvailablePercent: 5, AvailableBytes: resource.MustParse("100Mi"), StalledPercent: 15}
		}, nil, []string{"MemoryLow", "MemoryStalled", "MemoryStalledFully"}},
		{probes.DiskPressure, "disk", corev1.TaintNodeDiskPressure, false, func() Section { // the kubelet's nodefs.available and nodefs.inodesFree
			paths := []string{"/", "/var/lib/kubelet", "/var/lib/containerd"}
			return &Disk{Sampling: DefaultSampling(4*time.Second, 2, 3), Paths: paths, MountPoints: []string{}, AvailablePercent: 10, InodesPercent: 5}
		}, broken, append(broken, "SpaceLow", "InodesLow", "MountReadOnly", "NotMounted", "WriteSlow", "WriteNoSpace")},
		{probes.PIDPressure, "pid", corev1.TaintNodePIDPressure, true, func() Section {
			return &PID{Sampling: DefaultSampling(4*time.Second, 2, 3), UsedPercent: 85}
		}, nil, []string{"PIDsLow", "PIDsExhausted"}},
		{probes.NetworkUnavailable, "network", corev1.TaintNodeNetworkUnavailable, false, func() Section {
			n := &Network{Sampling: DefaultSampling(5*time.Second, 3, 5), DisabledClasses: []verdict.Class{}}
			n.MinInterval, n.FollowUp = time.Second, time.Second // bursts of probes would add to the trouble
			return n
		}, cutOff, append(cutOff, "PacketLoss")},
	}
}

// Condition is one condition of a configuration.
type Condition struct {
	Definition
	Section
}

// SameProbe reports whether two configurations of a condition make the same probe: it knows neither
// the mode nor the debounce, but for the threshold that clears.
func SameProbe(a, b Condition) bool {
	of := func(c Condition) map[string]any {
		tree := treeOf(c.Section)
		tree["debounce"] = inner(tree, "debounce")["clearFactor"]
		delete(tree, "mode")
		return tree
	}
	return reflect.DeepEqual(of(a), of(b))
}

// Section is the part of a file for one condition: a pointer to a struct that embeds Sampling.
type Section interface {
	// Common returns what every section has.
	Common() *Sampling
	// Validate returns the values that do not fit together, but for those of Sampling.
	Validate(at *field.Path) field.ErrorList
}

// Sampling says how often a probe takes a sample and which samples change the condition's level.
type Sampling struct {
	// Period is the longest time between two samples, ±10 %: MinInterval to 10m.
	// The nearer a threshold is, the sooner the next sample is taken.
	Period decide.Duration `json:"period" range:"..10m"`
	// MinInterval is the shortest time between two samples, but for FollowUp: the time from a bad
	// sample to the next, until the condition is decided. 0: the period.
	MinInterval, FollowUp time.Duration `json:"-"`
	// Mode is that of the condition. Empty: that of all conditions.
	Mode decide.Mode `json:"mode,omitempty"`
	// Debounce of a file has what differs from that of all conditions.
	Debounce Debounce `json:"debounce"`
}

// Common returns the Sampling itself.
func (s *Sampling) Common() *Sampling { return s }

// Debounce says which samples change the level of a condition.
type Debounce struct {
	decide.Debounce
	// ClearFactor is how much easier the threshold is that clears: 1.5 times as much must be
	// free before there is enough again.
	ClearFactor float64 `json:"clearFactor" range:"1..10"`
}

// DefaultSampling takes at most four samples a second, and confirms a bad sample quickly.
func DefaultSampling(period time.Duration, badSamples, samples int) Sampling {
	return Sampling{
		Period: decide.Duration{Duration: period}, MinInterval: 250 * time.Millisecond, FollowUp: 100 * time.Millisecond, Debounce: defaultDebounce(badSamples, samples),
	}
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

func seconds(n int) decide.Duration {
	return decide.Duration{Duration: time.Duration(n) * time.Second}
}

// Default returns that of HostSchema.
func Default() *Config { return HostSchema().Default() }

// Default returns the configuration of an agent that is given none.
func (s Schema) Default() *Config {
	cfg := &Config{
		TypeMeta:    metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Mode:        decide.Enforce,
		Debounce:    defaultDebounce(2, 3),
		WriteBudget: decide.WriteBudget{Burst: 3, Interval: seconds(2400)},
		FleetBrake:  decide.FleetBrake{Percent: 40, MinPeers: 5},
		Startup:     decide.Startup{Timeout: seconds(600)},
		Overrides:   []Override{},
		Reported:    []*Reported{},
		Keys:        WellKnownKeys,
		KeyPrefix:   taints.DefaultStandInPrefix,
		Heartbeat:   seconds(300),
		Hash:        "built-in",
	}
	cfg.Eviction.Cooldown, cfg.Eviction.Interval, cfg.Repair.After = seconds(600), seconds(3600), seconds(600)
	// The lifecycle conditions of Kubernetes (KEP-5683, in staging/src/k8s.io/api/core/v1/types.go
	// since 1.37) that say that a Node is disturbed now. MaintenancePlanned is none of them: a plan
	// that is made weeks ahead would leave the Node without taints until then.
	cfg.Maintenance.Conditions = []string{"DrainInProgress", decide.Drained, "MaintenanceInProgress", "GracefulNodeShutdownInProgress"}
	for _, definition := range s {
		cfg.Conditions = append(cfg.Conditions, Condition{definition, definition.NewSection()})
	}
	cfg.addDefaultRules()
	return cfg
}
