package decide_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// past plays half an hour to five hours of a host that changes its mind now
// and then, so that there is something to remember.
func past(cfg *decide.Policy, r *rand.Rand) *sim {
	s := newSim(cfg)
	symbols := []string{"ok", "ok", "ok", "near", "bad", "critical", "unknown"}
	seldom := r.IntN(2) == 0
	end := s.now.Add(30*time.Minute + time.Duration(r.Int64N(int64(270*time.Minute))))
	for s.now.Before(end) {
		symbol := symbols[r.IntN(len(symbols))]
		longest := 100
		if symbol == "ok" && seldom {
			longest = 1000
		}
		for range 1 + r.IntN(longest) {
			s.after(2*time.Second, sample(probes.MemoryPressure, symbol), sample(probes.DiskPressure, "ok"))
		}
	}
	for range r.IntN(4) { // the newest samples may be of any kind
		s.after(2*time.Second, sample(probes.MemoryPressure, anySample(r)))
	}
	return s
}

func settings(r *rand.Rand) *decide.Policy {
	cfg := config.Default().Policy()
	if r.IntN(2) == 0 {
		withCritical(cfg)
	}
	return cfg
}

// restarted returns the twin that goes on without a restart and the one that
// was restarted: in the same boot or in a new one, by a wall clock an hour off.
func restarted(s *sim, r *rand.Rand) (twin *sim, newBoot bool) {
	twin = s.fork()
	newBoot = r.IntN(2) == 0
	s.restart(newBoot, time.Duration(r.IntN(3)-1)*time.Hour)
	s.events, twin.events = nil, nil
	return twin, newBoot
}

func TestRestartTakesNothingOffAndForgetsNothing(t *testing.T) {
	tainted, damped, spent := 0, 0, 0
	for seed := range uint64(quick(150)) {
		r := random(seed)
		s := past(settings(r), r)
		twin, newBoot := restarted(s, r)
		before := s.read.Taints
		writes := s.writes
		s.step(decide.Inputs{})
		if !taints.Equal(before, s.read.Taints) {
			t.Fatalf("seed %d: the restart changed the taints from %v to %v", seed, before, s.read.Taints)
		}
		if len(before) > 0 {
			tainted++
		}
		if fresh := newSim(s.cfg).state; twin.state.Tokens(s.cfg, twin.now) < fresh.Tokens(s.cfg, twin.now) {
			spent++
		}
		for _, c := range names() {
			if s.state.Level(c) != twin.state.Level(c) || s.state.Penalty(c) != twin.state.Penalty(c) {
				t.Fatalf("seed %d: %s: level and penalty became %s %g, were %s %g", seed, c,
					s.state.Level(c), s.state.Penalty(c), twin.state.Level(c), twin.state.Penalty(c))
			}
			if s.state.Penalty(c) > 1 {
				damped++
			}
		}
		if newBoot {
			if a, b := s.state.Tokens(s.cfg, s.now), twin.state.Tokens(s.cfg, twin.now); a > b {
				t.Fatalf("seed %d: a reboot made %d tokens of %d", seed, a, b)
			}
			continue
		}
		if s.writes > writes+1 {
			t.Fatalf("seed %d: a restart in the same boot made %d writes; one takes the record over", seed, s.writes-writes)
		}
		if a, b := s.state.Tokens(s.cfg, s.now), twin.state.Tokens(s.cfg, twin.now); a != b {
			t.Fatalf("seed %d: %d tokens became %d", seed, b, a)
		}
		if a, b := s.state.NextToken(s.cfg, s.now).Sub(s.now), twin.state.NextToken(s.cfg, twin.now).Sub(twin.now); a != b {
			t.Fatalf("seed %d: the next token in %s, before the restart in %s", seed, a, b)
		}
		c := probes.MemoryPressure
		if a, b := s.now.Sub(s.state.SetAt(c)), twin.now.Sub(twin.state.SetAt(c)); !twin.state.SetAt(c).IsZero() && a != b {
			t.Fatalf("seed %d: set %s ago became %s ago", seed, b, a)
		}
	}
	t.Logf("of %d restarts: %d with taints, %d with damping, %d with tokens spent", quick(150), tainted, damped, spent)
}

// TestRestartNeverDecidesEarlier plays the same samples to both twins until the
// one that was not restarted sets or clears.
func TestRestartNeverDecidesEarlier(t *testing.T) {
	later := 0
	for seed := range uint64(quick(300)) {
		r := random(seed)
		s := past(settings(r), r)
		twin, newBoot := restarted(s, r)
		if newBoot {
			twin.now = twin.now.Add(30 * time.Second) // as long as the host has been up
		}
		symbols := []string{"ok", "ok", "near", "bad", "bad", "certain", "critical", "unknown"}
		for n := 0; len(twin.events) == 0 && n < 100; n++ {
			symbol := symbols[r.IntN(len(symbols))]
			for range 1 + r.IntN(r.IntN(400)+2) {
				o := sample(probes.MemoryPressure, symbol)
				twin.after(2*time.Second, o)
				s.after(2*time.Second, o)
				if early := decided(s); early && !decided(twin) {
					t.Fatalf("seed %d: restarted: %v, not restarted: %v", seed, s.events, twin.events)
				}
				if decided(twin) {
					break
				}
			}
		}
		if decided(twin) && !decided(s) {
			later++
		}
	}
	t.Logf("%d of %d restarts delayed the next decision", later, quick(300))
}

// decided reports whether anything was set or cleared. A step down from
// Critical is neither.
func decided(s *sim) bool {
	for _, e := range s.events {
		if e.rises() || e.clears() {
			return true
		}
	}
	return false
}

// TestRestartDelaysByAtMostOneWait: with samples of one kind after the restart
// the decision comes at most a window or a clearAfter later. A reboot may have
// to wait for a token besides, since nobody knows how long it took.
func TestRestartDelaysByAtMostOneWait(t *testing.T) {
	worst := map[string]time.Duration{}
	for seed := range uint64(quick(300)) {
		r := random(seed)
		s := past(settings(r), r)
		twin, newBoot := restarted(s, r)
		const period = 2 * time.Second
		symbol := []string{"ok", "bad"}[r.IntN(2)]
		begin, twinBegin := s.now, twin.now
		memory := memoryDebounce(s.cfg)
		bound := time.Duration(memory.Samples) * period
		if symbol == "ok" {
			d := decide.Debouncer{Penalty: twin.state.Penalty(probes.MemoryPressure)}
			bound = d.ClearAfter(memory) + 2*period
		}
		if newBoot {
			bound += s.cfg.WriteBudget.Interval.Duration
		}
		for !decided(twin) && twin.now.Sub(twinBegin) < 5*time.Hour {
			twin.after(period, sample(probes.MemoryPressure, symbol))
			s.after(period, sample(probes.MemoryPressure, symbol))
		}
		if !decided(twin) {
			continue
		}
		reference := twin.now.Sub(twinBegin)
		for !decided(s) && s.now.Sub(begin) <= reference+bound {
			s.after(period, sample(probes.MemoryPressure, symbol))
		}
		if !decided(s) {
			t.Fatalf("seed %d, new boot %t, %s: more than %s later than %s", seed, newBoot, symbol, bound, reference)
		}
		worst[symbol] = max(worst[symbol], s.now.Sub(begin)-reference)
	}
	t.Logf("largest delay: %v", worst)
}
