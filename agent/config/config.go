// Package config is the TaintletConfiguration file: its schema, defaults,
// strict decoding and validation.
package config

import (
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/disk"
	"github.com/taintlet/taintlet/probes/memory"
	"github.com/taintlet/taintlet/probes/pid"
	"github.com/taintlet/taintlet/taints"
)

// The schema's name. A file that says another one is refused.
const (
	APIVersion = "taintlet.dev/v1alpha1"
	Kind       = "TaintletConfiguration"
)

// Config is the whole configuration file. The zero value is not useful; start
// from Default.
type Config struct {
	metav1.TypeMeta `json:",inline"`

	Memory  Memory  `json:"memory"`
	Disk    Disk    `json:"disk"`
	PID     PID     `json:"pid"`
	Network Network `json:"network"`

	// Rules say which taint each level of a condition asks for. A file that
	// has the list replaces all of it; an empty list asks for no taint.
	Rules       []Rule      `json:"rules"`
	WriteBudget WriteBudget `json:"writeBudget"`
	// Eviction bounds what rules for Critical may do.
	Eviction Eviction `json:"eviction"`
	// StandInPrefix is the DNS prefix of the keys that stand in for pairs that
	// the control plane would delete.
	StandInPrefix string `json:"standInPrefix"`
	// Heartbeat is how often the Node's conditions are refreshed while nothing
	// changes, ±10 %. 0: never.
	Heartbeat metav1.Duration `json:"heartbeat"`

	// Hash tells configurations apart: the first digits of the SHA-256 of the
	// file, or "built-in".
	Hash string `json:"-"`
}

// Memory configures the MemoryPressure probe.
type Memory struct {
	// Period is the time between two looks, ±10 %.
	Period metav1.Duration `json:"period"`
	// AvailablePercent (0 to 100, of available + anonymous memory) and
	// AvailableBytes: Degraded when available memory is below the larger of the
	// two. 0 in these and the fields below: no such threshold.
	AvailablePercent float64           `json:"availablePercent"`
	AvailableBytes   resource.Quantity `json:"availableBytes"`
	// PercentOfAtMost is the most memory that the percentages of available
	// memory are taken of.
	PercentOfAtMost resource.Quantity `json:"percentOfAtMost"`
	// RunningOutWithin (0 to 10m): Degraded when nothing is left in less than
	// this time, as it goes, and less than RunningOutAvailablePercent is
	// available.
	RunningOutWithin           metav1.Duration `json:"runningOutWithin"`
	RunningOutAvailablePercent float64         `json:"runningOutAvailablePercent"`
	// StalledPercent: Degraded when tasks waited for memory for so much of the
	// time since the last look, and less than StalledAvailablePercent is
	// available.
	StalledPercent          float64 `json:"stalledPercent"`
	StalledAvailablePercent float64 `json:"stalledAvailablePercent"`
	// CriticalStalledPercent: a look is critical when all tasks waited for so
	// much of the time and available memory is below the first threshold.
	CriticalStalledPercent float64 `json:"criticalStalledPercent"`
	// ClearFactor: good again only above ClearFactor times the threshold.
	ClearFactor float64  `json:"clearFactor"`
	Debounce    Debounce `json:"debounce"`
}

// Thresholds returns what the probe judges by.
func (m Memory) Thresholds() memory.Thresholds {
	return memory.Thresholds{
		AvailablePercent:           m.AvailablePercent,
		AvailableBytes:             byteCount(m.AvailableBytes),
		PercentOfAtMost:            byteCount(m.PercentOfAtMost),
		RunningOutWithin:           m.RunningOutWithin.Duration,
		RunningOutAvailablePercent: m.RunningOutAvailablePercent,
		StalledPercent:             m.StalledPercent,
		StalledAvailablePercent:    m.StalledAvailablePercent,
		CriticalStalledPercent:     m.CriticalStalledPercent,
		ClearFactor:                m.ClearFactor,
	}
}

func byteCount(q resource.Quantity) uint64 { return uint64(max(0, q.Value())) }

// Disk configures the DiskPressure probe.
type Disk struct {
	Period metav1.Duration `json:"period"`
	// Paths name the file systems to watch, by any path on them. Paths that do
	// not exist are passed over; several paths on one device count once.
	Paths            []string `json:"paths"`
	AvailablePercent float64  `json:"availablePercent"`
	InodesPercent    float64  `json:"inodesPercent"`
	// BlockedAfter (0 to 1h): Degraded when a path gives no answer for so long;
	// until then it is Unknown. 0: it stays Unknown.
	BlockedAfter metav1.Duration `json:"blockedAfter"`
	WriteProbe   WriteProbe      `json:"writeProbe"`
	ClearFactor  float64         `json:"clearFactor"`
	Debounce     Debounce        `json:"debounce"`
}

