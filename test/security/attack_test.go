package security

import (
	"slices"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
)

// Bounds of every attack.
const (
	maxMemory = 64 << 10 // KiB: the limit of the chart
	// maxDelay is from the host's change to the taint.
	maxDelay = 2 * time.Second
	// maxDelayAfterOutage is from the end of an outage of the API server.
	maxDelayAfterOutage = 3 * time.Second
)

// attack is one row of the table.
type attack struct {
	name string
	// run tries it and counts: attempts, and how many were denied. A failure of
	// the defence is reported through t.
	run func(t *testing.T, c *scene) (attempts, denied int)
	// what says in a line what is done, for README.md.
	what string
	// quiet: run itself makes the host sick, if at all. Otherwise that is done
	// again and again while it runs.
	quiet bool
	// guarded: nothing on the Node may change but what is taintlet's or the
	// attacker's. An attack that is not guarded checks that by itself.
	guarded bool
	// longOnly attacks are left out of the short form.
	longOnly bool
}

// attacks are all, in the order in which they are made.
func attacks() []attack {
	return slices.Concat(portAttacks(), fileAttacks(), annotationAttacks(), faultAttacks(), policyAttacks())
}

func TestAttacks(t *testing.T) {
	cluster.SkipUnlessRequired(t)
	s := newScene(t)
	s.calm(t)
	var rows []row
	for _, a := range attacks() {
		if a.longOnly && !isLong() {
			continue
		}
		rows = append(rows, s.play(t, a))
	}
	text := table(rows)
	t.Logf("memory: worst of the agent's process in MiB; delay: from the host's change to the taint, or from the end of an outage\n%s", text)
	if !t.Failed() {
		refresh(t, text)
	}
}

// play makes one attack and measures what it does to the agent.
func (s *scene) play(t *testing.T, a attack) row {
	t.Helper()
	r := row{name: a.name}
	ok := t.Run(a.name, func(t *testing.T) {
		s.t, s.worstDelay = t, 0
		s.peak.reset()
		s.nodes.guard(a.guarded)
		begin := time.Now()
		r.attempts, r.denied = s.run(t, a)
		if err := s.attacked.Process.Err(); err != nil {
			t.Error(err)
		}
		for _, change := range s.nodes.foreignChanges() {
			t.Errorf("something foreign changed on the Node: %s", change)
		}
		r.memory, r.delay = s.peak.worst(t), s.worstDelay
		if r.memory >= maxMemory {
			t.Errorf("the agent took %d KiB of memory, at most %d are allowed", r.memory, maxMemory)
		}
		t.Logf("%d attempts, %d denied, %d MiB, delay %s, in %s", r.attempts, r.denied, r.memory>>10, r.delay, time.Since(begin).Round(time.Second))
	})
	r.survived = ok
	return r
}

// run makes one attack while the agent is asked for its health, and the host falls
// sick and recovers.
func (s *scene) run(t *testing.T, a attack) (attempts, denied int) {
	t.Helper()
	defer s.watchHealth(t)()
	if !a.quiet {
		defer s.keepFallingSick()()
	}
	return a.run(t, s)
}
