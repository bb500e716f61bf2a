package main

import (
	"testing"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/hostprobes"
	"github.com/taintlet/taintlet/test/fixtures"
	"github.com/taintlet/taintlet/test/process"
)

func TestPlanLeavesMarginsAndMemory(t *testing.T) {
	for _, available := range []uint64{gibibyte, 3<<30 + 12345, 8 * gibibyte, 2000 * gibibyte} {
		p, err := planFor(process.HostMemory{Available: available})
		if err != nil {
			t.Fatal(err)
		}
		if p.target < available/16*13-2*mebibyte || p.target >= p.threshold ||
			p.clear <= p.threshold || p.clear+p.margin*7/8 > available {
			t.Errorf("of %d: %+v", available, p)
		}
		cfg, err := config.HostSchema().Decode([]byte(p.config()))
		if err != nil {
			t.Fatal(err)
		}
		if got := hostprobes.MemoryThresholds(fixtures.Section[*config.Memory](cfg)); got.AvailableBytes != p.threshold || got.ClearFactor <= 1 {
			t.Errorf("of %d: configured as %+v", available, got)
		}
	}
	if _, err := planFor(process.HostMemory{Available: gibibyte - 1}); err == nil {
		t.Error("less than a GiB is enough")
	}
}
