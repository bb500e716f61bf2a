package pid

import (
	"fmt"
	"math"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

// judge says what a sample means, given the slope of the free tasks.
func (t Thresholds) judge(s sample, slope trend.Slope) probes.Observation {
	b := s.tightest()
	return t.judgeBudget(b, slope.TimeToEmpty(b.free()), s.note)
}

// judgeBudget says what the tightest budget means, of which nothing is left in that time
// at the current rate. Severity is that of the worst cause.
func (t Thresholds) judgeBudget(b budget, emptyIn time.Duration, note string) probes.Observation {
	limit := float64(b.limit)
	threshold, thresholdText, clears := t.freeThreshold(limit)
	o := trend.Scarce(b.free(), threshold, t.ClearFactor).Observe(probes.PIDPressure, "PIDs", "")
	o.Clears = clears
	out := t.runningOut(b, emptyIn)
	o.Severity = max(o.Severity, out.Severity)
	switch {
	case o.Level == probes.Degraded && t.CriticalUsedPercent > 0 && b.free() < freeAt(t.CriticalUsedPercent, limit):
		o.Level, o.Reason = probes.Critical, "PIDsExhausted"
		thresholdText += ", critical above " + trend.PercentText(t.CriticalUsedPercent)
	case o.Level == probes.OK && out.Set:
		o.Level, o.Forecast, o.Hysteresis, o.Reason, o.Clears = probes.Degraded, true, false, "PIDsRunningOut", ""
		thresholdText += fmt.Sprintf("; none left in %s, threshold %s", trend.SecondsText(emptyIn.Truncate(time.Second)), trend.SecondsText(t.RunningOutWithin))
	case o.Level == probes.OK && out.Near:
		if !o.Hysteresis {
			o.Clears = "" // it is not the number that keeps it
		}
		o.Hysteresis, o.Reason = true, "PIDsNearThreshold"
	}
	o.Message = fmt.Sprintf("used %d of %d tasks (%s, %.0f free), limit %s, threshold %s%s",
		b.used, b.limit, trend.ShareText(float64(b.used), limit), b.free(), b.setting, thresholdText, note)
	return o
}

// runningOut returns the signal of how soon no task is left, together with how
// many are used.
func (t Thresholds) runningOut(b budget, emptyIn time.Duration) trend.Signal {
	soon := trend.Scarce(emptyIn.Seconds(), t.RunningOutWithin.Seconds(), t.ClearFactor).Signal()
	much := trend.Scarce(b.free(), freeAt(t.RunningOutUsedPercent, float64(b.limit)), t.ClearFactor).Signal()
	return trend.Both(soon, much)
}

// freeThreshold returns the number of free tasks below which the host is
// Degraded, as a text, and what a good sample needs.
func (t Thresholds) freeThreshold(limit float64) (threshold float64, text, clears string) {
	threshold = t.freeTasks(limit)
	factor := max(1, t.ClearFactor)
	if threshold > freeAt(t.UsedPercent, limit) {
		return threshold, fmt.Sprintf("%.0f free", threshold), fmt.Sprintf("above %.0f free", threshold*factor)
	}
	return threshold, trend.PercentText(t.UsedPercent), "below " + trend.ShareText(max(0, 100-(100-t.UsedPercent)*factor), 100) + " used"
}

// freeTasks is freeThreshold without its texts.
func (t Thresholds) freeTasks(limit float64) float64 {
	return max(freeAt(t.UsedPercent, limit), min(float64(t.FreeTasks), math.Floor(limit/4)))
}

// freeAt returns the number of free tasks below which at least usedPercent of the
// limit is used. Tasks are whole numbers: at most n free is the same as fewer
// than n + 1.
func freeAt(usedPercent, limit float64) float64 {
	return math.Floor(limit*max(0, 100-usedPercent)/100) + 1
}
