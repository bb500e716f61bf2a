package decide_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
)

// Damping alone: one condition, no write budget. The two bounds are
// 11 changes in the first hour, 6 in each later one, for a
// host that fails soon after every clear; 12 in any hour for any host.

// flapper is a host that is good until a while after the agent believed it.
// It is driven through Debounce itself: 50 million samples in a few seconds.
type flapper struct {
	debounce decide.Debouncer
	cfg      decide.Debounce
	now      time.Time
	changes  []time.Duration // since the start
}

func newFlapper(cfg decide.Debounce) *flapper {
	return &flapper{debounce: decide.Debouncer{Level: probes.OK}, cfg: cfg, now: epoch()}
}

func (f *flapper) sample(o probes.Observation, period time.Duration) {
	f.now = f.now.Add(period)
	f.debounce = f.debounce.Next(o, f.now)
	if to := f.debounce.Target(f.cfg, f.now); to != f.debounce.Level {
		f.debounce = f.debounce.Enter(to, f.cfg, f.now)
		f.changes = append(f.changes, f.now.Sub(epoch()))
	}
}

// run fails for as long as bad says, a pause after every clear; both may be
// different each time.
func (f *flapper) run(length, period time.Duration, pause, bad func() time.Duration) {
	good, certain := sample(probes.MemoryPressure, "ok"), sample(probes.MemoryPressure, "certain")
	var since, healthy, ill time.Duration
	healthy = pause()
	for f.now.Sub(epoch()) < length {
		since += period
		was := f.debounce.Level
		switch {
		case was == probes.OK && since < healthy:
			f.sample(good, period)
		case was == probes.OK || since < ill:
			f.sample(certain, period)
		default:
			f.sample(good, period)
		}
		switch {
		case f.debounce.Level == was:
		case was == probes.OK:
			since, ill = 0, bad()
		default:
			since, healthy = 0, pause()
		}
	}
}

// inHour counts the changes from the start of each hour on.
func (f *flapper) inHours(n int) []int {
	hours := make([]int, n)
	for _, at := range f.changes {
		if h := int(at / time.Hour); h < n {
			hours[h]++
		}
	}
	return hours
}

// worstHour is the largest number of changes in any hour, wherever it begins.
func (f *flapper) worstHour() int {
	worst, first := 0, 0
	for i, at := range f.changes {
		for at-f.changes[first] >= time.Hour {
			first++
		}
		worst = max(worst, i-first+1)
	}
	return worst
}

func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

func upTo(r *rand.Rand, d time.Duration) func() time.Duration {
	return func() time.Duration { return time.Duration(r.Int64N(int64(d) + 1)) }
}

func TestDampingBoundsAHostThatFailsAfterEveryClear(t *testing.T) {
	r := random(1)
	for name, pause := range map[string]func() time.Duration{
		"0s": always(0), "1s": always(time.Second), "2s": always(2 * time.Second), "5s": always(5 * time.Second),
		"random to 10s": upTo(r, 10*time.Second), "random to 1m": upTo(r, time.Minute),
	} {
		f := newFlapper(memoryDebounce(config.Default().Policy()))
		f.run(24*time.Hour, time.Second, pause, always(0))
		hours := f.inHours(24)
		t.Logf("fails %s after every clear: changes by hour %v, worst hour %d", name, hours, f.worstHour())
		for h, n := range hours {
			if bound := map[bool]int{true: 11, false: 6}[h == 0]; n > bound {
				t.Errorf("fails %s after every clear: %d changes in hour %d, more than %d", name, n, h, bound)
			}
		}
	}
}

