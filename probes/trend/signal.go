package trend

// Signal is one measure compared with its threshold.
type Signal struct {
	Severity int  // 0 to 100, and 50 exactly at the threshold
	Set      bool // past the threshold
	Near     bool // not past the easier threshold that clears; true when set
}

// Both is the signal of two measures that say something only together: each
// holds the other back.
func Both(a, b Signal) Signal {
	return Signal{min(a.Severity, b.Severity), a.Set && b.Set, a.Near && b.Near}
}

// Signal compares what is available with its threshold.
func (s Scarcity) Signal() Signal {
	set := s.available < s.threshold
	return Signal{s.severity(), set, set || s.available < s.clear}
}

// Excess compares a percentage of which there can be too much with its
// threshold, which it is past when it reaches it; a threshold of 0 asks for
// nothing. Severity rises linearly from 0 at 0 to 50 at the threshold, and from
// there to 100 at 100. The threshold that clears is the clearFactor-th part of
// the other; a factor below 1 does what 1 does.
func Excess(percent, threshold, clearFactor float64) Signal {
	switch {
	case threshold <= 0:
		return Signal{}
	case percent < threshold:
		return Signal{int(50 * (percent / threshold)), false, percent >= threshold/clearFactor}
	case threshold >= 100:
		return Signal{100, true, true}
	default:
		return Signal{50 + int(50*((percent-threshold)/(100-threshold))), true, true}
	}
}
