package decide

import (
	"strconv"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// FromSeverity is a Taint's ValueFrom that makes the severity its value.
const FromSeverity = "severity"

// valueStep is how far the values are apart that are made of a severity.
const valueStep = 25

// stepOf returns the value that a severity makes: 50, 75 or 100. A condition that is
// Degraded has no lower one.
func stepOf(severity int) int { return max(50, severity/valueStep*valueStep) }

// observe takes in a sample, where there is such a value.
func (v *severityValue) observe(o probes.Observation, now time.Time) {
	switch {
	case v == nil:
		return
	case o.Level == probes.Unknown:
		v.lowerSince = time.Time{} // the wait begins anew
		return
	}
	seen := stepOf(o.Severity)
	switch {
	case seen >= v.step:
		v.lowerSince = time.Time{}
	case v.lowerSince.IsZero() || now.Sub(v.seenAt) > maxGap:
		v.lowerSince, v.lower = now, seen
	default:
		v.lower = max(v.lower, seen)
	}
	v.newest, v.seenAt = seen, now
}

// forget drops the evidence. The value stays.
func (v severityValue) forget() severityValue {
	v.newest, v.lowerSince = 0, time.Time{}
	return v
}

// followValues moves the values. A set takes its own along. Up goes at once: a token was
// needed for each way down before it. Down goes when every sample has been lower for as long as
// a clear takes, with a token.
func (s *State) followValues(t *turn) {
	for _, name := range t.policy.valued() {
		c := s.conditions.of(name)
		v := c.value
		switch {
		case c.debounce.Level <= probes.OK:
		case !v.setAt.Equal(c.debounce.SetAt):
			v.setAt, v.step, v.lowerSince = c.debounce.SetAt, stepOf(c.last.Severity), time.Time{}
		case v.newest > v.step:
			if !s.pause.has(c.name) {
				v.step, v.lowerSince = v.newest, time.Time{}
			}
		case s.mayLower(t, c):
			s.upkeep, _ = s.upkeep.take(t.policy.Upkeep, t.now)
			v.step, v.lowerSince = v.lower, time.Time{}
		}
	}
}

// mayLower reports whether the value of a condition goes down now.
func (s *State) mayLower(t *turn, c *condition) bool {
	v := c.value
	isDue := !v.lowerSince.IsZero() && v.seenAt.Sub(v.lowerSince) >= c.debounce.ClearAfter(t.policy.debounce(c.name))
	return isDue && s.isSettled(t.in.Node) && !t.now.Before(s.upkeep.nextAt(t.policy.Upkeep))
}

// restoreValues takes the values over that stand on the Node: the record does not have
// them.
func (s *State) restoreValues(t *turn) {
	for i := range t.policy.Rules {
		rule := &t.policy.Rules[i]
		if rule.Taint.ValueFrom == "" {
			continue
		}
		c := s.conditions.of(rule.Condition)
		for _, taint := range t.in.Node.Taints {
			step, err := strconv.Atoi(taint.Value)
			if err == nil && taint.Pair() == rule.Taint.Pair() && step == min(100, stepOf(step)) {
				c.value.setAt, c.value.step = c.debounce.SetAt, step
			}
		}
	}
}

// valueOf returns the value of a rule's taint. What stands in has none.
func (s *State) valueOf(rule *Rule, via taints.Via) string {
	switch {
	case rule.Taint.ValueFrom == "":
		return rule.Taint.Value
	case via != taints.Direct:
		return ""
	}
	return strconv.Itoa(max(s.conditions.of(rule.Condition).value.step, stepOf(0)))
}
