// Package pid is the probe of PIDPressure. It samples how many tasks there are,
// and how many there may be.
package pid

import (
	"fmt"
	"math"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

// Thresholds say when the host is short of task identifiers, of which every
// thread takes one. A CriticalUsedPercent of 0 is off.
type Thresholds struct {
	// UsedPercent is the share of the limit, in percent (above 0, up to 100),
	// at which the host is Degraded.
	UsedPercent float64
	// EarlyPercent is the used share of the limit, in percent (0 to 100), by which the severity of
	// samples that are OK is computed: see trend.Limit. 0: by UsedPercent.
	EarlyPercent float64
	// CriticalUsedPercent is the share of the limit, in percent (0 to 100), at
	// which the host is Critical.
	CriticalUsedPercent float64
	// ClearFactor times the free tasks of the threshold must be free before
	// there are enough again. 1 or more; less counts as 1.
	ClearFactor float64
}

// sample is how many tasks there were at one time, and how many there might be.
type sample struct {
	used, limit uint64
	setting     string // what sets the limit
	note        string // tells a person which limit is not believed
}

// free returns how many tasks may still be started. It is 0 where the limit was
// lowered below the number of tasks that run.
func (s sample) free() float64 { return float64(s.limit - min(s.used, s.limit)) }

// OtherNamespace is the text of the message while the agent is not in the host's PID namespace.
const OtherNamespace = "this is not the host's PID namespace"

// plausiblePace is how many tasks a second a host starts at most: a fork costs 50 to 100 µs of
// one CPU.
const plausiblePace = 10_000

// judge says what a sample means.
func (t Thresholds) judge(s sample) probes.Observation {
	limit := float64(s.limit)
	enough, byFew := t.enough(limit)
	thresholdText := trend.PercentText(t.UsedPercent)
	clears := "below " + trend.ShareText(max(0, 100-(100-t.UsedPercent)*max(1, t.ClearFactor)), 100) + " used"
	if byFew {
		thresholdText, clears = trend.ItemsText(enough.Amount)+" free", "above "+trend.ItemsText(enough.Clear)+" free"
	}
	o := enough.Observe(s.free(), probes.PIDPressure, "PIDs", "")
	o.Clears = clears
	if o.Level == probes.OK {
		o.Headroom = trend.Headroom(s.free()-enough.Amount, plausiblePace)
		if t.EarlyPercent > 0 {
			o.Severity = enough.Early(s.free(), freeAt(t.EarlyPercent, limit))
		}
	}
	if o.Level == probes.Degraded && t.CriticalUsedPercent > 0 && s.free() < freeAt(t.CriticalUsedPercent, limit) {
		o.Level, o.Reason = probes.Critical, "PIDsExhausted"
		thresholdText += ", critical above " + trend.PercentText(t.CriticalUsedPercent)
	}
	o.Message = fmt.Sprintf("used %d of %d tasks (%s, %.0f free), limit %s, threshold %s%s",
		s.used, s.limit, trend.ShareText(float64(s.used), limit), s.free(), s.setting, thresholdText, s.note)
	return o
}

// fewTasks is the number of free tasks below which the host is Degraded, where that comes
// before UsedPercent: a pod that starts may take some hundred. It counts as at most a
// quarter of the limit, so that a host with a small limit is not Degraded for ever.
const fewTasks = 1000

// enough returns how many tasks must be free. byFew says that these are not what UsedPercent leaves.
func (t Thresholds) enough(limit float64) (enough trend.Limit, byFew bool) {
	part, few := freeAt(t.UsedPercent, limit), min(fewTasks, math.Floor(limit/4))
	most := max(part, few)
	return trend.Limit{Amount: most, Clear: most * max(1, t.ClearFactor)}, few > part
}

// freeAt returns the number of free tasks below which at least usedPercent of the
// limit is used. Tasks are whole numbers: at most n free is the same as fewer
// than n + 1.
func freeAt(usedPercent, limit float64) float64 {
	return math.Floor(limit*max(0, 100-usedPercent)/100) + 1
}
