package memory

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/pressure"
	"github.com/taintlet/taintlet/test/probetest"
)

var someMemory = Thresholds{AvailablePercent: 5, AvailableBytes: 100 << 20, ClearFactor: 1.5}

const mib, gib = 1 << 20, 1 << 30

// allMemory has every threshold, as they are by default.
var allMemory = Thresholds{
	AvailablePercent: 5, AvailableBytes: 100 * mib,
	StalledPercent: 15, StalledAvailablePercent: 15, CriticalStalledPercent: 40,
	ClearFactor: 1.5,
}

// amounts is a sample of a host that does not measure pressure.
func amounts(available, held uint64) sample { return sample{available: available, held: held} }

// ofHost is a sample of a host with 100 GiB, of which that percentage is
// available.
func ofHost(percent float64) sample {
	available := uint64(percent * gib)
	return amounts(available, 100*gib-available)
}

// stalledFor gives a sample totals of pressure.
func (s sample) stalledFor(some, full time.Duration) sample {
	s.stalls, s.measured = pressure.Totals{Some: some, Full: full}, true
	return s
}

// judged judges a sample that comes a second after another one, with the
// stalls, in percent, that there were between them.
func (t Thresholds) judged(s sample, some, full float64) probes.Observation {
	ofSecond := func(percent float64) time.Duration { return time.Duration(percent * float64(10*time.Millisecond)) }
	return t.after(s.stalledFor(time.Hour, time.Minute),
		s.stalledFor(time.Hour+ofSecond(some), time.Minute+ofSecond(full)), time.Second)
}

func (s sample) takenAt(at time.Time) sample {
	s.at = at
	return s
}

// after judges a sample that comes some time after another one.
func (t Thresholds) after(prev, cur sample, dt time.Duration) probes.Observation {
	start := time.Unix(1000, 0)
	now := cur.takenAt(start.Add(dt))
	return t.judge(viewOf(past{prev.takenAt(start)}.comparable(now), now))
}

// alone judges the first sample.
func (t Thresholds) alone(s sample) probes.Observation {
	return t.judge(viewOf(nil, s.takenAt(time.Unix(1000, 0))))
}

func TestMemoryJudgesTheLevel(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name            string
		t               Thresholds
		s               sample
		level           probes.Level
		reason, message string
		severity        int
	}{
		{"plenty", someMemory, amounts(8*gib, 8*gib), probes.OK, "MemorySufficient",
			"available 8 GiB of 16 GiB (50.0 %), threshold 5 %", 0},
		{"low", someMemory, amounts(412*mib, 15562*mib), probes.Degraded, "MemoryLow",
			"available 412 MiB of 15.6 GiB (2.5 %), threshold 5 %", 74},
		{"at the threshold", someMemory, amounts(5*gib, 95*gib), probes.OK, "MemoryNearThreshold",
			"available 5 GiB of 100 GiB (5.0 %), threshold 5 %", 50},
		{"a byte below the threshold", someMemory, amounts(5*gib-1, 95*gib+1), probes.Degraded, "MemoryLow", "(4.9 %)", 50},
		{"a byte below the clear threshold", someMemory, amounts(75*gib/10-1, 925*gib/10+1), probes.OK, "MemoryNearThreshold", "(7.4 %)", 0},
		{"at the clear threshold", someMemory, amounts(75*gib/10, 925*gib/10), probes.OK, "MemorySufficient", "(7.5 %)", 0},
		{"the bytes decide on a small host", someMemory, amounts(99*mib, 900*mib), probes.Degraded, "MemoryLow", "threshold 100 MiB", 50},
		{"a small host when idle", someMemory, amounts(130*mib, 350*mib), probes.OK, "MemorySufficient", "(27.0 %), threshold 100 MiB", 0},
		{"a small host, at the threshold that clears", someMemory, amounts(124*mib, 356*mib), probes.OK, "MemorySufficient", "", 0},
		{"a small host, below it", someMemory, amounts(124*mib-1, 356*mib+1), probes.OK, "MemoryNearThreshold", "", 0},
		{"a host of 1 GiB, below the usual one", someMemory, amounts(150*mib-1, gib-150*mib+1), probes.OK, "MemoryNearThreshold", "", 0},
		{"nothing", someMemory, amounts(0, gib), probes.Degraded, "MemoryLow", "available 0 B of 1 GiB (0.0 %)", 100},
		{"no thresholds", Thresholds{}, amounts(0, gib), probes.OK, "MemorySufficient", "threshold 0 %", 0},
		{"as large as it gets", someMemory, amounts(1<<63, 1<<63), probes.OK, "MemorySufficient", "8 EiB of 16 EiB", 0},
		{"the percentage is of at most so much", allMemory, amounts(164*gib, 3890*gib), probes.OK, "MemorySufficient",
			"available 164 GiB of 3.96 TiB (4.0 %), threshold 12.8 GiB", 0},
		{"low even so", allMemory, amounts(12*gib, 4000*gib), probes.Degraded, "MemoryLow", "(0.2 %), threshold 12.8 GiB", 53},
		{"as much as counts", allMemory, amounts(128*gib/10-1, 256*gib-128*gib/10+1), probes.Degraded, "MemoryLow", "threshold 5 %", 50},
		{"with a ZFS cache", allMemory, sample{available: 3 * gib, held: 13 * gib, arc: 2 * gib}, probes.OK, "MemorySufficient",
			"available 3 GiB of 16 GiB (18.7 %), 2 GiB of it ZFS cache, threshold 5 %", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := test.t.alone(test.s)
			probetest.Check(t, o, test.level, test.reason, test.message)
			if o.Severity != test.severity {
				t.Errorf("severity %d, want %d", o.Severity, test.severity)
			}
		})
	}
}

