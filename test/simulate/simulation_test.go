package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
)

// known is what must come out of an input for one rule, worked out by hand.
type known struct {
	changes, seen, of                      int
	tainted, delay, missed, falselyTainted float64 // seconds
}

// none stands for the delay of a rule that has not seen anything.
const none = -1

// TestKnownInputs plays two hours of one condition. Memory is sampled every
// second, and two bad samples of three set; the network every four seconds, and
// three of five set. 120 s of good samples clear.
func TestKnownInputs(t *testing.T) {
	for name, c := range map[string]struct {
		rows              string
		followUp          bool
		configure         func(*config.Config)
		taintlet, kubelet known
	}{
		"ten minutes bad": {
			rows: "605,MemoryPressure,Degraded\n1205,MemoryPressure,OK",
			// Samples at 605 and 606 set; every sample from 1205 to 1325 is good.
			taintlet: known{changes: 2, seen: 1, of: 1, tainted: 719, delay: 1, missed: 1, falselyTainted: 120},
			// The sample at 610 sets; the last bad one is at 1200, 1500 clears.
			kubelet: known{changes: 2, seen: 1, of: 1, tainted: 890, delay: 5, missed: 5, falselyTainted: 295},
		},
		"half a second is seen by nobody": {
			rows:     "605,MemoryPressure,Degraded\n605.5,MemoryPressure,OK",
			taintlet: known{of: 1, delay: none, missed: 0.5},
			kubelet:  known{of: 1, delay: none, missed: 0.5},
		},
		"a burst between two samples of the kubelet": {
			rows:     "601,MemoryPressure,Degraded\n604,MemoryPressure,OK",
			taintlet: known{changes: 2, seen: 1, of: 1, tainted: 122, delay: 1, missed: 1, falselyTainted: 120},
			kubelet:  known{of: 1, delay: none, missed: 3},
		},
		"proof needs no second sample": {
			rows:     "605,MemoryPressure,Critical,certain\n700,MemoryPressure,OK",
			taintlet: known{changes: 2, seen: 1, of: 1, tainted: 215, delay: 0, missed: 0, falselyTainted: 120},
			kubelet:  known{changes: 2, seen: 1, of: 1, tainted: 380, delay: 5, missed: 5, falselyTainted: 290},
		},
		"the second of two bursts clears later": {
			rows: "605,MemoryPressure,Degraded\n615,MemoryPressure,OK\n800,MemoryPressure,Degraded\n810,MemoryPressure,OK",
			// 606 to 735; then 801 until 120 s · 2^(2^(-195/3600)) = 233.95 s
			// after 810, seen at 1044.
			taintlet: known{changes: 4, seen: 2, of: 2, tainted: 129 + 243, delay: 1, missed: 2, falselyTainted: 120 + 234},
			// 610 until 5 min after the sample at 800, through both bursts.
			kubelet: known{changes: 2, seen: 2, of: 2, tainted: 490, delay: 5, missed: 5, falselyTainted: 475},
		},
		"unknown neither sets nor clears": {
			rows: "605,MemoryPressure,Degraded\n620,MemoryPressure,Unknown\n1220,MemoryPressure,OK",
			// Good samples count from 1220 on.
			taintlet: known{changes: 2, seen: 1, of: 1, tainted: 734, delay: 1, missed: 1, falselyTainted: 120},
			kubelet:  known{changes: 2, seen: 1, of: 1, tainted: 300, delay: 5, missed: 5},
		},
		"not past the threshold that clears": {
			rows:     "605,MemoryPressure,Degraded\n615,MemoryPressure,OK,near\n1000,MemoryPressure,OK",
			taintlet: known{changes: 2, seen: 1, of: 1, tainted: 514, delay: 1, missed: 1, falselyTainted: 505},
			kubelet:  known{changes: 2, seen: 1, of: 1, tainted: 300, delay: 5, missed: 5, falselyTainted: 295},
		},
		"network, sampled every 4 s": {
			rows: "605,NetworkUnavailable,Degraded\n700,NetworkUnavailable,OK",
			// Samples at 608, 612 and 616 set.
			taintlet: known{changes: 2, seen: 1, of: 1, tainted: 204, delay: 11, missed: 11, falselyTainted: 120},
			kubelet:  known{changes: 2, seen: 1, of: 1, tainted: 380, delay: 5, missed: 5, falselyTainted: 290},
		},
		"network, with follow-ups": {
			rows:     "605,NetworkUnavailable,Degraded\n700,NetworkUnavailable,OK",
			followUp: true,
			// Samples at 608, 609 and 610 set; from there on every 4 s.
			taintlet: known{changes: 2, seen: 1, of: 1, tainted: 212, delay: 5, missed: 5, falselyTainted: 122},
			kubelet:  known{changes: 2, seen: 1, of: 1, tainted: 380, delay: 5, missed: 5, falselyTainted: 290},
		},
		"no rule, no taint": {
			rows:      "605,MemoryPressure,Degraded\n1205,MemoryPressure,OK",
			configure: func(cfg *config.Config) { cfg.Rules = nil },
			taintlet:  known{of: 1, delay: none, missed: 600},
			kubelet:   known{changes: 2, seen: 1, of: 1, tainted: 890, delay: 5, missed: 5, falselyTainted: 295},
		},
		"a clear that must wait for its token": {
			rows: "605,MemoryPressure,Degraded\n615,MemoryPressure,OK\n800,MemoryPressure,Degraded\n810,MemoryPressure,OK",
			configure: func(cfg *config.Config) {
				hold(cfg, 2*time.Minute)
				cfg.WriteBudget = decide.WriteBudget{Burst: 1, Interval: decide.Duration{Duration: time.Hour}}
			},
			// 606 to 735 spends the token; the next comes an hour later.
			taintlet: known{changes: 4, seen: 2, of: 2, tainted: 129 + 3534, delay: 1, missed: 2, falselyTainted: 120 + 3525},
			kubelet:  known{changes: 2, seen: 2, of: 2, tainted: 490, delay: 5, missed: 5, falselyTainted: 475},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := scripted(t, c.rows)
			in.duration = 2 * time.Hour
			cfg := config.Default()
			if c.configure != nil {
				c.configure(cfg)
			}
			r := newReport(cfg, in, c.followUp)
			if len(r.Conditions) != 2 {
				t.Fatalf("figures of %d rules and conditions, want 2", len(r.Conditions))
			}
			for i, want := range []known{c.taintlet, c.kubelet} {
				if got := knownOf(r.Conditions[i]); got != want {
					t.Errorf("%s\n got %+v\nwant %+v", r.Conditions[i].Rule, got, want)
				}
			}
		})
	}
}

