package decide

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
)

// latch says whether the samples of a condition have a severity that a rule names: it is set
// and cleared by the debounce of the condition, as Degraded is.
type latch struct {
	severity int
	Debouncer
}

// clearBelow is the severity below which a sample is good for a latch: three quarters of the way
// to its severity, from 0 or from the threshold of Degraded.
func (l *latch) clearBelow() int {
	from := 0
	if !l.isEarly() {
		from = degradedSeverity
	}
	return max(1, from+(l.severity-from)*3/4)
}

// judge returns what a sample says of a latch: bad from its severity on, and good below an
// easier one. What is not OK at all is bad for an early taint.
func (l *latch) judge(o probes.Observation) probes.Observation {
	judged := probes.Observation{Level: probes.OK, Certain: o.Certain}
	switch {
	case o.Level == probes.Unknown:
		judged.Level = probes.Unknown
	case o.Severity >= l.severity || l.isEarly() && o.Level > probes.OK:
		judged.Level = probes.Degraded
	default:
		judged.Hysteresis = o.Severity >= l.clearBelow()
	}
	return judged
}

// isEarly reports whether the latch is for a taint before Degraded, and not for a graver value.
func (l *latch) isEarly() bool { return l.severity < degradedSeverity }

// degradedSeverity is the severity at the threshold of Degraded.
const degradedSeverity = 50

// latchesOf returns copies of the latches that the policy's rules for a condition need. A known
// latch keeps its state.
func latchesOf(policy *Policy, name probes.Condition, known []latch) (latches []latch) {
	for i := range policy.Rules {
		rule := &policy.Rules[i]
		if rule.Condition != name || rule.Severity == 0 || latchOf(latches, rule) != nil {
			continue
		}
		if l := latchOf(known, rule); l != nil {
			latches = append(latches, *l)
		} else {
			latches = append(latches, latch{rule.Severity, Debouncer{Level: probes.OK}})
		}
	}
	return latches
}

// latchOf returns the latch of the severity that a rule names; nil if there is none.
func latchOf(latches []latch, rule *Rule) *latch {
	for i := range latches {
		if latches[i].severity == rule.Severity {
			return &latches[i]
		}
	}
	return nil
}

// isLatched reports whether the samples have the severity that a rule names, if any.
func (c *condition) isLatched(rule *Rule) bool {
	l := latchOf(c.latches, rule)
	return rule.Severity == 0 || l != nil && l.Level > probes.OK
}

// followLatches sets and clears the latches as the evidence asks.
func (s *State) followLatches(t *turn) {
	for i := range s.conditions {
		c := &s.conditions[i]
		debounce := t.policy.debounce(c.name)
		for j := range c.latches {
			l := &c.latches[j]
			if target := c.latchTarget(l, debounce, t.now); target != l.Level && s.allowLatch(t, c, l, target) {
				l.Debouncer = l.Enter(target, debounce, t.now)
				s.notifySoft(t, c, l)
			}
		}
	}
}

// latchTarget returns what the evidence asks of a latch. A condition that is not OK keeps its early
// taint, and an OK condition has no graver value.
func (c *condition) latchTarget(l *latch, debounce Debounce, now time.Time) probes.Level {
	target := l.Target(debounce, now)
	switch {
	case c.debounce.Level > probes.OK && l.isEarly():
		return max(target, l.Level)
	case c.debounce.Level <= probes.OK && !l.isEarly():
		return probes.OK
	}
	return target
}

// allowLatch reports whether a latch may move. Clearing takes a token: for an early taint one of
// its condition, unless the condition cleared just now, and for a value one of the Node's upkeep. A
// pause keeps a value from rising.
func (s *State) allowLatch(t *turn, c *condition, l *latch, to probes.Level) bool {
	switch {
	case to > probes.OK:
		return l.isEarly() || !c.isPaused()
	case l.isEarly() && c.since.Equal(t.now):
		return true
	case l.isEarly():
		return c.budget.take(t.policy.WriteBudget, t.now)
	case c.debounce.Level <= probes.OK:
		return true
	}
	return s.upkeep.take(t.policy.Upkeep, t.now)
}

