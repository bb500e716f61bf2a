package faults

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

const (
	seedsEnv = "TAINTLET_FAULT_SEEDS"
	firstEnv = "TAINTLET_FAULT_FIRST"
	onlyEnv  = "TAINTLET_FAULT_ONLY" // a regular expression of the troubles to draw from; empty: all
	aimEnv   = "TAINTLET_FAULT_AIM"  // the point at which each seed is aimed; empty: none

	// shortSeeds are how many a usual run of the tests plays.
	shortSeeds = 24
	// longSeeds are enough for each fault to befall an agent, fullSeeds for each to befall
	// each kind of request.
	longSeeds = 150
	fullSeeds = 1000
)

// step is a part of a seed: the host changes while troubles befall its agent.
type step struct {
	condition probes.Condition
	to        health
	troubles  []trouble
	choices   []uint64
	length    time.Duration
	settles   bool // before the next step
}

// plan is what makes the steps: a seed, and the point at which it is aimed; none: it has random
// troubles.
type plan struct {
	seed uint64
	aim  point
}

func (p plan) String() string {
	again := fmt.Sprintf("make faults SEEDS=1 FIRST=%d", p.seed)
	if p.aim != (point{}) {
		again = fmt.Sprintf("%s='%s' %s", aimEnv, p.aim, again)
	}
	return again
}

// nodeName is that of the Node on which the plan is played.
func (p plan) nodeName() string {
	if p.aim == (point{}) {
		return fmt.Sprint("seed-", p.seed)
	}
	return fmt.Sprintf("aimed-%d-%d-%d", numberOfTrouble(p.aim.trouble), slices.Index(requestKinds(), p.aim.kind), p.seed)
}

// steps are those of the plan.
func (p plan) steps() []step {
	if p.aim != (point{}) {
		return aimed(p.seed, p.aim)
	}
	only := regexp.MustCompile(os.Getenv(onlyEnv))
	return planOf(p.seed, slices.DeleteFunc(troubles(), func(t trouble) bool { return !only.MatchString(t.name) }))
}

// aimed makes the steps of a seed that has one trouble only, which befalls requests like that of
// the point, and an agent that is killed under it: some requests are made at starts alone.
func aimed(seed uint64, at point) []step {
	steps := planOf(seed, slices.DeleteFunc(troubles(), func(t trouble) bool { return t.name != at.trouble }))
	for i := range steps {
		s := &steps[i]
		s.choices[0] = towards(s.choices[0], at.kind)
		s.troubles, s.choices = append(s.troubles, trouble{"SIGKILL", (*scene).killSometime}), append(s.choices, s.choices[0]%500)
	}
	return steps
}

// planOf draws the troubles of the steps from these.
func planOf(seed uint64, all []trouble) []step {
	d := dice(seed)
	steps := make([]step, 3+d.IntN(3))
	for i := range steps {
		s := &steps[i]
		s.condition, s.to = probes.MemoryPressure, []health{good, bad, bad, unreadable}[d.IntN(4)]
		if d.IntN(2) == 0 {
			s.condition, s.to = probes.PIDPressure, []health{good, bad, critical, critical}[d.IntN(4)]
		}
		for range 1 + d.IntN(2) {
			one, choice := all[d.IntN(len(all))], d.Uint64()
			if len(s.troubles) == 0 || s.troubles[0].name != one.name { // two of a kind would end each other
				s.troubles, s.choices = append(s.troubles, one), append(s.choices, choice)
			}
		}
		s.length = time.Duration(500+d.IntN(3500)) * time.Millisecond
		if d.IntN(200) == 0 && !isShort() {
			s.length = time.Minute
		}
		s.settles = d.IntN(3) == 0
	}
	return steps
}

// isShort reports whether this is a usual run of the tests, which leaves out what takes long.
func isShort() bool { return os.Getenv(seedsEnv) == "" }

func isLong() bool { return numberOf(seedsEnv, shortSeeds) >= longSeeds }

func isFull() bool { return numberOf(seedsEnv, shortSeeds) >= fullSeeds }

func numberOf(env string, otherwise uint64) uint64 {
	if number, err := strconv.ParseUint(os.Getenv(env), 10, 64); err == nil {
		return number
	}
	return otherwise
}

