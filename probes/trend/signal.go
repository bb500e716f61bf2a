package trend

// Signal is one measure compared with its threshold.
type Signal struct {
	Severity int  // 0 to 100, and 50 exactly at the threshold
	Set      bool // past the threshold
	Near     bool // not past the easier threshold that clears; true when set
}

// Both returns the signal of two measures that count only together. It is as
// severe as the milder of them.
func Both(a, b Signal) Signal {
	return Signal{min(a.Severity, b.Severity), a.Set && b.Set, a.Near && b.Near}
}

// Signal returns what is available, compared with its threshold.
func (s Scarcity) Signal() Signal {
	set := s.available < s.threshold
	return Signal{s.severity(), set, set || s.available < s.clear}
}

// Excess compares a percentage of which there can be too much with its
// threshold. A percentage that has reached the threshold is past it. A threshold
// of 0 is never reached. Severity rises linearly from 0 at 0 % to 50 at the
// threshold, and from there to 100 at 100 %. It clears below the threshold
// divided by clearFactor. A factor below 1 counts as 1.
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
