package probes

import (
	"math/rand/v2"
	"testing"
)

func TestScarcity(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                         string
		available, threshold, factor float64
		level                        Level
		hysteresis                   bool
		severity                     int
	}{
		{"plenty", 1000, 100, 1.5, OK, false, 0},
		{"at the clear threshold", 150, 100, 1.5, OK, false, 0},
		{"just below the clear threshold", 149, 100, 1.5, OK, true, 1},
		{"halfway to the threshold", 125, 100, 1.5, OK, true, 25},
		{"just above the threshold", 100.01, 100, 1.5, OK, true, 49},
		{"at the threshold", 100, 100, 1.5, OK, true, 50},
		{"just below the threshold", 99, 100, 1.5, Degraded, false, 50},
		{"half of the threshold", 50, 100, 1.5, Degraded, false, 75},
		{"almost nothing", 1, 100, 1.5, Degraded, false, 99},
		{"nothing", 0, 100, 1.5, Degraded, false, 100},
		{"no reserve asked, at the threshold", 100, 100, 1, OK, false, 50},
		{"no reserve asked, above the threshold", 101, 100, 1, OK, false, 0},
		{"a factor below 1 counts as 1", 99, 100, 0.5, Degraded, false, 50},
		{"no threshold", 0, 0, 1.5, OK, false, 0},
	} {
		o := scarce(test.available, test.threshold, test.factor).observe(MemoryPressure, "Thing", "message")
		wellFormed(t, o)
		if o.Level != test.level || o.Hysteresis != test.hysteresis || o.Severity != test.severity {
			t.Errorf("%s: %+v, want %v, hysteresis %t, severity %d", test.name, o, test.level, test.hysteresis, test.severity)
		}
	}
}

// monotone checks by random pairs that less available is never less severe
// and never a better level, and that severity and level agree.
func monotone(t *testing.T, judge func(available uint64) Observation, most uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		less, more := random.Uint64N(most+1), random.Uint64N(most+1)
		if random.IntN(4) == 0 { // often close to the empty end
			less, more = less%(most/8+1), more%(most/8+1)
		}
		less, more = min(less, more), max(less, more)
		bad, good := judge(less), judge(more)
		wellFormed(t, bad)
		if bad.Severity < good.Severity || bad.Level < good.Level || !bad.Hysteresis && bad.Level == OK && good.Hysteresis {
			t.Fatalf("%d is judged better than %d:\n%+v\n%+v", less, more, bad, good)
		}
		if bad.Level == Degraded && bad.Severity < 50 || bad.Level == OK && bad.Severity > 50 {
			t.Fatalf("level and severity contradict each other: %+v", bad)
		}
	}
	if o := judge(0); o.Severity != 100 || o.Level != Degraded {
		t.Errorf("nothing left is %+v", o)
	}
	if o := judge(most); o.Severity != 0 || o.Level != OK {
		t.Errorf("all there is %+v", o)
	}
}
