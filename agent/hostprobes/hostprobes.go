// Package hostprobes makes the probes of this host. The configuration itself links no probe,
// because kubectl-taintlet reads it on machines where none runs.
package hostprobes

import (
	"context"
	"fmt"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/consumers"
	"github.com/taintlet/taintlet/probes/disk"
	"github.com/taintlet/taintlet/probes/memory"
	"github.com/taintlet/taintlet/probes/network"
	"github.com/taintlet/taintlet/probes/pid"
)

// NewProbe returns a function that makes the probe of a condition of config.HostSchema on a host.
// It panics for any other condition. The probes of memory and tasks name culprits.
func NewProbe(h probes.Host) func(config.Condition) probes.Probe {
	reader := consumers.NewReader(h)
	return func(c config.Condition) probes.Probe {
		clearFactor := c.Common().Debounce.ClearFactor
		switch s := c.Section.(type) {
		case *config.Memory:
			return consumers.Name(memory.New(h, MemoryThresholds(s)), reader)
		case *config.Disk:
			return disk.New(h, s.Paths, disk.Thresholds{
				AvailablePercent: s.AvailablePercent, InodesPercent: s.InodesPercent, EarlyPercent: s.EarlyPercent, BlockedAfter: blockedAfter, ClearFactor: clearFactor,
			}, disk.Write{
				Directory: s.WriteProbe.Directory, Interval: min(writesEvery, s.Period.Duration*5/2), Slow: slowAfter,
			}).RequireMounts(s.MountPoints...)
		case *config.PID:
			return consumers.Name(pid.New(h, pid.Thresholds{
				UsedPercent: s.UsedPercent, EarlyPercent: s.EarlyPercent, CriticalUsedPercent: criticalUsedPercent, ClearFactor: clearFactor,
			}), reader)
		case *config.Network:
			return network.New(h, s.Period.Duration, s.DisabledClasses...)
		}
		panic(fmt.Sprintf("condition %s has no probe", c.Name))
	}
}

// Stalls are noisy, and count only together with little available memory: a pod at its own limit
// stalls 31 % of the time on an idle host. A StalledPercent of 0 switches both off.
const (
	// stalledAvailablePercent is the share of memory below which stalls count.
	stalledAvailablePercent = 15
	// criticalStalledPercent is the share of the last 10 s for which all tasks waited, and less
	// than the first threshold is available: such a sample is critical.
	criticalStalledPercent = 40
)

// MemoryThresholds returns the thresholds of the probe of memory.
func MemoryThresholds(m *config.Memory) memory.Thresholds {
	t := memory.Thresholds{
		AvailablePercent: m.AvailablePercent, EarlyPercent: m.EarlyPercent, AvailableBytes: uint64(max(0, m.AvailableBytes.Value())), ClearFactor: m.Debounce.ClearFactor,
	}
	if m.StalledPercent > 0 {
		t.StalledPercent, t.StalledAvailablePercent, t.CriticalStalledPercent = m.StalledPercent, stalledAvailablePercent, criticalStalledPercent
	}
	return t
}

const (
	// blockedAfter is how long a path, or a write, may give no answer. Devices and servers that
	// fail over answer again within half a minute; a call that is pending until then is Unknown.
	blockedAfter = 30 * time.Second
	// slowAfter is how long a write of 4 KiB may take. Slow writes count if no write was faster for
	// a minute. A disk at its limit needs about 100 ms, and the kernel calls a task hung after 2
	// minutes.
	slowAfter = 2 * time.Second
	// writesEvery is the time between two writes that go well. A probe that samples more often
	// than by default writes more often too, by the same share.
	writesEvery = 10 * time.Second
)

// criticalUsedPercent is the share of the task limit from which on a sample is critical: soon
// nothing can be started, not even a shell. Without a rule for Critical nothing is evicted.
const criticalUsedPercent = 95

// Observe takes one sample for an operator, and waits until the culprit is known.
func Observe(ctx context.Context, p probes.Probe) probes.Observation {
	if naming, ok := p.(*consumers.Probe); ok {
		return naming.ObserveAndRead(ctx)
	}
	return p.Observe(ctx)
}
