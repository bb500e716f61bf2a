package memory

import (
	"math"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

// Rejudge judges the memory, the stalls and the time until nothing is left that
// were recorded, as Measures names them. False: the level does not follow from them.
func (t Thresholds) Rejudge(quantities []probes.Measure) (probes.Observation, bool) {
	v := view{emptyIn: trend.Never}
	var whole uint64
	for _, q := range quantities {
		switch q.Name {
		case "available":
			v.available = uint64(q.Value)
		case "total":
			whole = uint64(q.Value)
		case "allocatable_available":
			v.pods.available = uint64(q.Value)
		case "allocatable":
			v.pods.limit = uint64(q.Value)
		case "stalled":
			v.some = recordedStall(q.Value, someSpan)
		case "stalled_fully":
			v.full = recordedStall(q.Value, fullSpan)
		case "empty_in":
			v.emptyIn = q.Duration()
		}
	}
	if whole == 0 || v.available > whole || v.pods.available > v.pods.limit {
		return probes.Observation{}, false
	}
	v.held = whole - v.available
	return t.judge(v), true
}

// recordedStall returns a stall of a share that Measures gave. A share that does not
// count was 0 there. The span is for the message only.
func recordedStall(share float64, span time.Duration) stall {
	percent := math.Round(share*1e11) / 1e9 // what was divided by 100 is exact again
	return stall{percent: percent, over: span, counts: percent}
}
