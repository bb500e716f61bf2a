package probetest

import (
	"math/rand/v2"
	"testing"

	"github.com/taintlet/taintlet/probes"
)

// Monotone checks by random pairs that less available is never less severe
// and never a better level, and that severity and level agree.
func Monotone(t *testing.T, judge func(available uint64) probes.Observation, most uint64) {
	t.Helper()
	random, pairs := rand.New(rand.NewPCG(1, 2)), 20_000
	if testing.Short() {
		pairs = 1000
	}
	for range pairs {
		less, more := random.Uint64N(most+1), random.Uint64N(most+1)
		if random.IntN(4) == 0 { // often close to the empty end
			less, more = less%(most/8+1), more%(most/8+1)
		}
		less, more = min(less, more), max(less, more)
		if NoBetter(t, judge(less), judge(more)); t.Failed() {
			t.Fatalf("%d and %d available", less, more)
		}
	}
	if o := judge(0); o.Severity != 100 || o.Level != probes.Degraded {
		t.Errorf("nothing left is %+v", o)
	}
	if o := judge(most); o.Severity != 0 || o.Level != probes.OK {
		t.Errorf("all there is %+v", o)
	}
}

// NoBetter checks that what is worse in every measure is not judged better in
// any respect, and that its severity and level agree.
func NoBetter(t testing.TB, worse, better probes.Observation) {
	t.Helper()
	WellFormed(t, worse)
	if worse.Severity < better.Severity || worse.Level < better.Level ||
		!worse.Hysteresis && worse.Level == probes.OK && better.Hysteresis {
		t.Errorf("worse is judged better:\n%+v\n%+v", worse, better)
	}
	if worse.Level >= probes.Degraded && worse.Severity < 50 || worse.Level == probes.OK && worse.Severity > 50 {
		t.Errorf("level and severity contradict each other: %+v", worse)
	}
}
