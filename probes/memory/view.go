package memory

import (
	"strconv"
	"time"

	"github.com/taintlet/taintlet/probes/pressure"
	"github.com/taintlet/taintlet/probes/trend"
)

// view is a sample, and the stalls that it shows beside those before it.
type view struct {
	sample
	some, full stall
}

// stall is the share of a time in which tasks waited for memory, in percent.
type stall struct {
	percent float64
	over    time.Duration // 0: it is not known
	counts  float64       // the part of percent that the host's own reclaims account for
}

// viewOf compares a sample with those before it that it can be compared with.
func viewOf(before past, now sample) view {
	v := view{sample: now}
	v.some = stallSince(before, now, someSpan, func(s pressure.Stall) float64 { return s.Some })
	v.full = stallSince(before, now, fullSpan, func(s pressure.Stall) float64 { return s.Full })
	return v
}

// stallSince returns one kind of stall over the span that ends now. It is not known
// where no two samples can be compared.
func stallSince(before past, now sample, span time.Duration, kind func(pressure.Stall) float64) stall {
	earlier, found := before.before(now.at, span)
	if !found || !earlier.measured || !now.measured {
		return stall{}
	}
	over := now.at.Sub(earlier.at)
	waited, ok := now.stalls.Since(earlier.stalls, over)
	if !ok {
		return stall{}
	}
	s := stall{percent: kind(waited), over: over}
	lasted := time.Duration(s.percent / 100 * float64(over))
	counts := now.reclaims.accountFor(lasted, earlier.reclaims)
	if s.counts = s.percent; counts < lasted {
		s.counts = 100 * counts.Seconds() / over.Seconds()
	}
	return s
}

// text tells available memory and its limit: "available 412 MiB of 15.6 GiB
// (2.6 %), threshold 5 %".
func (v view) text(limit trend.Limit) string {
	availableText, limitText := limit.Texts(float64(v.available))
	text := "available " + availableText + " of " + trend.BytesText(v.whole()) +
		" (" + trend.ShareText(float64(v.available), v.whole()) + ")"
	if v.arc > 0 {
		text += ", " + trend.BytesText(float64(v.arc)) + " of it ZFS cache"
	}
	return text + ", threshold " + limitText
}

// text tells for how long tasks waited: "; stalled 31 % of the last second". It is empty
// where that is not known.
func (s stall) text(what string) string {
	if s.over == 0 {
		return ""
	}
	// Rounded down, as in ShareText.
	percent := int(s.percent)
	text := what + strconv.Itoa(percent) + " % of the last " + spanText(s.over)
	switch {
	case percent == 0 || s.counts == s.percent:
	case s.counts == 0:
		text += ", none of it by the host's own reclaim"
	default:
		text += ", " + strconv.Itoa(int(s.counts)) + " % by the host's own reclaim"
	}
	return text
}

// spanText writes the time between two samples, and "second" for about one.
func spanText(d time.Duration) string {
	if d >= 750*time.Millisecond && d < 1500*time.Millisecond {
		return "second"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}

// sample is what the host's memory was at one time, in bytes.
type sample struct {
	at        time.Time
	available uint64 // MemAvailable, and arc
	held      uint64 // what is not available, without huge pages: see meminfo.ordinary
	arc       uint64 // what the ZFS cache would give back
	stalls    pressure.Totals
	measured  bool          // the kernel measures pressure
	reclaims  reclaims      // of the host itself
	unread    error         // why a file beside meminfo is not used, although it is there
	took      time.Duration // how long reading took
}

// whole is what programs have and could have, of which percentages are taken.
func (s sample) whole() float64 { return float64(s.available) + float64(s.held) }

// reclaims is how often memory of the host had to be reclaimed, by a task before it got any
// or in advance.
type reclaims struct {
	count   uint64 // since the host started
	counted bool   // the kernel counts it
}

// stallPerReclaim is the longest stall that one reclaim accounts for. In the
// recorded overload tasks waited for 0.1 to 4 ms for each, in any span of 2 s in
// which they waited for 5 % of the time or more. It is several times that, because a
// slow disk makes a reclaim wait for its writes.
const stallPerReclaim = 20 * time.Millisecond

// accountFor returns how much of a stall the host's own reclaims since an earlier
// sample account for. Where the kernel does not count them, they account for all of
// it: the level of available memory that goes with every stall has to do then.
func (r reclaims) accountFor(stall time.Duration, earlier reclaims) time.Duration {
	switch {
	case !r.counted || !earlier.counted:
		return stall
	case r.count <= earlier.count: // it may wrap
		return 0
	}
	times := min(r.count-earlier.count, uint64(stall/stallPerReclaim)+1)
	return min(stall, time.Duration(times)*stallPerReclaim)
}
