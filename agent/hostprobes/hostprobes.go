// Package hostprobes makes the probes of this host. The configuration itself links no
// probe, because people read it where none of them runs.
package hostprobes

import (
	"context"
	"fmt"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/consumers"
	"github.com/taintlet/taintlet/probes/disk"
	"github.com/taintlet/taintlet/probes/memory"
	"github.com/taintlet/taintlet/probes/network"
	"github.com/taintlet/taintlet/probes/pid"
)

// NewProbe returns what makes the probe of a condition of config.HostSchema on a host. It
// panics for any other condition. The probes of memory and tasks name who took them.
func NewProbe(h probes.Host) func(config.Condition) probes.Probe {
	reader := consumers.NewReader(h)
	return func(c config.Condition) probes.Probe {
		switch s := c.Section.(type) {
		case *config.Memory:
			return consumers.Name(memory.New(h, s.Thresholds()), reader)
		case *config.Disk:
			return disk.New(h, s.Paths, s.Thresholds(), s.Write()).RequireMounts(s.MountPoints...)
		case *config.PID:
			return consumers.Name(pid.New(h, s.Thresholds()), reader)
		case *config.Network:
			return network.New(h, s.Period.Duration, s.DisabledClasses...)
		}
		panic(fmt.Sprintf("condition %s has no probe", c.Name))
	}
}

// Observe takes one sample for an operator, and waits until the culprit is known.
func Observe(ctx context.Context, p probes.Probe) probes.Observation {
	if naming, ok := p.(*consumers.Probe); ok {
		return naming.ObserveAndRead(ctx)
	}
	return p.Observe(ctx)
}
