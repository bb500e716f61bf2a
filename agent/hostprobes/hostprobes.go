// Package hostprobes makes the probes of this host. The configuration itself links no
// probe, because people read it where none of them runs.
package hostprobes

import (
	"fmt"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/disk"
	"github.com/taintlet/taintlet/probes/memory"
	"github.com/taintlet/taintlet/probes/network"
	"github.com/taintlet/taintlet/probes/pid"
)

// Environment is what the probes sample.
type Environment struct {
	Host probes.Host
}

// NewProbe makes the probe of a condition of config.HostSchema. It panics for any other
// condition.
func (e Environment) NewProbe(c config.Condition) probes.Probe {
	switch s := c.Section.(type) {
	case *config.Memory:
		return memory.New(e.Host, s.Thresholds())
	case *config.Disk:
		return disk.New(e.Host, s.Paths, s.Thresholds(), s.Write())
	case *config.PID:
		return pid.New(e.Host, s.Thresholds())
	case *config.Network:
		return network.New(e.Host, network.Options{Period: s.Period.Duration, Disabled: s.DisabledClasses})
	}
	panic(fmt.Sprintf("condition %s has no probe", c.Name))
}
