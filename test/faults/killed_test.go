package faults

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/taintlet/taintlet/probes"
)

// play leads the Node through all taints of the rules and back, and returns when it is
// untainted again. The agent may be killed at any time.
func (s *scene) play() {
	for _, step := range []struct {
		condition probes.Condition
		to        health
	}{
		{probes.MemoryPressure, bad},
		{probes.PIDPressure, critical},
		{probes.PIDPressure, bad},
		{probes.PIDPressure, good},
		{probes.MemoryPressure, good},
	} {
		s.set(step.condition, step.to)
		took := s.settles()
		s.note("the Node is right after %s", took)
	}
}

// killAt kills the agent at its request of that number, before the API server gets it or
// when the API server has answered and the agent has not.
func (r *runner) killAt(number int, isAfter bool, done func(kind string)) rule {
	var once atomic.Bool
	return func(c call) *fault {
		if c.number != number || once.Swap(true) {
			return nil
		}
		done(c.kind)
		if isAfter {
			return &fault{name: "killed after it landed", landed: func(*http.Response) error {
				r.kill()
				return errNoAnswer
			}}
		}
		return &fault{name: "killed before it arrives", instead: func(http.ResponseWriter, *http.Request) {
			r.kill()
			panic(http.ErrAbortHandler)
		}}
	}
}

// The agent is killed between each two of its requests: before the API server gets the
// next one, and when it has landed and the agent does not know. Nothing is lost.
func TestKilledBetweenRequests(t *testing.T) {
	first := newCounted(t)
	t.Logf("an undisturbed course has %d requests", first)
	for number := 1; number <= first; number++ {
		for _, isAfter := range []bool{false, true} {
			when := map[bool]string{false: "before", true: "after"}[isAfter]
			t.Run(fmt.Sprintf("%d-%s", number, when), func(t *testing.T) {
				t.Parallel()
				s := newScene(t, fmt.Sprintf("killed-%d-%s", number, when))
				r := s.start()
				r.proxy.begin(r.killAt(number, isAfter, func(kind string) { s.note("killed %s request %d, %s", when, number, kind) }))
				s.play()
				if r.killed() == 0 {
					t.Logf("this course had no request %d", number)
				}
				reached.add(r.proxy)
			})
		}
	}
}

// newCounted plays the course once undisturbed and returns how many requests that takes.
func newCounted(t *testing.T) (requests int) {
	t.Helper()
	t.Run("undisturbed", func(t *testing.T) {
		s := newScene(t, "undisturbed")
		r := s.start()
		s.play()
		requests = r.proxy.numbered()
	})
	return requests
}