// WriteProbe configures the small write that tells whether a file system can
// be written at all.
type WriteProbe struct {
	// Directory takes a file of 4 KiB for a moment. Empty: no writes.
	Directory string `json:"directory"`
	// Interval (1s to 1h) is the time between two writes that go well.
	Interval metav1.Duration `json:"interval"`
	// Slow (0 to 4s) is how long a write may take; a look ends after 5 s. 0: as
	// long as a look.
	Slow metav1.Duration `json:"slow"`
}

// Write returns where the probe writes.
func (d Disk) Write() disk.Write {
	return disk.Write{
		Directory: d.WriteProbe.Directory,
		Interval:  d.WriteProbe.Interval.Duration,
		Slow:      d.WriteProbe.Slow.Duration,
	}
}

// Thresholds returns what the probe judges by.
func (d Disk) Thresholds() disk.Thresholds {
	return disk.Thresholds{
		AvailablePercent: d.AvailablePercent,
		InodesPercent:    d.InodesPercent,
		BlockedAfter:     d.BlockedAfter.Duration,
		ClearFactor:      d.ClearFactor,
	}
}

// PID configures the PIDPressure probe.
type PID struct {
	Period metav1.Duration `json:"period"`
	// UsedPercent and FreeTasks: Degraded when so much of the host's task
	// limit is used, or when fewer tasks than FreeTasks are left.
	UsedPercent float64 `json:"usedPercent"`
	FreeTasks   uint64  `json:"freeTasks"`
	// CriticalUsedPercent: a look is critical when so much is used. 0: never.
	CriticalUsedPercent float64 `json:"criticalUsedPercent"`
	// RunningOutWithin (0 to 10m, 0: never): Degraded when no task is left in
	// less than this time, as it goes, and RunningOutUsedPercent is used.
	RunningOutWithin      metav1.Duration `json:"runningOutWithin"`
	RunningOutUsedPercent float64         `json:"runningOutUsedPercent"`
	ClearFactor           float64         `json:"clearFactor"`
	Debounce              Debounce        `json:"debounce"`
}

// Thresholds returns what the probe judges by.
func (p PID) Thresholds() pid.Thresholds {
	return pid.Thresholds{
		UsedPercent:           p.UsedPercent,
		FreeTasks:             p.FreeTasks,
		CriticalUsedPercent:   p.CriticalUsedPercent,
		RunningOutWithin:      p.RunningOutWithin.Duration,
		RunningOutUsedPercent: p.RunningOutUsedPercent,
		ClearFactor:           p.ClearFactor,
	}
}

// Network configures the NetworkUnavailable probe.
type Network struct {
	Period   metav1.Duration `json:"period"`
	Debounce Debounce        `json:"debounce"`
}

// Debounce configures when observations become a change of level.
type Debounce struct {
	// BadSamples of the last Samples looks must be bad before the condition is
	// Degraded, unless a look is certain. 1 <= BadSamples <= Samples <= 32.
	BadSamples int `json:"badSamples"`
	Samples    int `json:"samples"`
	// ClearAfter (0 to 24h) is how long every look must be good before the
	// condition is OK again. It doubles with each re-set that came too soon, up
	// to MaxClearAfter (ClearAfter to 24h); what was added halves every
	// PenaltyHalfLife (1m to 168h).
	ClearAfter      metav1.Duration `json:"clearAfter"`
	MaxClearAfter   metav1.Duration `json:"maxClearAfter"`
	PenaltyHalfLife metav1.Duration `json:"penaltyHalfLife"`
	// CriticalAfter (0 to 1h) is how long a Degraded condition must look
	// critical, in every look, before it is Critical.
	CriticalAfter metav1.Duration `json:"criticalAfter"`
	// UnknownAfter (1m to 24h) is how long the probe may be unable to tell
	// before a Critical condition steps down to Degraded and people are told.
	UnknownAfter metav1.Duration `json:"unknownAfter"`
}

// WriteBudget is a token bucket that meters clears, steps up to Critical and
// repairs of what others undid. Setting Degraded and stepping down from
// Critical never wait.
type WriteBudget struct {
	// Burst (1 to 100) is how many metered steps may follow one another at once.
	Burst int `json:"burst"`
	// Interval (1s to 24h) is the time in which one more is allowed.
	Interval metav1.Duration `json:"interval"`
}