// TestDampingByStep is the same through Step, write budget wide open, so that
// nothing stands between Debounce and the Node.
func TestDampingByStep(t *testing.T) {
	cfg := config.Default().Policy()
	cfg.WriteBudget = decide.WriteBudget{Burst: 1 << 20, Interval: cfg.WriteBudget.Interval}
	s := newSim(cfg)
	since := 0
	for range 24 * 3600 {
		before := len(s.events)
		symbol := "ok"
		if since++; s.state.Level(probes.MemoryPressure) == probes.OK && since >= 2 {
			symbol = "certain"
		}
		s.after(time.Second, sample(probes.MemoryPressure, symbol))
		if len(s.events) > before {
			since = 0
		}
	}
	hours := make([]int, 24)
	for _, e := range s.events {
		hours[int(e.at.Sub(epoch())/time.Hour)%24]++
	}
	t.Logf("changes by hour: %v", hours)
	for h, n := range hours {
		if h == 0 && n > 11 || h > 0 && n > 6 {
			t.Errorf("%d changes in hour %d", n, h)
		}
	}
	if s.writes != len(s.events) {
		t.Errorf("%d writes for %d changes of one condition", s.writes, len(s.events))
	}
}

// TestDampingFindsNoWorseHour searches strategies: how long the host stays
// good, how long it is bad, quiet hours before, period.
func TestDampingFindsNoWorseHour(t *testing.T) {
	const bound = 12
	worst, worstSeed := 0, uint64(0)
	for seed := range uint64(quick(10_000)) {
		f := newFlapper(memoryDebounce(config.Default().Policy()))
		strategy(f, random(seed))
		if n := f.worstHour(); n > worst {
			worst, worstSeed = n, seed
		}
	}
	fixed := memoryDebounce(config.Default().Policy())
	fixed.ClearAfter.Duration, fixed.MaxClearAfter.Duration = 5*time.Minute, 5*time.Minute
	f := newFlapper(fixed)
	f.run(24*time.Hour, time.Second, always(0), always(0))
	t.Logf("worst hour of %d strategies: %d changes (seed %d); with a fixed hold of 5 min: %d", quick(10_000), worst, worstSeed, f.worstHour())
	if worst > bound {
		t.Errorf("seed %d: %d changes in an hour, more than %d", worstSeed, worst, bound)
	}
}

// strategy plays 3 hours: of one kind, or of a new kind each time.
func strategy(f *flapper, r *rand.Rand) {
	period := time.Duration(1000+r.IntN(5000)) * time.Millisecond
	pauses := []time.Duration{0, time.Second, 10 * time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute}
	pause := upTo(r, pauses[r.IntN(len(pauses))])
	if r.IntN(2) == 0 { // now and then it lets the penalty decay
		short, long := pause, upTo(r, 90*time.Minute)
		often := 2 + r.IntN(8)
		pause = func() time.Duration {
			if r.IntN(often) == 0 {
				return long()
			}
			return short()
		}
	}
	bad := always(0)
	switch r.IntN(4) {
	case 0:
		bad = upTo(r, time.Minute)
	case 1: // one long illness first: its set is long forgotten when it ends
		first := true
		bad = func() time.Duration {
			if first {
				first = false
				return time.Duration(r.Int64N(int64(2 * time.Hour)))
			}
			return 0
		}
	}
	f.run(3*time.Hour, period, pause, bad)
}

func TestAfterADayTheWaitIsShortAgain(t *testing.T) {
	for seed := range uint64(quick(200)) {
		r := random(seed)
		f := newFlapper(memoryDebounce(config.Default().Policy()))
		f.run(6*time.Hour, time.Second, upTo(r, 10*time.Second), always(0))
		good, bad := sample(probes.MemoryPressure, "ok"), sample(probes.MemoryPressure, "certain")
		for f.debounce.Level != probes.OK {
			f.sample(good, time.Second)
		}
		f.sample(good, 24*time.Hour)
		f.sample(bad, time.Second)
		set := f.now
		for f.debounce.Level != probes.OK {
			f.sample(good, time.Second)
		}
		if took := f.now.Sub(set); took > f.cfg.ClearAfter.Duration+2*time.Second {
			t.Fatalf("seed %d: cleared after %s", seed, took)
		}
	}
}
