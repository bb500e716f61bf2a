package probes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/disk"
	"github.com/taintlet/taintlet/probes/memory"
	"github.com/taintlet/taintlet/probes/network"
	"github.com/taintlet/taintlet/probes/pid"
	"github.com/taintlet/taintlet/test/probetest"
)

// allProbes are the probes of a host, with some thresholds.
func allProbes(h probes.Host) []probes.Probe {
	return []probes.Probe{
		memory.New(h, memory.Thresholds{AvailablePercent: 5, AvailableBytes: 100 << 20, ClearFactor: 1.5}),
		disk.New(h, []string{"/", "/var/lib/kubelet", "/var/lib/containerd"}, disk.Thresholds{AvailablePercent: 10, InodesPercent: 5, ClearFactor: 1.5}),
		pid.New(h, pid.Thresholds{UsedPercent: 85, ClearFactor: 1.5}),
		network.New(h, time.Second),
	}
}

func TestHealthyHostIsOK(t *testing.T) {
	t.Parallel()
	for _, p := range allProbes(probetest.HostAt("testdata/healthy")) {
		if p.Condition() == probes.DiskPressure || p.Condition() == probes.NetworkUnavailable {
			continue // a folder has no file systems and no routes of its own
		}
		if o := probetest.Observe(t, p); o.Level != probes.OK || o.Hysteresis || o.Severity != 0 {
			t.Errorf("%s: %+v", p.Condition(), o)
		}
		if p.Condition() != probes.MemoryPressure && p.Wake() != nil {
			t.Errorf("%s has a Wake", p.Condition())
		}
	}
}

func TestThisHostCanBeRead(t *testing.T) {
	t.Parallel()
	for _, p := range allProbes(probetest.HostAt("/")) {
		t.Run(string(p.Condition()), func(t *testing.T) {
			t.Parallel()
			o := probetest.Observe(t, p)
			if p.Condition() == probes.NetworkUnavailable && strings.Contains(o.Message, "no default route") {
				t.Skipf("this host has no default route: %s", o.Message)
			}
			t.Logf("%v %d %s: %s", o.Level, o.Severity, o.Reason, o.Message)
			if o.Level == probes.Unknown {
				t.Errorf("could not be read: %s: %s", o.Reason, o.Message)
			}
		})
	}
}