// With an early threshold, samples that are OK are as severe as that says, and stalls say
// nothing until they are Degraded.
func TestMemoryJudgesTheEarlyThreshold(t *testing.T) {
	t.Parallel()
	early := allMemory
	early.EarlyPercent = 20
	for percent, want := range map[float64]int{50: 0, 25: 12, 22: 20, 20: 25, 19: 26, 5.1: 48, 4: 60} {
		if o := early.judged(ofHost(percent), 14, 0); o.Severity != want || (o.Level == probes.Degraded) != (percent < 5) {
			t.Errorf("%g %%: %+v, want severity %d", percent, o, want)
		}
	}
	if o := early.judged(ofHost(14), 20, 0); o.Level != probes.Degraded || o.Severity < 50 {
		t.Errorf("stalled: %+v", o)
	}
}

func TestMemoryJudgesCombinations(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                  string
		available, some, full float64 // percent
		level                 probes.Level
		hysteresis            bool
		severity              int
		reason, message       string
	}{
		{"nothing wrong", 50, 0, 0, probes.OK, false, 0, "MemorySufficient",
			"available 50 GiB of 100 GiB (50.0 %), threshold 5 %"},
		{"stalled, with plenty", 50, 100, 100, probes.OK, false, 0, "MemorySufficient", "threshold 5 %; stalled 100 % of the last second"},

		{"stalled at the threshold", 14, 15, 0, probes.Degraded, false, 50, "MemoryStalled",
			"available 14 GiB of 100 GiB (14.0 %), threshold 15 %; stalled 15 % of the last second, threshold 15 %"},
		{"a little less stalled", 14, 14.9, 0, probes.OK, true, 49, "MemoryNearThreshold",
			"available 14 GiB of 100 GiB (14.0 %), threshold 15 %; stalled 14 % of the last second, threshold 15 %"},
		{"stalled two thirds of it", 14, 10, 0, probes.OK, true, 33, "MemoryNearThreshold", ""},
		{"stalled less than that", 14, 9.9, 0, probes.OK, false, 33, "MemorySufficient", "threshold 5 %"},
		{"stalled, at the level", 15, 100, 0, probes.OK, true, 50, "MemoryNearThreshold", "(15.0 %)"},
		{"stalled, at the level that clears", 22.5, 100, 0, probes.OK, false, 0, "MemorySufficient", ""},
		{"stalled, just below it", 22.4, 100, 0, probes.OK, true, 0, "MemoryNearThreshold", ""},
		{"stalled, much", 7.5, 58, 0, probes.Degraded, false, 75, "MemoryStalled", ""},

		{"low", 4, 0, 0, probes.Degraded, false, 60, "MemoryLow", "(4.0 %), threshold 5 %"},
		{"low and stalled", 4, 31, 5, probes.Degraded, false, 60, "MemoryLow", "threshold 5 %; stalled 31 % of the last second"},
		{"critical", 4, 60, 40, probes.Critical, false, 76, "MemoryStalledFully",
			"available 4 GiB of 100 GiB (4.0 %), threshold 5 %; all tasks stalled 40 % of the last second, threshold 40 %"},
		{"almost critical", 4, 60, 39.9, probes.Degraded, false, 76, "MemoryLow", ""},
		{"stalled fully, not low", 5, 60, 60, probes.Degraded, false, 76, "MemoryStalled", ""},
		{"as bad as it gets", 0, 100, 100, probes.Critical, false, 100, "MemoryStalledFully", ""},
		{"a little more than all of the time", 0, 104, 104, probes.Critical, false, 100, "MemoryStalledFully", "stalled 100 %"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := allMemory.judged(ofHost(test.available), test.some, test.full)
			probetest.Check(t, o, test.level, test.reason, test.message)
			if o.Severity != test.severity || o.Hysteresis != test.hysteresis {
				t.Errorf("severity %d, hysteresis %t, want %d, %t", o.Severity, o.Hysteresis, test.severity, test.hysteresis)
			}
		})
	}
}