// row is a sample that holds from a time on.
type row struct {
	at     time.Duration
	sample sample
}

// rows are those of one condition, in order of time. It is OK before the first.
type rows struct {
	left    []row
	current sample
}

func (r *rows) at(now time.Duration, _ answers) (sample, time.Duration) {
	for len(r.left) > 0 && r.left[0].at <= now {
		r.current, r.left = r.left[0].sample, r.left[1:]
	}
	if len(r.left) == 0 {
		return r.current, forever
	}
	return r.current, r.left[0].at
}

// scripted reads lines of seconds, condition and level. A fourth column may say
// that the sample is certain, or near the threshold.
func scripted(t *testing.T, text string) *input {
	t.Helper()
	in := &input{sources: map[probes.Condition]source{}}
	for line := range strings.Lines(text) {
		columns := append(strings.Split(strings.TrimSpace(line), ","), "")
		var level probes.Level
		seconds, errTime := strconv.ParseFloat(columns[0], 64)
		if err := errors.Join(errTime, level.UnmarshalText([]byte(columns[2]))); err != nil {
			t.Fatal(err)
		}
		name := probes.Condition(columns[1])
		known, _ := in.sources[name].(*rows)
		if known == nil {
			known = &rows{current: fine()}
			in.sources[name] = known
		}
		known.left = append(known.left, row{time.Duration(seconds * float64(time.Second)), sample{level, columns[3] == "certain", columns[3] == "near"}})
	}
	return in
}

func knownOf(f figures) known {
	k := known{
		changes: f.Changes, seen: f.Seen, of: f.BadStretches, delay: none,
		tainted: time.Duration(f.Tainted).Seconds(), missed: time.Duration(f.Missed).Seconds(), falselyTainted: time.Duration(f.False).Seconds(),
	}
	if f.DelayMedian != nil {
		k.delay = time.Duration(*f.DelayMedian).Seconds()
	}
	return k
}

// hold takes damping away: every clear comes after the same time.
func hold(cfg *config.Config, d time.Duration) {
	for _, c := range cfg.Conditions {
		debounce := &c.Common().Debounce
		debounce.ClearAfter.Duration, debounce.MaxClearAfter.Duration = d, d
	}
}

// made simulates made-up input.
func made(t *testing.T, cfg *config.Config, name string, duration time.Duration, conditions ...probes.Condition) *report {
	t.Helper()
	names := make([]string, 0, len(conditions))
	for _, c := range conditions {
		names = append(names, string(c))
	}
	in := synthesize(name, names, parameters{seed: 1, flapPeriod: 10 * time.Minute, flapDuty: 0.3})
	in.duration = duration
	return newReport(cfg, in, false)
}

