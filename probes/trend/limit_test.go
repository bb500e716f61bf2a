package trend

import (
	"math"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

func TestLimit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                         string
		available, threshold, factor float64
		level                        probes.Level
		hysteresis                   bool
		severity                     int
	}{
		{"plenty", 1000, 100, 1.5, probes.OK, false, 0},
		{"at the clear threshold", 150, 100, 1.5, probes.OK, false, 0},
		{"just below the clear threshold", 149, 100, 1.5, probes.OK, true, 1},
		{"halfway to the threshold", 125, 100, 1.5, probes.OK, true, 25},
		{"just above the threshold", 100.01, 100, 1.5, probes.OK, true, 49},
		{"at the threshold", 100, 100, 1.5, probes.OK, true, 50},
		{"just below the threshold", 99, 100, 1.5, probes.Degraded, false, 50},
		{"half of the threshold", 50, 100, 1.5, probes.Degraded, false, 75},
		{"almost nothing", 1, 100, 1.5, probes.Degraded, false, 99},
		{"nothing", 0, 100, 1.5, probes.Degraded, false, 100},
		{"no reserve asked, at the threshold", 100, 100, 1, probes.OK, false, 50},
		{"no reserve asked, above the threshold", 101, 100, 1, probes.OK, false, 0},
		{"a factor below 1 counts as 1", 99, 100, 0.5, probes.Degraded, false, 50},
		{"no threshold", 0, 0, 1.5, probes.OK, false, 0},
	} {
		o := Part(100, test.threshold, math.Inf(1), test.factor, probes.Bytes).Observe(test.available, probes.MemoryPressure, "Thing", "message")
		probetest.WellFormed(t, o)
		if o.Level != test.level || o.Hysteresis != test.hysteresis || o.Severity != test.severity {
			t.Errorf("%s: %+v, want %v, hysteresis %t, severity %d", test.name, o, test.level, test.hysteresis, test.severity)
		}
	}
}

// The text says what clears: just past it a sample is good, just before it is not.
func TestClearTextIsWhatClears(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for want, test := range map[string]struct {
		limit  Limit
		clears float64
	}{
		"7.5 %":    {Part(5, 100*gib, 256*gib, 1.5, probes.Bytes), 7.5 * gib},
		"19.2 GiB": {Part(5, 512*gib, 256*gib, 1.5, probes.Bytes), 19.2 * gib},
		"2000":     {Part(10, 15_000, 10_000, 2, probes.Items), 2000},
		"5 %":      {Part(5, 100, 100, 0.5, probes.Bytes), 5},
		"12 GiB":   {Limit{Amount: 8 * gib, Clear: 12 * gib}, 12 * gib},
	} {
		good, near := test.limit.Signal(test.clears*1.0001), test.limit.Signal(test.clears*0.9999)
		if got := test.limit.ClearText(); got != want || good.Near || !near.Near {
			t.Errorf("%q, want %q; past it %+v, before it %+v", got, want, good, near)
		}
	}
}

func TestHeadroom(t *testing.T) {
	t.Parallel()
	for left, want := range map[float64]time.Duration{1000: 10 * time.Second, 0: 1, -5: 1, 1e30: math.MaxInt64} {
		if got := Headroom(left, 100); got != want {
			t.Errorf("%v left: %s, want %s", left, got, want)
		}
	}
}
