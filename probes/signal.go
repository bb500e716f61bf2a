package probes

// signal is one measure compared with its threshold.
type signal struct {
	severity int  // 0 to 100, and 50 exactly at the threshold
	set      bool // past the threshold
	near     bool // not past the easier threshold that clears; true when set
}

// both is the signal of two measures that say something only together: each
// holds the other back.
func both(a, b signal) signal {
	return signal{min(a.severity, b.severity), a.set && b.set, a.near && b.near}
}

// signal compares what is available with its threshold.
func (s scarcity) signal() signal {
	set := s.available < s.threshold
	return signal{s.severity(), set, set || s.available < s.clear}
}

// excess compares a percentage of which there can be too much with its
// threshold, which it is past when it reaches it; a threshold of 0 asks for
// nothing. Severity rises linearly from 0 at 0 to 50 at the threshold, and from
// there to 100 at 100. The threshold that clears is the clearFactor-th part of
// the other; a factor below 1 does what 1 does.
func excess(percent, threshold, clearFactor float64) signal {
	switch {
	case threshold <= 0:
		return signal{}
	case percent < threshold:
		return signal{int(50 * (percent / threshold)), false, percent >= threshold/clearFactor}
	case threshold >= 100:
		return signal{100, true, true}
	default:
		return signal{50 + int(50*((percent-threshold)/(100-threshold))), true, true}
	}
}
