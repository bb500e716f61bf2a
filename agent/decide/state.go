// Package decide turns what the probes saw into what the Node should carry. It
// has no clock, does no I/O and logs nothing: the same Step runs in production,
// in tests and in a simulator.
package decide

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// State is everything that Step remembers. It is a value: Step returns a new
// one and leaves the old one as it was.
type State struct {
	boot       Boot
	conditions conditions
	budget     bucket
	active     active
	ledger     ledger
	pause      pause
	eviction   eviction
	report     report
	startup    startup
	hostRepair hostRepair
	soft       soft
}

// New returns the State of an agent that has just started and seen nothing.
// The name tells this process from all others.
func New(boot Boot, name string, started time.Time) State {
	return State{
		boot:   boot,
		active: active{instance: instance{Name: name, Term: 1, StartedAt: started.Sub(boot.At)}},
	}
}

// Forget drops the evidence that was collected of a condition, because it will
// be judged by other thresholds from now on. What was decided stays, as after
// a restart.
func (s State) Forget(name probes.Condition) State {
	s.conditions = slices.Clone(s.conditions)
	if c := s.conditions.of(name); c != nil {
		c.debounce, c.onset, c.fault = c.debounce.forget(), onset{}, c.fault.forget()
		c.soft.evidence, c.value = c.soft.evidence.forget(), c.value.forget()
	}
	return s
}

// turn is one call of Step: what its parts are given, and what they decide.
type turn struct {
	policy *Policy
	in     Inputs
	now    time.Time
	Decision
}

// notify adds a notice. Its kind is its reason unless there is another one.
func (t *turn) notify(n Notice) {
	if n.Reason == "" && n.Kind != LevelChanged { // which has that of its sample
		n.Reason = string(n.Kind)
	}
	t.Notices = append(t.Notices, n)
}

// eviction is what a State knows of evictions of this Node.
type eviction struct {
	// at is when this Node most recently stepped up to Critical.
	at time.Time
	// controlPlane: the Node is labelled as one of the control plane.
	controlPlane bool
	// waits: people know that an eviction waits for a slot.
	waits bool
}