func TestMemoryThresholdsCanBeOff(t *testing.T) {
	t.Parallel()
	worst := func(t Thresholds) probes.Observation { return t.judged(ofHost(1), 100, 100) }
	for name, test := range map[string]struct {
		off    func(*Thresholds)
		level  probes.Level
		reason string
	}{
		"none":              {func(*Thresholds) {}, probes.Critical, "MemoryStalledFully"},
		"critical":          {func(t *Thresholds) { t.CriticalStalledPercent = 0 }, probes.Degraded, "MemoryLow"},
		"level":             {func(t *Thresholds) { t.AvailablePercent, t.AvailableBytes = 0, 0 }, probes.Degraded, "MemoryStalled"},
		"all but the stall": {func(t *Thresholds) { *t = Thresholds{StalledPercent: 15} }, probes.OK, "MemorySufficient"},
		"all but its level": {func(t *Thresholds) { *t = Thresholds{StalledAvailablePercent: 15} }, probes.OK, "MemorySufficient"},
	} {
		thresholds := allMemory
		test.off(&thresholds)
		o := worst(thresholds)
		if probetest.WellFormed(t, o); o.Level != test.level || o.Reason != test.reason {
			t.Errorf("%s off: %+v", name, o)
		}
	}
}

// Without two samples that can be compared the level alone counts.
func TestMemoryJudgesTheLevelAloneAfterAGap(t *testing.T) {
	t.Parallel()
	before, now := ofHost(14).stalledFor(time.Hour, time.Hour), ofHost(14).stalledFor(time.Hour+time.Second, time.Hour+time.Second)
	for name, test := range map[string]struct {
		prev, cur sample
		dt        time.Duration
	}{
		"first sample":            {sample{}, now, math.MaxInt64},
		"gap":                     {before, now, 31 * time.Second},
		"no time":                 {before, now, 0},
		"less than a second":      {before, now, 999 * time.Millisecond},
		"time runs backwards":     {before, now, -time.Second},
		"some runs backwards":     {now.stalledFor(2*time.Hour, time.Hour), now, time.Second},
		"full runs backwards":     {before.stalledFor(time.Hour, 2*time.Hour), now, time.Second},
		"some grows faster":       {before, before.stalledFor(time.Hour+1100*time.Millisecond, time.Hour), time.Second},
		"full grows faster":       {before, before.stalledFor(time.Hour+time.Second, time.Hour+1100*time.Millisecond), time.Second},
		"pressure has come":       {ofHost(14), now, time.Second},
		"pressure has gone":       {before, ofHost(14), time.Second},
		"pressure was never here": {ofHost(14), ofHost(14), time.Second},
	} {
		o := allMemory.after(test.prev, test.cur, test.dt)
		if probetest.WellFormed(t, o); o.Level != probes.OK || o.Reason != "MemorySufficient" || strings.Contains(o.Message, "stalled") {
			t.Errorf("%s: %+v", name, o)
		}
	}
	long := before.stalledFor(time.Hour+30*time.Second, time.Hour)
	probetest.Check(t, allMemory.after(before, long, 30*time.Second), probes.Degraded, "MemoryStalled", "stalled 100 % of the last 30.0 s")
	probetest.Check(t, allMemory.after(before, now, time.Second), probes.Degraded, "MemoryStalled", "stalled 100 % of the last second")
}

func TestMemoryLevelIsMonotone(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 10 {
		whole := gib + random.Uint64N(1<<40)
		thresholds := Thresholds{AvailablePercent: 1 + 30*random.Float64(), AvailableBytes: random.Uint64N(gib / 2), ClearFactor: 1 + random.Float64()}
		probetest.Monotone(t, func(available uint64) probes.Observation {
			return thresholds.alone(amounts(available, whole-available))
		}, whole)
	}
}

// What is worse in every measure is not judged better in any respect, and no
// second measure makes a host Degraded by itself.
func TestMemoryIsMonotone(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 10))
	for range 100_000 {
		thresholds := allMemory
		thresholds.AvailablePercent = 10 * random.Float64()
		thresholds.StalledPercent, thresholds.CriticalStalledPercent = 1+50*random.Float64(), 1+80*random.Float64()
		thresholds.ClearFactor = 0.5 + 2*random.Float64()
		less, more := 40*random.Float64(), 40*random.Float64()
		some, full := 100*random.Float64(), 100*random.Float64()
		better := func(bad float64) float64 { return bad * (1 - max(0, random.Float64()-0.3)) }
		bad := thresholds.judged(ofHost(min(less, more)), some, full)
		good := thresholds.judged(ofHost(max(less, more)), better(some), better(full))
		if probetest.NoBetter(t, bad, good); t.Failed() {
			t.Fatalf("by %+v", thresholds)
		}
		if o := thresholds.judged(ofHost(20+random.Float64()), some, full); o.Level != probes.OK || o.Severity >= 50 {
			t.Fatalf("stalls alone: %+v", o)
		}
	}
}
