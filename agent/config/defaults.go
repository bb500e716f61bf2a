package config

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Default returns the configuration of an agent that is given none. Its disk
// thresholds are those of the kubelet's nodefs.available and
// nodefs.inodesFree; the memory floor is the kubelet's memory.available.
func Default() *Config {
	return &Config{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Memory: Memory{
			Period:           seconds(1),
			AvailablePercent: 5,
			AvailableBytes:   resource.MustParse("100Mi"),
			PercentOfAtMost:  resource.MustParse("256Gi"),

			RunningOutWithin:           seconds(10),
			RunningOutAvailablePercent: 20,
			StalledPercent:             15,
			StalledAvailablePercent:    15,
			CriticalStalledPercent:     40,

			ClearFactor: 1.5,
			Debounce:    debounce(2, 3),
		},
		Disk: Disk{
			Period:           seconds(1),
			Paths:            []string{"/", "/var/lib/kubelet", "/var/lib/containerd"},
			AvailablePercent: 10,
			InodesPercent:    5,
			BlockedAfter:     seconds(30),
			WriteProbe:       WriteProbe{Interval: seconds(30), Slow: seconds(2)},
			ClearFactor:      1.5,
			Debounce:         debounce(2, 3),
		},
		PID: PID{
			Period:      seconds(1),
			UsedPercent: 85,
			FreeTasks:   1000,

			CriticalUsedPercent:   95,
			RunningOutWithin:      seconds(30),
			RunningOutUsedPercent: 50,

			ClearFactor: 1.5,
			Debounce:    debounce(2, 3),
		},
		Network: Network{
			Period:   seconds(5),
			Debounce: debounce(3, 5),
		},
		Rules:         defaultRules(),
		WriteBudget:   WriteBudget{Burst: 6, Interval: seconds(600)},
		Eviction:      Eviction{Rest: seconds(600), Interval: seconds(3600)},
		StandInPrefix: taints.DefaultStandInPrefix,
		Heartbeat:     seconds(300),
	}
}

func seconds(n int) metav1.Duration {
	return metav1.Duration{Duration: time.Duration(n) * time.Second}
}

func debounce(bad, of int) Debounce {
	return Debounce{
		BadSamples:      bad,
		Samples:         of,
		ClearAfter:      seconds(120),
		MaxClearAfter:   seconds(3600),
		PenaltyHalfLife: seconds(3600),
		CriticalAfter:   seconds(60),
		UnknownAfter:    seconds(300),
	}
}

// defaultRules ask for the well-known NoSchedule taints. Nothing evicts unless
// the operator says so.
func defaultRules() []Rule {
	return wellKnown(probes.Degraded, corev1.TaintEffectNoSchedule)
}

// BuiltInRules are the rules that any release of taintlet knows without a
// configuration: the default ones and their NoExecute counterparts. A pair of
// theirs is recognised as ours even where the configuration dropped the rule.
func BuiltInRules() []Rule {
	return append(defaultRules(), wellKnown(probes.Critical, corev1.TaintEffectNoExecute)...)
}

func wellKnown(level probes.Level, effect corev1.TaintEffect) []Rule {
	return []Rule{
		{probes.MemoryPressure, level, Taint{Key: corev1.TaintNodeMemoryPressure, Effect: effect}},
		{probes.DiskPressure, level, Taint{Key: corev1.TaintNodeDiskPressure, Effect: effect}},
		{probes.PIDPressure, level, Taint{Key: corev1.TaintNodePIDPressure, Effect: effect}},
		{probes.NetworkUnavailable, level, Taint{Key: corev1.TaintNodeNetworkUnavailable, Effect: effect}},
	}
}
