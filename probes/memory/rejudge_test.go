package memory

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// Whatever the host, the quantities that are recorded lead to the same answer as the
// sample itself: a replay by the same thresholds changes nothing.
func TestRejudgedIsAsJudged(t *testing.T) {
	t.Parallel()
	p := &Probe{thresholds: Thresholds{
		AvailablePercent: 5, AvailableBytes: 100 << 20, PercentBaseMax: 12 << 30, RunningOutWithin: 10 * time.Second, RunningOutAvailablePercent: 20,
		StalledPercent: 15, StalledAvailablePercent: 15, CriticalStalledPercent: 40, ClearFactor: 1.5,
	}}
	dice := rand.New(rand.NewPCG(1, 2))
	reasons := map[string]int{}
	for range 100_000 {
		v := view{emptyIn: math.MaxInt64}
		v.held = dice.Uint64N(16 << 30)
		v.available = dice.Uint64N(1 + v.held/uint64(2+dice.IntN(20)))
		if dice.IntN(2) == 0 {
			v.some = stall{percent: 100, over: time.Second, counts: float64(max(0, dice.IntN(4000)-1000)) / 100}
			v.full = stall{percent: 100, over: time.Second, counts: float64(max(0, dice.IntN(9000)-1000)) / 100}
		}
		if dice.IntN(3) == 0 {
			v.pods = allocatable{limit: 4 << 30, available: dice.Uint64N(300 << 20)}
		}
		if dice.IntN(3) == 0 {
			v.emptyIn = time.Duration(dice.Int64N(int64(20 * time.Second)))
		}
		p.newest = v
		want := p.thresholds.judge(v)
		got, ok := p.thresholds.Rejudge(p.Measures(nil))
		reasons[want.Reason]++
		if !ok || got.Level != want.Level || got.Hysteresis != want.Hysteresis || got.Severity != want.Severity || got.Reason != want.Reason {
			t.Fatalf("%+v\nrejudged  %+v\nas judged %+v", v, got, want)
		}
	}
	if len(reasons) < 6 {
		t.Errorf("only these reasons came up: %v", reasons)
	}
}

// Quantities that are missing or impossible are no sample of memory.
func TestRejudgeNeedsAvailableMemory(t *testing.T) {
	t.Parallel()
	for _, quantities := range [][]probes.Measure{
		nil,
		{{Name: "available", Value: 5}},
		{{Name: "available", Value: 5}, {Name: "total", Value: 4}},
	} {
		if o, ok := (Thresholds{}).Rejudge(quantities); ok {
			t.Errorf("%v: %+v", quantities, o)
		}
	}
}