// notifySoft reports that an early taint is set now, or cleared.
func (s *State) notifySoft(t *turn, c *condition, l *latch) {
	if !l.isEarly() || c.disputeOf(probes.OK).conceded != asRuled {
		return
	}
	rule, _ := t.policy.rule(c.name, probes.OK)
	set, held := rule.Taint.Pair().With(rule.Taint.Value), c.stopped
	if l.Level > probes.OK {
		t.notify(Notice{Kind: SoftTaintSet, Condition: c.name, Message: describe.SoftSet(set, c.last.Message, held)})
	} else {
		t.notify(Notice{Kind: SoftTaintCleared, Condition: c.name, Message: describe.SoftCleared(set, c.last.Message, held)})
	}
}

// restoreLatches sets the latches whose taints the record calls ours and that stand on the
// Node, or that others removed. Nothing else of them is remembered.
func (s *State) restoreLatches(t *turn) {
	for i := range t.policy.Rules {
		rule := &t.policy.Rules[i]
		if rule.Severity == 0 {
			continue
		}
		c := s.conditions.of(rule.Condition)
		l := latchOf(c.latches, rule)
		l.Level = probes.OK
		isGivenUp := l.isEarly() && c.disputeOf(probes.OK).conceded != asRuled
		if isGivenUp || slices.Contains(s.ledger.owned, rule.Taint.Pair()) && t.policy.isAtLeast(rule, t.in.Node) {
			l.Level = probes.Degraded
		}
	}
}

// isAtLeast reports whether a Node has a rule's taint with its value, or with that of a rule of a
// higher severity.
func (p *Policy) isAtLeast(rule *Rule, node *Node) bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool {
		isGraver := r.Condition == rule.Condition && r.Taint.Pair() == rule.Taint.Pair() && r.Severity >= rule.Severity
		return isGraver && slices.Contains(node.Taints, r.Taint.Pair().With(r.Taint.Value))
	})
}

// flaps is how often the condition was set most recently, as damping counts it: the
// penalty just after the last set.
func (d Debouncer) flaps() int { return int(math.Round(d.Penalty)) }

// isDamped reports whether the condition clears later because it was set often.
func (d Debouncer) isDamped(c Debounce) bool {
	return d.flaps() > 1 && d.ClearAfter(c) > c.ClearAfter.Duration
}

// maxGap is the longest time between two samples that still belong together. After a longer one
// (the host slept, the agent was stopped) the window is emptied, and the gap counts neither as good
// nor as bad. It is longer than any period that the configuration allows.
const maxGap = 11 * time.Minute

// class is what one valid sample says about the condition.
type class uint8

const (
	none     class = iota
	clear          // OK, past the threshold that clears
	between        // OK, but not past the threshold that clears
	bad            // Degraded
	critical       // Critical
)

func classOf(o probes.Observation) class {
	switch {
	case o.Level == probes.Critical:
		return critical
	case o.Level == probes.Degraded:
		return bad
	case o.Level == probes.OK && o.Hysteresis:
		return between
	case o.Level == probes.OK:
		return clear
	}
	return none
}

// Debouncer is the state machine of one condition: which of its newest samples were bad, for how
// long it has been good, and the level that follows. Level, Penalty and SetAt survive a restart.
// The rest is evidence. A restarted process collects it again, so that it never decides earlier.
type Debouncer struct {
	// Level is the decided level: OK, Degraded or Critical.
	Level probes.Level
	// Penalty counts the recent sets: one for each, halved every
	// PenaltyHalfLife. It is the value just after the last set.
	Penalty float64
	// SetAt is when the condition last went from OK to Degraded.
	SetAt time.Time

	window       uint32        // the last samples, newest in bit 0: 1 is bad
	certain      bool          // the newest sample needs no second one
	class        class         // of the newest valid sample
	held         time.Duration // how long every sample was of that class
	seenAt       time.Time     // the newest valid sample
	badAt        time.Time     // the newest bad one
	unknownSince time.Time     // zero: the newest sample was valid
}

