package pid

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

// Whatever the host, the quantities that are recorded lead to the same answer as the
// sample itself.
func TestRejudgedIsAsJudged(t *testing.T) {
	t.Parallel()
	p := &Probe{thresholds: Thresholds{
		UsedPercent: 85, FreeTasks: 1000, CriticalUsedPercent: 95, RunningOutWithin: 30 * time.Second, RunningOutUsedPercent: 50, ClearFactor: 1.5,
	}}
	dice := rand.New(rand.NewPCG(1, 2))
	reasons := map[string]int{}
	for range 20_000 {
		limit := 1 + dice.Uint64N(40_000)
		used := dice.Uint64N(limit + limit/20 + 1) // at times more than the limit
		p.slope = trend.Slope{}
		if dice.IntN(2) == 0 {
			step := dice.Float64() * 500
			for i := range 8 {
				p.slope.Add(time.Unix(int64(i), 0), 10_000-step*float64(i))
			}
		}
		p.budget, p.known = budget{used, limit, "some limit"}, true
		want := p.thresholds.judge(sample{host: p.budget}, p.slope)
		got, ok := p.thresholds.Rejudge(p.Measures(nil))
		reasons[want.Reason]++
		if !ok || got.Level != want.Level || got.Hysteresis != want.Hysteresis || got.Severity != want.Severity || got.Reason != want.Reason {
			t.Fatalf("%+v\nrejudged  %+v\nas judged %+v", p.budget, got, want)
		}
	}
	if len(reasons) < 5 {
		t.Errorf("only these reasons came up: %v", reasons)
	}
	for _, quantities := range [][]probes.Measure{nil, {{Name: "free_tasks", Value: 5}}} {
		if o, ok := p.thresholds.Rejudge(quantities); ok {
			t.Errorf("without a limit: %+v", o)
		}
	}
}
