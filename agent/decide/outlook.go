package decide

import (
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// outlook returns what a condition waits for now.
func (s *State) outlook(t *turn, c *condition) describe.Outlook {
	if c.debounce.Level <= probes.OK {
		o := describe.Outlook{Suspicion: c.suspicion(), Soft: c.softShown(t.policy)}
		switch {
		case c.onset.braked != "":
			o.Held = describe.HeldFleetBrake
		case c.manual == awaiting:
			o.Held = describe.HeldAwaitsRemoval
		}
		o.Starting = s.starting(t, c)
		return o
	}
	o := describe.Outlook{Starting: s.starting(t, c), Blind: !c.debounce.unknownSince.IsZero(), Removals: recent(c.removals, t.now)}
	if classOf(c.last) >= bad {
		o.Reason, o.Culprit = c.last.Reason, c.last.Culprit.Who()
	}
	o.KeepFails = s.KeepFails(t.policy, c.name)
	if s.pause.observes(c.name) {
		if o.Would = s.would(c); o.Would != "" {
			o.Held = describe.HeldObserved
		}
	} else if held, until := s.gate(t, c, probes.Degraded); held != "" {
		o.Held, o.Until = held, until
	} else if s.wantsToEvict(t, c) {
		if held, until := s.gate(t, c, probes.Critical); held != "" {
			o.Held, o.Until, o.Evicting = held, until, true
		}
	}
	if c.debounce.isClearing() {
		o.Clears = c.clearsAt(t.policy, t.now)
		if o.Held == "" && o.Clears.After(c.debounce.goodAt(t.policy.debounce(c.name), t.now)) {
			o.Held, o.Until = describe.HeldWriteBudget, o.Clears
		}
	}
	return o
}

// would names the pairs of the rules that ask for a taint of an observed condition now.
func (s *State) would(c *condition) string {
	var pairs []string
	for i := range s.ledger.policy.Rules {
		if rule := &s.ledger.policy.Rules[i]; c.asks(rule) {
			pairs = append(pairs, rule.Taint.Pair().String())
		}
	}
	return strings.Join(pairs, " and ")
}

// starting returns what keeps the start-up taint on the Node, if that is this condition.
func (s *State) starting(t *turn, c *condition) describe.Starting {
	if !s.IsStarting() {
		return describe.Starting{}
	}
	missing := s.awaits(t, c)
	if missing == "" {
		return describe.Starting{}
	}
	return describe.Starting{Taint: t.policy.Startup.Taint, Since: s.startup.since, Missing: missing}
}

// wantsToEvict reports whether the samples of a condition ask for an eviction: they have
// been critical for long enough, and the newest one is.
func (s *State) wantsToEvict(t *turn, c *condition) bool {
	d := &c.debounce
	return d.Level == probes.Critical && d.class == critical && d.unknownSince.IsZero() || s.isLongCritical(t, c)
}

// describe returns what the Node condition of a condition is rendered from.
func (s *State) describe(t *turn, c *condition, o describe.Outlook, reported probes.Observation) describe.Condition {
	debounce := t.policy.debounce(c.name)
	d := describe.Condition{
		Outlook: o, Level: c.debounce.Level, Newest: c.last, Reported: reported, IsBad: classOf(c.last) >= bad,
		SetAt: c.debounce.SetAt, Good: c.last.Clears,
		ClearAfter: c.debounce.ClearAfter(debounce), NoRule: !s.isRuled(t, c), Manual: c.manual == awaiting,
		Braked: c.onset.braked, Unrecorded: s.ledger.unrecorded,
	}
	d.SetFor, d.SetBy = c.cause()
	if d.NoRule && t.policy.HasRule(c.name, probes.Degraded) {
		d.NoRuleFor = c.reason
	}
	if c.debounce.Level == probes.Critical {
		d.CriticalAt = c.since
	}
	if classOf(c.last) == clear && c.lastBad.Level > probes.OK {
		d.Good = c.lastBad.Clears // of the sample that is to become good
	}
	if c.debounce.isDamped(debounce) {
		d.Damped = c.debounce.flaps()
	}
	return d
}

// isRuled reports whether a rule asks for a taint for a reason that the condition has.
func (s *State) isRuled(t *turn, c *condition) bool {
	return slices.ContainsFunc(t.policy.Rules, func(r Rule) bool { return r.Level == probes.Degraded && c.isFor(&r) })
}

// cause returns the reason for which the condition was set, and what was found then. A
// restarted agent knows the reason only.
func (c *condition) cause() (reason, message string) {
	if c.decisive.Level > probes.OK {
		return c.decisive.Reason, c.decisive.Message
	}
	return c.reason, c.reason
}

// rendered is what a Node condition was rendered with.
type rendered struct {
	describe.Outlook
	level      probes.Level
	since      time.Time
	severity   int // of its value
	gist       gist
	unrecorded bool
	// value is the message of the sample that it tells, at is when it was told.
	value string
	at    time.Time
}

// gist is what a sample says in one word.
type gist struct {
	level  probes.Level
	reason string
}

// gistOf returns what a sample says. How near a good sample is to its threshold is part of
// its value: on a host that is near one all the time, it changes with the noise.
func gistOf(o probes.Observation) gist {
	if o.Level == probes.OK && o.Clears != "" {
		return gist{level: probes.OK}
	}
	return gist{o.Level, o.Reason}
}

// flapsFor is how long a condition that is OK again shows how often it was set.
const flapsFor = time.Hour

// summary is what the record says of a condition to people. But for FaultSince,
// nothing is decided by it. It
// changes only when the record is written for another cause, or when the Node's condition
// is rendered anew. Times are those of the wall clock.
type summary struct {
	// Since is when the level last changed, ClearsAt when the condition clears if
	// every sample is good until then.
	Since    string `json:"since,omitempty"`
	ClearsAt string `json:"clearsAt,omitempty"`
	// HeldBy says what holds the condition back.
	HeldBy describe.Hold `json:"heldBy,omitempty"`
	// Flaps is how often the condition was set most recently.
	Flaps int `json:"flaps,omitempty"`
	// Removals is how often others removed its taints, RemovedBy the field manager of the
	// newest removal, and RemovedAt when that was noticed.
	Removals  int    `json:"removals,omitempty"`
	RemovedBy string `json:"removedBy,omitempty"`
	RemovedAt string `json:"removedAt,omitempty"`
	// FaultSince is since when there is a fault that a repair of the host cures, from the
	// host's boot. A restarted agent reads it.
	FaultSince time.Duration `json:"faultSince,omitempty"`
}

// readsLike reports whether both say the same. For the flaps or the removals alone the
// record is not written.
func (s summary) readsLike(other summary) bool {
	s.Flaps, s.Removals, s.RemovedBy, s.RemovedAt = other.Flaps, other.Removals, other.RemovedBy, other.RemovedAt
	return s == other
}

// conditionWrites is what our Node conditions are to say.
type conditionWrites struct {
	// refresh: their heartbeat is due.
	refresh bool
	// pending are being written. They do not change until they are written: a
	// message that moves with every sample must not make every sample a write.
	pending []taints.NodeCondition
	// updates are when the conditions were last written for a difference alone, the newest first.
	updates [updatesEach]time.Time
}

const (
	// updatesEach is how many reports in updatesWithin are due to a difference alone. What comes
	// and goes must not make every sample a write. For what a condition that is OK
	// says, half of them. A suspicion that begins is beyond that.
	updatesEach, updatesWithin = 2, time.Minute
	// staleAfter and up to staleSpread more, by the name of the process, is how long the value
	// of a condition that is not OK stands on the Node while samples have another one.
	staleAfter, staleSpread = time.Minute, 15 * time.Second
	// moved is how far the severity moves until the value is told anew: a quarter of
	// the way from the threshold, which is 50, to the worst.
	moved = 13
	// falseAfter is how long samples must say something else than the Node until it is
	// told: another reason, or another level. With a sample each few seconds, what the
	// Node says is true within 30 s.
	falseAfter = 20 * time.Second
)

// difference is how a condition, or all, differ from what the Node shows.
type difference struct {
	isNew    bool // the Node shows another level, or this process has shown nothing yet
	differs  bool // something else is waited for
	isOfBad  bool // the condition is not OK, and that is so or its value has moved
	isUrgent bool // a suspicion begins
}

func (d difference) and(other difference) difference {
	return difference{d.isNew || other.isNew, d.differs || other.differs, d.isOfBad || other.isOfBad, d.isUrgent || other.isUrgent}
}