// Next adds one sample to the evidence. It decides nothing.
func (d Debouncer) Next(o probes.Observation, now time.Time) Debouncer {
	seen := classOf(o)
	if seen == none {
		if d.unknownSince.IsZero() {
			d.unknownSince = now
		}
		d.certain = false
		return d
	}
	gap := max(0, now.Sub(d.seenAt))
	if gap > maxGap {
		d.window = 0
	}
	switch {
	case seen != d.class:
		d.held = 0
	case d.unknownSince.IsZero() && gap <= maxGap:
		d.held += gap
	}
	d.window <<= 1
	if seen >= bad {
		d.window |= 1
		d.badAt = now
	}
	d.certain = o.Certain && seen >= bad
	d.class, d.seenAt, d.unknownSince = seen, now, time.Time{}
	return d
}

// forget returns the Debouncer without its evidence.
func (d Debouncer) forget() Debouncer {
	d.window, d.certain, d.class, d.held, d.unknownSince = 0, false, none, 0, time.Time{}
	return d
}

// Target is the level that the evidence asks for, at most one step away from
// the present one.
func (d Debouncer) Target(c Debounce, now time.Time) probes.Level {
	if unknown := d.unknownFor(now); unknown > 0 {
		if d.Level == probes.Critical && unknown >= c.UnknownAfter.Duration {
			return probes.Degraded
		}
		return d.Level
	}
	switch d.Level {
	case probes.Critical:
		if d.class != critical {
			return probes.Degraded
		}
	case probes.Degraded:
		if d.isClearing() && d.held >= d.ClearAfter(c) {
			return probes.OK
		}
		if d.class == critical && d.held >= c.CriticalAfter.Duration {
			return probes.Critical
		}
	default:
		recent := d.window & (1<<c.Samples - 1)
		if d.certain || bits.OnesCount32(recent) >= c.BadSamples {
			return probes.Degraded
		}
	}
	return d.Level
}

// isClearing reports whether the newest sample brings the condition nearer to OK.
func (d Debouncer) isClearing() bool {
	return d.Level > probes.OK && d.class == clear && d.unknownSince.IsZero()
}

// goodAt is when every sample will have been good for long enough if all are good from
// now on.
func (d Debouncer) goodAt(c Debounce, now time.Time) time.Time {
	if d.isClearing() {
		return d.seenAt.Add(d.ClearAfter(c) - d.held)
	}
	return now.Add(d.ClearAfter(c))
}

// unknownFor is how long the probe has not been able to tell; 0 when it can.
func (d Debouncer) unknownFor(now time.Time) time.Duration {
	if d.unknownSince.IsZero() {
		return 0
	}
	return max(1, now.Sub(d.unknownSince))
}

// Enter moves to a level. A set after OK is what damping counts.
func (d Debouncer) Enter(level probes.Level, c Debounce, now time.Time) Debouncer {
	if d.Level == probes.OK && level == probes.Degraded {
		d.Penalty = d.decayed(c, now) + 1
		d.SetAt = now
	}
	if level == probes.OK {
		d.window = 0
	}
	d.Level = level
	return d
}

// decayed is the penalty that is left now: it halves every PenaltyHalfLife.
func (d Debouncer) decayed(c Debounce, now time.Time) float64 {
	if d.Penalty == 0 {
		return 0
	}
	elapsed := max(0, now.Sub(d.SetAt))
	return d.Penalty * math.Exp2(-elapsed.Seconds()/c.PenaltyHalfLife.Seconds())
}

// ClearAfter is how long every sample must be good before the condition is OK: min(MaxClearAfter,
// ClearAfter·2^P), P being the penalty as it was before the last set added to it. A first set, or a
// set after a long quiet time, therefore clears after ClearAfter. A set that closely follows
// earlier ones clears later.
func (d Debouncer) ClearAfter(c Debounce) time.Duration {
	p := max(0, d.Penalty-1)
	// Compared as floats: the product may be beyond any Duration.
	if h := c.ClearAfter.Seconds() * math.Exp2(p); h < c.MaxClearAfter.Seconds() {
		return time.Duration(h * float64(time.Second))
	}
	return c.MaxClearAfter.Duration
}