// Random faults, by seed: whatever befalls the agent, its Node is right in the end and at no
// time wrong.
func TestSeeds(t *testing.T) {
	require(t)
	origin := measure.Here("../..")
	begin, first, count, aim := time.Now(), numberOf(firstEnv, 1), numberOf(seedsEnv, shortSeeds), pointOf(os.Getenv(aimEnv))
	if aim != (point{}) && numberOfTrouble(aim.trouble) < 0 {
		t.Fatalf("%s=%q: there is no such fault; test/faults/results.md lists all", aimEnv, aim)
	}
	t.Run("seed", func(t *testing.T) {
		for seed := first; seed < first+count; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				plan{seed, aim}.play(t)
			})
		}
	})
	if isFull() {
		t.Run("aimed", playAimed)
	}
	if aim != (point{}) && slices.Contains(reached.unreachedPoints(true), aim) {
		t.Errorf("no seed has reached the point %q", aim)
	}
	if took := time.Since(begin); isLong() {
		if path := os.Getenv(resultsEnv); path != "" {
			writeResults(t, path, origin, first, count, took)
		}
		for _, missing := range reached.unreachedPoints(isFull()) {
			t.Errorf("no seed has reached the point %q", missing)
		}
	}
}

// aims is how many seeds are aimed at a point that the others have not reached.
const aims = 24

// playAimed aims seeds at the points that random ones have not reached: those of rare requests.
func playAimed(t *testing.T) {
	for _, missing := range reached.unreachedPoints(true) {
		for seed := range uint64(aims) {
			t.Run(fmt.Sprint(missing, "/", seed), func(t *testing.T) {
				t.Parallel()
				plan{seed, missing}.play(t)
			})
		}
	}
}

// play plays the plan.
func (p plan) play(t *testing.T) {
	t.Cleanup(func() { // when all has been told
		if t.Failed() {
			reached.fails()
			t.Logf("again: %s", p)
		}
	})
	newScene(t, p.nodeName()).playSteps(p.seed, p.steps())
}

// playSteps plays the steps of a seed, and after them the host recovers.
func (s *scene) playSteps(seed uint64, steps []step) {
	if seed%8 == 0 {
		s.claim()
	}
	s.start()
	for i, step := range steps {
		s.playStep(i, step)
	}
	for _, condition := range []probes.Condition{probes.MemoryPressure, probes.PIDPressure} {
		if s.host.now(condition) >= unreadable {
			s.set(condition, good)
		}
	}
	worst := s.settles()
	s.note("the Node is right %s after the last fault", worst)
	s.staysQuiet()
	s.set(probes.MemoryPressure, good)
	s.set(probes.PIDPressure, good)
	worst = max(worst, s.settles())
	s.note("the Node is untainted")
	for _, r := range s.agents {
		reached.add(r.proxy)
	}
	reached.ended(s, worst)
	if isLong() {
		s.t.Logf("seed %d: %d writes, %d starts; the Node was right within %s", seed, s.judge.writes, s.starts(), worst.Round(10*time.Millisecond))
	}
}

func (s *scene) playStep(number int, step step) {
	var names []string
	var ends []func()
	for i, trouble := range step.troubles {
		if why := unavailable(trouble.name); why != "" {
			s.note("no %s: %s", trouble.name, why)
			continue
		}
		names = append(names, trouble.name)
		s.note("step %d: %s begins", number+1, trouble.name)
		ends = append(ends, trouble.begin(s, step.choices[i]))
		reached.begun(trouble.name)
	}
	s.set(step.condition, step.to)
	if err := process.Pause(s.t.Context(), step.length); err != nil {
		s.t.Error(err)
	}
	for _, end := range ends {
		end()
	}
	s.note("step %d: %s over", number+1, strings.Join(names, ", "))
	if step.settles && !s.host.isBlind() {
		s.note("the Node is right after %s", s.settles())
	}
}

// staysQuiet fails the test if the agents go on writing the Node although nothing changes
// any more.
func (s *scene) staysQuiet() {
	const quiet = 1500 * time.Millisecond
	for range 10 {
		writes := s.judge.written()
		if err := process.Pause(s.t.Context(), quiet); err != nil {
			s.t.Error(err)
		}
		if s.judge.written() == writes {
			return
		}
	}
	s.judge.complain(fmt.Sprintf("the Node was written in each of ten times %s although nothing changes", quiet))
}

func (j *judge) written() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.writes
}

func (s *scene) starts() (count int) {
	for _, r := range s.agents {
		r.mu.Lock()
		count += len(r.logs)
		r.mu.Unlock()
	}
	return count
}