// Eviction bounds what rules for Critical may do: NoExecute deletes every pod
// that does not tolerate it, whatever its PodDisruptionBudget says.
type Eviction struct {
	// Slots (0 to 100) is how many Nodes of the cluster may evict at the same
	// time: the number of Leases taintlet-evict-0 and so on that the installer
	// made. 0: no Node ever does.
	Slots int `json:"slots"`
	// Rest (1s to 24h) is how long a slot rests after a Node has let go of its
	// NoExecute taints, and how long the Lease of a Node that fell silent must
	// not have moved before another one may take it.
	Rest metav1.Duration `json:"rest"`
	// Interval (0 to 168h) is the least time between two evictions of one Node.
	Interval metav1.Duration `json:"interval"`
	// ControlPlane: Nodes of the control plane may evict too.
	ControlPlane bool `json:"controlPlane"`
}

// Rule says which taint a level of a condition asks for.
type Rule struct {
	Condition probes.Condition `json:"condition"`
	Level     probes.Level     `json:"level"`
	Taint     Taint            `json:"taint"`
}

// Taint is what a rule puts on the Node.
type Taint struct {
	Key    string             `json:"key"`
	Value  string             `json:"value,omitempty"`
	Effect corev1.TaintEffect `json:"effect"`
}

// Pair is the taint's identity.
func (t Taint) Pair() taints.Pair { return taints.Pair{Key: t.Key, Effect: t.Effect} }

// Debounce returns the debounce of one condition.
func (c *Config) Debounce(condition probes.Condition) Debounce {
	switch condition {
	case probes.MemoryPressure:
		return c.Memory.Debounce
	case probes.DiskPressure:
		return c.Disk.Debounce
	case probes.PIDPressure:
		return c.PID.Debounce
	default:
		return c.Network.Debounce
	}
}

// Asks reports whether a rule asks for a taint at this level of the condition.
func (c *Config) Asks(condition probes.Condition, level probes.Level) bool {
	return slices.ContainsFunc(c.Rules, func(r Rule) bool { return r.Condition == condition && r.Level == level })
}

// Period returns the time between two looks at one condition.
func (c *Config) Period(condition probes.Condition) time.Duration {
	switch condition {
	case probes.MemoryPressure:
		return c.Memory.Period.Duration
	case probes.DiskPressure:
		return c.Disk.Period.Duration
	case probes.PIDPressure:
		return c.PID.Period.Duration
	default:
		return c.Network.Period.Duration
	}
}

// SameProbe reports whether two configurations make the same probe of a
// condition. Debounce is none of the probe's business.
func SameProbe(a, b *Config, condition probes.Condition) bool {
	return reflect.DeepEqual(a.probe(condition), b.probe(condition))
}

func (c *Config) probe(condition probes.Condition) any {
	switch condition {
	case probes.MemoryPressure:
		section := c.Memory
		section.Debounce = Debounce{}
		return section
	case probes.DiskPressure:
		section := c.Disk
		section.Debounce = Debounce{}
		return section
	case probes.PIDPressure:
		section := c.PID
		section.Debounce = Debounce{}
		return section
	default:
		section := c.Network
		section.Debounce = Debounce{}
		return section
	}
}

// FollowUp returns how soon a probe is asked again after a bad look, until the
// condition is decided. It is also the shortest time between two looks,
// whatever wakes the probe: at most four a second, and one at the network,
// where the sender of a burst of looks would be a part of the trouble.
func FollowUp(condition probes.Condition) time.Duration {
	if condition == probes.NetworkUnavailable {
		return time.Second
	}
	return 250 * time.Millisecond
}

// Evicts reports whether a pair is one that taintlet evicts by, here or on any
// other Node of the cluster.
func (c *Config) Evicts(p taints.Pair) bool {
	return p.Effect == corev1.TaintEffectNoExecute && c.Produces(p)
}

// Produces reports whether this configuration or a built-in rule can ask for
// the pair, itself or by a stand-in. No other pair is ever removed from a
// Node, whatever the record on it says: a kubelet may forge that annotation.
func (c *Config) Produces(p taints.Pair) bool {
	for _, rules := range [][]Rule{c.Rules, BuiltInRules()} {
		for _, rule := range rules {
			pair := rule.Taint.Pair()
			if p == pair || p == taints.StandInFor(pair, c.StandInPrefix) || p == taints.StandInFor(pair, taints.DefaultStandInPrefix) {
				return true
			}
		}
	}
	return false
}
