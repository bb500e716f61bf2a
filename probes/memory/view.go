package memory

import (
	"math"
	"strconv"
	"time"

	"github.com/taintlet/taintlet/probes/pressure"
	"github.com/taintlet/taintlet/probes/trend"
)

// view is a sample together with what it shows when compared with those before.
type view struct {
	sample   sample
	stall    pressure.Stall // since the sample before
	over     time.Duration  // the time since then
	measured bool           // stall is known
	emptyIn  time.Duration  // until nothing is left; math.MaxInt64 where that is not in sight
}

// viewOf compares a sample with the one before it and with the slope.
func viewOf(prev, cur sample, dt time.Duration, slope trend.Slope) view {
	v := view{sample: cur, over: dt, emptyIn: math.MaxInt64}
	if prev.measured && cur.measured {
		v.stall, v.measured = cur.stalls.Since(prev.stalls, dt)
	}
	if left, ok := slope.TimeToEmpty(cur.left()); ok {
		v.emptyIn = left
	}
	return v
}

func (v view) available() float64 { return float64(v.sample.available) }

// whole is what programs have and could have, of which percentages are taken.
func (v view) whole() float64 { return v.available() + float64(v.sample.anon) }

// text tells available memory and the limit: "available 412 MiB of 15.6 GiB
// (2.6 %), threshold 5 %".
func (v view) text(limit bound) string {
	text := "available " + trend.BytesText(v.available()) + " of " + trend.BytesText(v.whole()) +
		" (" + trend.ShareText(v.available(), v.whole()) + ")"
	if v.sample.arc > 0 {
		text += ", " + trend.BytesText(float64(v.sample.arc)) + " of it ZFS cache"
	}
	return text + ", threshold " + limit.text
}

// stallText tells for how long some task waited: "; stalled 31 % of the last
// second". It is empty where that is not known.
func (v view) stallText() string { return v.stalledText("; stalled ", v.stall.Some) }

// fullText tells for how long all tasks waited.
func (v view) fullText() string { return v.stalledText("; all tasks stalled ", v.stall.Full) }

func (v view) stalledText(what string, percent float64) string {
	if !v.measured {
		return ""
	}
	// Rounded down, as in ShareText.
	return what + strconv.Itoa(int(percent)) + " % of the last " + spanText(v.over)
}

// emptyText tells when nothing will be left, rounded down: "; empty in 7 s".
func (v view) emptyText() string {
	if v.emptyIn < time.Second {
		return "; empty in less than 1 s"
	}
	return "; empty in " + strconv.Itoa(int(v.emptyIn/time.Second)) + " s"
}

// spanText writes the time between two samples, and "second" for about one.
func spanText(d time.Duration) string {
	if d >= 750*time.Millisecond && d < 1500*time.Millisecond {
		return "second"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}