// TestAdversaryIsDamped lets the input fail 2 s after every clear, for an hour.
func TestAdversaryIsDamped(t *testing.T) {
	damped := made(t, config.Default(), adversary, time.Hour, probes.MemoryPressure).All[0].Changes
	fixed := config.Default()
	hold(fixed, 5*time.Minute)
	fixed.WriteBudget = decide.WriteBudget{Burst: 100, Interval: decide.Duration{Duration: time.Second}}
	undamped := made(t, fixed, adversary, time.Hour, probes.MemoryPressure).All[0].Changes
	kubelet := made(t, config.Default(), kubeletAdversary, time.Hour, probes.MemoryPressure).All[1].Changes
	t.Logf("changes in the first hour: %d by default, %d with a fixed hold of 5 min, %d of the kubelet's rule against its own adversary", damped, undamped, kubelet)
	if damped > 11 {
		t.Errorf("%d changes by default, want at most 11", damped)
	}
	if damped < 8 {
		t.Errorf("%d changes by default: the adversary does not do its worst", damped)
	}
	if undamped < 22 || undamped > 24 {
		t.Errorf("%d changes with a fixed hold of 5 min, want about 24", undamped)
	}
	if kubelet < 22 || kubelet > 24 {
		t.Errorf("%d changes of the kubelet's rule, want about 24", kubelet)
	}
}

// TestWriteBoundHolds does its worst to all four conditions for six hours, with
// damping and without any hold at all.
func TestWriteBoundHolds(t *testing.T) {
	restless := config.Default()
	hold(restless, 0)
	for name, cfg := range map[string]*config.Config{"default": config.Default(), "no hold": restless} {
		for _, input := range []string{mixed, adversary, flap, random, spike, kubeletAdversary} {
			t.Run(name+" "+input, func(t *testing.T) {
				r := made(t, cfg, input, 6*time.Hour, config.Default().Names()...)
				ours := r.All[0]
				t.Logf("%d changes of at most %d, %d within an hour", ours.Changes, r.Bound, ours.MostInAnHour)
				if r.Bound != 4*(2*(3+9)+1) {
					t.Errorf("the bound is %d, want 100", r.Bound)
				}
				if ours.Changes > r.Bound {
					t.Errorf("%d changes, want at most %d", ours.Changes, r.Bound)
				}
				if most := bound(cfg.WriteBudget, time.Hour); ours.MostInAnHour > most {
					t.Errorf("%d changes within an hour, want at most %d", ours.MostInAnHour, most)
				}
				if r.Writes.Node > ours.Changes {
					t.Errorf("%d writes of the Node for %d changes", r.Writes.Node, ours.Changes)
				}
				if most := 2*6*60 + ours.Changes; r.Writes.Told > most {
					t.Errorf("%d writes of what people are told, want at most 2 a minute", r.Writes.Told)
				}
			})
		}
	}
}

// TestQuietHostIsLeftAlone: a healthy host costs its heartbeats.
func TestQuietHostIsLeftAlone(t *testing.T) {
	cfg := config.Default()
	r := made(t, cfg, quiet, time.Hour, config.Default().Names()...)
	// One report at the start, then every 5 min: at 5, 10, ... 55.
	if want := (writes{Node: 0, Status: 12}); r.Writes != want {
		t.Errorf("writes %+v, want %+v", r.Writes, want)
	}
	cfg.Heartbeat.Duration = 0
	if r := made(t, cfg, quiet, time.Hour, config.Default().Names()...); r.Writes.Status != 1 {
		t.Errorf("%d writes of the status without a heartbeat, want 1", r.Writes.Status)
	}
}

// TestKubeletRule takes one sample after the other.
func TestKubeletRule(t *testing.T) {
	var k kubeletRule
	for _, step := range []struct {
		at    time.Duration
		level probes.Level
		want  bool
	}{
		{0, probes.OK, false},
		{10 * time.Second, probes.Degraded, true},
		{20 * time.Second, probes.OK, true},
		{30 * time.Second, probes.Critical, true},
		{40 * time.Second, probes.Unknown, true},
		{320 * time.Second, probes.OK, true},
		{330 * time.Second, probes.OK, false},
		{340 * time.Second, probes.Unknown, false},
	} {
		if k = k.next(sample{level: step.level}, step.at); k.tainted != step.want {
			t.Errorf("%s %s: tainted %t, want %t", step.at, step.level, k.tainted, step.want)
		}
	}
}

// TestRandomIsRepeatable: the same seed, the same input; another, another.
func TestRandomIsRepeatable(t *testing.T) {
	run := func(seed uint64) track {
		in := synthesize(random, []string{"PIDPressure"}, parameters{seed: seed})
		in.duration = time.Hour
		return simulate(config.Default(), in, false).courses[0].input
	}
	if !slices.Equal(run(1), run(1)) {
		t.Error("seed 1 gave two different inputs")
	}
	if slices.Equal(run(1), run(2)) {
		t.Error("seeds 1 and 2 gave the same input")
	}
}
