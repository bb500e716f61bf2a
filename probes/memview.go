package probes

import (
	"math"
	"strconv"
	"time"
)

// memView is what a look at memory shows in the light of those before it.
type memView struct {
	sample   memSample
	stall    stall         // since the look before
	over     time.Duration // the time since then
	measured bool          // stall is known
	emptyIn  time.Duration // until nothing is left; the longest there is when that is not in sight
}

// view sees a sample in the light of the one before it and of the trend.
func view(prev, cur memSample, dt time.Duration, trend slope) memView {
	v := memView{sample: cur, over: dt, emptyIn: math.MaxInt64}
	if prev.measured && cur.measured {
		v.stall, v.measured = cur.pressure.since(prev.pressure, dt)
	}
	if left, ok := trend.timeToEmpty(cur.left()); ok {
		v.emptyIn = left
	}
	return v
}

func (v memView) available() float64 { return float64(v.sample.available) }

// whole is what programs have and could have.
func (v memView) whole() float64 { return v.available() + float64(v.sample.anon) }

// text is the level and what it is compared with: "available 412 MiB of
// 15.6 GiB (2.6 %), threshold 5 %".
func (v memView) text(limit memLimit) string {
	text := "available " + bytesText(v.available()) + " of " + bytesText(v.whole()) +
		" (" + shareText(v.available(), v.whole()) + ")"
	if v.sample.arc > 0 {
		text += ", " + bytesText(float64(v.sample.arc)) + " of it ZFS cache"
	}
	return text + ", threshold " + limit.text
}

// stallText is "; stalled 31 % of the last second", and nothing where that is
// not known.
func (v memView) stallText() string { return v.stalledText("; stalled ", v.stall.some) }

// fullText is the same for all tasks.
func (v memView) fullText() string { return v.stalledText("; all tasks stalled ", v.stall.full) }

func (v memView) stalledText(what string, percent float64) string {
	if !v.measured {
		return ""
	}
	// Rounded down, like shareText.
	return what + strconv.Itoa(int(percent)) + " % of the last " + spanText(v.over)
}

// emptyText is "; empty in 7 s", rounded down.
func (v memView) emptyText() string {
	if v.emptyIn < time.Second {
		return "; empty in less than 1 s"
	}
	return "; empty in " + strconv.Itoa(int(v.emptyIn/time.Second)) + " s"
}

// spanText writes the time between two looks, and "second" for about one.
func spanText(d time.Duration) string {
	if d >= 750*time.Millisecond && d < 1500*time.Millisecond {
		return "second"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}

// secondsText writes a time as it was configured: "10 s", "2.5 s".
func secondsText(d time.Duration) string { return plain(d.Seconds()) + " s" }
