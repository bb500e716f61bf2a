package pid

import (
	"fmt"
	"math"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

// sample is what one look at the host's tasks found.
type sample struct {
	host budget
	pods *budget // nil: no limit, or none that is seen
	note string  // for people: what of it was not believed
}

// budget is a limit of tasks and how many there are.
type budget struct {
	used, limit uint64
	setting     string // that sets the limit
}

// free is how many tasks may still be started. A limit that was lowered below
// what runs leaves none.
func (b budget) free() float64 { return float64(b.limit - min(b.used, b.limit)) }

// tightest is the budget of which the smaller share is left.
func (s sample) tightest() budget {
	if s.pods != nil && s.pods.free()/float64(s.pods.limit) < s.host.free()/float64(s.host.limit) {
		return *s.pods
	}
	return s.host
}

// judge says what a sample means, given the trend of the free tasks. Severity
// is that of the worst cause.
func (t Thresholds) judge(s sample, slope trend.Slope) probes.Observation {
	b := s.tightest()
	limit := float64(b.limit)
	threshold, thresholdText := t.freeThreshold(limit)
	o := trend.Scarce(b.free(), threshold, t.ClearFactor).Observe(probes.PIDPressure, "PIDs", "")
	left, out := t.runningOut(b, slope)
	o.Severity = max(o.Severity, out.Severity)
	switch {
	case o.Level == probes.Degraded && t.CriticalUsedPercent > 0 && b.free() < freeAt(t.CriticalUsedPercent, limit):
		o.Level, o.Reason, thresholdText = probes.Critical, "PIDsExhausted", trend.PercentText(t.CriticalUsedPercent)
	case o.Level == probes.OK && out.Set:
		o.Level, o.Hysteresis, o.Reason = probes.Degraded, false, "PIDsRunningOut"
		thresholdText += fmt.Sprintf("; none left in %s, threshold %s", trend.SecondsText(left.Truncate(time.Second)), trend.SecondsText(t.RunningOutWithin))
	case o.Level == probes.OK && out.Near:
		o.Hysteresis, o.Reason = true, "PIDsNearThreshold"
	}
	o.Message = fmt.Sprintf("used %d of %d tasks (%s, %.0f free), limit %s, threshold %s%s",
		b.used, b.limit, trend.ShareText(float64(b.used), limit), b.free(), b.setting, thresholdText, s.note)
	return o
}

// runningOut is how soon no task is left and what that means, together with
// how many are used. It is as severe as the milder of the two.
func (t Thresholds) runningOut(b budget, slope trend.Slope) (time.Duration, trend.Signal) {
	left, ok := slope.TimeToEmpty(b.free())
	if !ok {
		return 0, trend.Signal{}
	}
	soon := trend.Scarce(left.Seconds(), t.RunningOutWithin.Seconds(), t.ClearFactor).Signal()
	much := trend.Scarce(b.free(), freeAt(t.RunningOutUsedPercent, float64(b.limit)), t.ClearFactor).Signal()
	return left, trend.Both(soon, much)
}

// freeThreshold is the number of free tasks below which the host is Degraded.
func (t Thresholds) freeThreshold(limit float64) (threshold float64, text string) {
	threshold, text = freeAt(t.UsedPercent, limit), trend.PercentText(t.UsedPercent)
	if free := min(float64(t.FreeTasks), math.Floor(limit/4)); free > threshold {
		threshold, text = free, fmt.Sprintf("%.0f free", free)
	}
	return threshold, text
}

// freeAt is the number of free tasks below which at least so much of the limit
// is used. "At least" includes equality; tasks are whole numbers, so that is
// "free less than the next whole number".
func freeAt(usedPercent, limit float64) float64 {
	return math.Floor(limit*max(0, 100-usedPercent)/100) + 1
}
