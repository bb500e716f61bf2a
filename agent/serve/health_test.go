package serve

import (
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/fixtures"
)

// /healthz fails when a probe has had no round for ten periods, two minutes at
// least, whatever the other probes do.
func TestUnhealthyWithoutRounds(t *testing.T) {
	cfg := config.Default()
	fixtures.Section[*config.Disk](cfg).Period.Duration = time.Minute
	start := time.Unix(1e9, 0)
	h := NewHealth(cfg, start)
	rounds := func(now time.Time, but probes.Condition) {
		for _, c := range config.Default().Names() {
			if c != but {
				h.Sampled(c, now)
			}
		}
	}
	for _, c := range []struct {
		after time.Duration
		stuck probes.Condition
		want  string // empty: healthy
	}{
		{119 * time.Second, probes.MemoryPressure, ""},
		{121 * time.Second, probes.MemoryPressure, "no sample of MemoryPressure for 2m1s"},
		{9 * time.Minute, probes.DiskPressure, ""},
		{11 * time.Minute, probes.DiskPressure, "no sample of DiskPressure for 11m0s (limit 10m0s)"},
	} {
		h = NewHealth(cfg, start)
		now := start.Add(c.after)
		rounds(now, c.stuck)
		err := h.healthy(now)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s without %s: %v, want %q", c.after, c.stuck, err, c.want)
		}
	}
}

// Nothing is expected of a condition that was dropped.
func TestADroppedConditionIsNotExpected(t *testing.T) {
	cfg, start := config.Default(), time.Unix(1e9, 0)
	h := NewHealth(cfg, start)
	for _, name := range cfg.Names() {
		if h.healthy(start.Add(time.Hour)) == nil {
			t.Fatalf("healthy before %s was dropped", name)
		}
		h.Forget(name)
	}
	if err := h.healthy(start.Add(time.Hour)); err != nil {
		t.Error(err)
	}
}
