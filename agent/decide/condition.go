package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// condition is all that a State knows of one condition.
type condition struct {
	name     probes.Condition
	debounce Debouncer
	// disputes of the rules for Degraded and Critical.
	disputes [2]dispute
	// last is the newest observation, because that which decided the level.
	last, because probes.Observation
	// reason is that of the sample that set the condition; empty while it is OK. Unlike
	// because it survives a restart.
	reason string
	// request is a Degraded that was not set yet.
	request request
	// since is when the level last changed; zero: not known.
	since time.Time
	// recorded is what the last revision of the record remembers.
	recorded remembered
	// shown is what the Node condition says; nil: this process has not compared it yet.
	// told is what the record says of the condition to people. Both are replaced, never
	// changed: a State is copied with each Step.
	shown *rendered
	told  *told
	// falseSince is since when the samples say something else than the Node; zero: they
	// say the same. steady is the newest that says the same.
	falseSince time.Time
	steady     probes.Observation
	// lastBad is the newest observation that was not OK. It is why a condition
	// stays Degraded when a sample that is OK ends Critical.
	lastBad probes.Observation
	// waitingSince is since when a metered step has been due for which there was
	// no token.
	waitingSince time.Time
	// toldUnknown is when a person was last told that the probe cannot tell.
	toldUnknown time.Time
}

// disputeOf returns where the dispute of a level's rule is kept.
func (c *condition) disputeOf(level probes.Level) *dispute {
	return &c.disputes[level-probes.Degraded]
}

// remembered is what the record has to remember of a condition. What else it says
// changes with that, or may wait.
type remembered struct {
	level   probes.Level
	penalty float64
	setAt   time.Time
	reason  string
	stages  [2]stage
}

func (c *condition) remembered() remembered {
	return remembered{c.debounce.Level, c.debounce.Penalty, c.debounce.SetAt, c.reason, [2]stage{c.disputes[0].stage, c.disputes[1].stage}}
}

// isSeen reports whether the condition's probe has taken a sample.
func (c *condition) isSeen() bool { return c.last.Condition != "" }

// conditions are those of the configuration, in its order.
type conditions []condition

// of returns the condition of that name, nil if there is none.
func (all conditions) of(name probes.Condition) *condition {
	for i := range all {
		if all[i].name == name {
			return &all[i]
		}
	}
	return nil
}

// clone returns a copy that may be changed.
func (all conditions) clone() conditions { return slices.Clone(all) }

// following returns a copy that has the conditions of the configuration. A new
// condition is OK, a dropped one is forgotten.
func (all conditions) following(policy *Policy) conditions {
	followed := make(conditions, len(policy.Conditions))
	for i := range policy.Conditions {
		name := policy.Conditions[i].Name
		if known := all.of(name); known != nil {
			followed[i] = *known
			continue
		}
		followed[i] = condition{name: name, debounce: Debouncer{Level: probes.OK}}
		followed[i].recorded = followed[i].remembered()
	}
	return followed
}

// allSeen reports whether every probe has taken a sample.
func (all conditions) allSeen() bool {
	return !slices.ContainsFunc(all, func(c condition) bool { return !c.isSeen() })
}

// observe adds a sample and moves the condition's level as far as the evidence
// and the write budget allow.
func (s *State) observe(t *turn, o probes.Observation) {
	c := s.conditions.of(o.Condition)
	if c == nil {
		return // its probe was dropped a moment ago
	}
	if !c.isSeen() {
		c.because = o
	}
	if s.lacksProof(c, o) {
		o.Hysteresis = true
	}
	c.last = o
	c.compare(t.now)
	if classOf(o) >= bad {
		c.lastBad = o
	}
	before := c.debounce
	c.debounce = before.Next(o, t.now)
	if !s.active.restored {
		return
	}
	debounce := t.debounce(c.name)
	c.tellUnknown(t, debounce)
	target := c.debounce.Target(debounce, t.now)
	if target == probes.Critical && !s.mayBeCritical(t, c) {
		target = probes.Degraded
	}
	if target == before.Level {
		c.waitingSince = time.Time{}
		if c.debounce.unknownSince.IsZero() {
			c.request = request{}
		}
		return
	}
	if !s.allow(t, c, target) {
		return
	}
	c.waitingSince, c.request = time.Time{}, request{}
	c.debounce, c.since = c.debounce.Enter(target, debounce, t.now), t.now
	c.because = c.reasonFor(target)
	if c.reason = c.because.Reason; target == probes.OK {
		c.reason = ""
	}
	if target == probes.Critical {
		s.eviction.at = t.now
	}
	t.tell(Notice{Kind: LevelChanged, Condition: c.name, From: before.Level, To: target,
		Reason: c.because.Reason, Message: c.because.Message + c.nowText()})
}

// lacksProof reports whether a good sample clears nothing, because the probe has not
// seen well since its start what the condition was set for. Before the record is read
// that may be anything.
func (s *State) lacksProof(c *condition, o probes.Observation) bool {
	lacking := strings.Fields(o.NeverWell)
	return o.Level == probes.OK && (slices.Contains(lacking, c.reason) || !s.active.restored && len(lacking) > 0)
}

// reasonFor returns the observation that tells why the condition has the level: the
// newest one, or the newest bad one where the newest is OK and the level is not.
func (c *condition) reasonFor(level probes.Level) probes.Observation {
	if level > probes.OK && c.last.Level == probes.OK && c.lastBad.Level > probes.OK {
		return c.lastBad
	}
	return c.last
}

// nowText tells what the newest sample showed, where another one gave the reason.
func (c *condition) nowText() string {
	if c.because == c.last {
		return ""
	}
	return "; now " + c.last.Message
}

// debounce returns the configured debounce of a condition of the configuration.
func (t *turn) debounce(name probes.Condition) Debounce {
	c, _ := t.policy.Condition(name)
	return c.Debounce
}

// tellUnknown tells people, once an hour, that the probe has not been able to
// tell for long.
func (c *condition) tellUnknown(t *turn, debounce Debounce) {
	if c.debounce.unknownFor(t.now) < debounce.UnknownAfter.Duration || t.now.Sub(c.toldUnknown) < time.Hour {
		return
	}
	c.toldUnknown = t.now
	t.tell(Notice{Kind: StillUnknown, Condition: c.name, Reason: string(StillUnknown), Message: fmt.Sprintf(
		"%s has been Unknown for %s; NoSchedule taints stay: %s", c.name, durationText(c.debounce.unknownFor(t.now)), c.last.Message)})
}

// allow asks the fleet brake about a new Degraded. It takes a token for the steps
// that the write budget meters: clears and steps up to Critical.
func (s *State) allow(t *turn, c *condition, to probes.Level) bool {
	if to == probes.Degraded {
		return c.debounce.Level > probes.Degraded || !s.isBraked(t, c)
	}
	if c.waitingSince.IsZero() {
		c.waitingSince = t.now
	}
	if held, _ := s.tokenGate(t, c); held != "" {
		return false
	}
	s.budget, _ = s.budget.take(t.policy.WriteBudget, t.now)
	return true
}
