package decide_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
)

// start plays a short past, so that the next samples meet any state.
func start(r *rand.Rand) *sim {
	cfg := settings(r)
	eachDebounce(cfg, func(d *decide.Debounce) { // short waits: more happens
		d.ClearAfter.Duration, d.CriticalAfter.Duration = 20*time.Second, 10*time.Second
	})
	s := newSim(cfg)
	for range r.IntN(2) * r.IntN(300) {
		s.after(time.Second, sample(probes.MemoryPressure, anySample(r)))
	}
	s.events = nil
	return s
}

// runs returns samples that come in runs, as they do.
func runs(r *rand.Rand, n int) []string {
	symbols := make([]string, 0, n)
	for len(symbols) < n {
		symbol := anySample(r)
		if r.IntN(2) == 0 {
			symbol = "ok"
		}
		for range 1 + r.IntN(30) {
			symbols = append(symbols, symbol)
		}
	}
	return symbols[:n]
}

// worse returns a sample at least as bad: good ones may become bad ones.
func worse(symbol string, r *rand.Rand) string {
	order := []string{"ok", "near", "bad", "certain", "critical", "certain critical"}
	if symbol != "ok" && symbol != "near" || r.IntN(4) > 0 {
		return symbol
	}
	return order[2+r.IntN(4)]
}

// first returns when the first event of a kind came; false: never.
func first(s *sim, kind func(event) bool) (time.Time, bool) {
	for _, e := range s.events {
		if kind(e) {
			return e.at, true
		}
	}
	return time.Time{}, false
}

// TestWorseNeverClearsSoonerNorSetsLater: of two hosts in the same state the
// one that samples worse at some moments is set no later and clears no sooner.
func TestWorseNeverClearsSoonerNorSetsLater(t *testing.T) {
	sets, clears := 0, 0
	isSet := func(e event) bool { return e.from == probes.OK }
	for seed := range uint64(quick(1500)) {
		r := random(seed)
		s := start(r)
		other := s.fork()
		wasOK := s.state.Level(probes.MemoryPressure) == probes.OK
		for _, symbol := range runs(r, 200) {
			s.after(time.Second, sample(probes.MemoryPressure, symbol))
			other.after(time.Second, sample(probes.MemoryPressure, worse(symbol, r)))
		}
		kind, name := event.clears, "clear"
		if wasOK {
			kind, name = isSet, "set"
		}
		at, happened := first(s, kind)
		otherAt, otherHappened := first(other, kind)
		switch {
		case wasOK && happened && (!otherHappened || otherAt.After(at)),
			!wasOK && otherHappened && (!happened || otherAt.Before(at)):
			t.Fatalf("seed %d: first %s %v %v, with worse samples %v %v", seed, name, at, happened, otherAt, otherHappened)
		case wasOK && happened:
			sets++
		case happened:
			clears++
		}
	}
	t.Logf("%d sets and %d clears compared", sets, clears)
}

// TestUnknownChangesNothing: samples that could not tell, put in anywhere, never
// cause a change of level or a write, and sets come exactly when they would
// have come. The one exception is Critical, unknown for five minutes.
func TestUnknownChangesNothing(t *testing.T) {
	put, sets, stepsDown := 0, 0, 0
	for seed := range uint64(quick(1500)) {
		r := random(seed)
		s := start(r)
		with := s.fork()
		same := true // until a clear comes later with unknown samples
		for _, symbol := range runs(r, 200) {
			if r.IntN(5) == 0 {
				n := 1 + r.IntN(5)
				total := time.Duration(r.Int64N(int64(5 * time.Minute)))
				for range n {
					before, writes := len(with.events), with.writes
					with.after(total/time.Duration(n), sample(probes.MemoryPressure, "unknown"))
					put++
					if len(with.events) != before || with.writes != writes {
						if len(with.events) == before || with.events[before].from != probes.Critical {
							t.Fatalf("seed %d: an unknown sample caused %v, %d writes", seed, with.events[before:], with.writes-writes)
						}
						stepsDown++
						same = false
					}
				}
				s.now = s.now.Add(total / time.Duration(n) * time.Duration(n))
			}
			before, beforeWith := len(s.events), len(with.events)
			s.after(time.Second, sample(probes.MemoryPressure, symbol))
			with.after(time.Second, sample(probes.MemoryPressure, symbol))
			if !same {
				continue
			}
			did, didWith := s.events[before:], with.events[beforeWith:]
			set := len(did) > 0 && did[0].from == probes.OK
			setWith := len(didWith) > 0 && didWith[0].from == probes.OK
			if set != setWith {
				t.Fatalf("seed %d: without unknown samples %v, with them %v", seed, did, didWith)
			}
			if set {
				sets++
			}
			if len(didWith) > 0 && len(did) == 0 {
				t.Fatalf("seed %d: only with unknown samples: %v", seed, didWith)
			}
			same = len(did) == len(didWith)
		}
	}
	t.Logf("%d unknown samples put in, %d sets at the same sample, %d steps down from Critical", put, sets, stepsDown)
}

func TestUnknownStepsCriticalDownAfterFiveMinutes(t *testing.T) {
	s := newSim(withCritical(config.Default().Policy()))
	for range 100 {
		s.after(time.Second, sample(probes.MemoryPressure, "critical"))
	}
	if s.state.Level(probes.MemoryPressure) != probes.Critical {
		t.Fatal("not Critical")
	}
	begin := s.now.Add(time.Second)
	for s.state.Level(probes.MemoryPressure) == probes.Critical && s.now.Sub(begin) < time.Hour {
		s.after(time.Second, sample(probes.MemoryPressure, "unknown"))
	}
	if took := s.now.Sub(begin); took != 5*time.Minute {
		t.Errorf("stepped down after %s", took)
	}
}
