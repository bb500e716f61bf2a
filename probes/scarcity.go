package probes

import "math"

// scarcity is a quantity of which there can be too little. All three numbers
// have the same unit.
type scarcity struct {
	available float64
	threshold float64 // Degraded below it; 0 asks for nothing
	clear     float64 // OK without reserve from here on; below threshold it asks for nothing
}

// scarce is the scarcity whose clear threshold is clearFactor times the
// threshold. A factor below 1 does what 1 does.
func scarce(available, threshold, clearFactor float64) scarcity {
	return scarcity{available: available, threshold: threshold, clear: threshold * clearFactor}
}

// severity is 0 from the clear threshold up, rises linearly to 50 at the
// threshold, and from there linearly to 100 when nothing is left. It is
// rounded down, so that 50 is reached at the threshold and not before.
func (s scarcity) severity() int {
	switch {
	case s.threshold <= 0 || s.available > s.threshold && s.available >= s.clear:
		return 0
	case s.available > s.threshold:
		return int(50 * ((s.clear - s.available) / (s.clear - s.threshold)))
	default:
		return 50 + int(50*((s.threshold-max(0, s.available))/s.threshold))
	}
}

// tightness orders scarcities of different units: the smaller the closer to
// the threshold (1) or the further below it.
func (s scarcity) tightness() float64 {
	if s.threshold <= 0 {
		return math.Inf(1)
	}
	return s.available / s.threshold
}

// observe makes an Observation of it. The reason is thing (CamelCase) with
// Low, NearThreshold or Sufficient behind it.
func (s scarcity) observe(c Condition, thing, message string) Observation {
	o := Observation{Condition: c, Level: OK, Severity: s.severity(), Reason: thing + "Sufficient", Message: message}
	switch {
	case s.available < s.threshold:
		o.Level, o.Reason = Degraded, thing+"Low"
	case s.available < s.clear:
		o.Hysteresis, o.Reason = true, thing+"NearThreshold"
	}
	return o
}
