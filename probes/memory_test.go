package probes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v3/mem"
)

const mib, gib = 1 << 20, 1 << 30

// allMemory has every threshold, as they are by default.
var allMemory = MemoryThresholds{
	AvailablePercent: 5, AvailableBytes: 100 * mib, PercentOfAtMost: 256 * gib,
	RunningOutWithin: 10 * time.Second, RunningOutAvailablePercent: 20,
	StalledPercent: 15, StalledAvailablePercent: 15, CriticalStalledPercent: 40,
	ClearFactor: 1.5,
}

// amounts is a sample of a host that does not measure pressure.
func amounts(available, anon uint64) memSample { return memSample{available: available, anon: anon} }

// ofHost is a sample of a host with 100 GiB, of which that percentage is
// available.
func ofHost(percent float64) memSample {
	available := uint64(percent * gib)
	return amounts(available, 100*gib-available)
}

// stalledFor gives a sample totals of pressure.
func (s memSample) stalledFor(some, full time.Duration) memSample {
	s.pressure, s.measured = pressure{some, full}, true
	return s
}

// judged judges a sample that comes a second after another one, with the
// stalls, in percent, that there were between them, and the time to empty.
func (t MemoryThresholds) judged(s memSample, some, full float64, emptyIn time.Duration) Observation {
	ofSecond := func(percent float64) time.Duration { return time.Duration(percent * float64(10*time.Millisecond)) }
	return t.judge(s.stalledFor(time.Hour, time.Minute),
		s.stalledFor(time.Hour+ofSecond(some), time.Minute+ofSecond(full)), time.Second, emptyingIn(s, emptyIn))
}

// emptyingIn is the trend of a host with nothing left after that time; none
// when the time is 0.
func emptyingIn(s memSample, left time.Duration) slope {
	if left == 0 {
		return slope{}
	}
	perSecond := s.left() / left.Seconds()
	return *samplesEvery(time.Second, s.left()+4*perSecond, s.left()+3*perSecond, s.left()+2*perSecond, s.left()+perSecond, s.left())
}

func TestMemoryJudgesTheLevel(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name            string
		t               MemoryThresholds
		s               memSample
		level           Level
		reason, message string
		severity        int
	}{
		{"plenty", someMemory, amounts(8*gib, 8*gib), OK, "MemorySufficient",
			"available 8 GiB of 16 GiB (50.0 %), threshold 5 %", 0},
		{"low", someMemory, amounts(412*mib, 15562*mib), Degraded, "MemoryLow",
			"available 412 MiB of 15.6 GiB (2.5 %), threshold 5 %", 74},
		{"at the threshold", someMemory, amounts(5*gib, 95*gib), OK, "MemoryNearThreshold",
			"available 5 GiB of 100 GiB (5.0 %), threshold 5 %", 50},
		{"a byte below the threshold", someMemory, amounts(5*gib-1, 95*gib+1), Degraded, "MemoryLow", "(4.9 %)", 50},
		{"a byte below the clear threshold", someMemory, amounts(75*gib/10-1, 925*gib/10+1), OK, "MemoryNearThreshold", "(7.4 %)", 0},
		{"at the clear threshold", someMemory, amounts(75*gib/10, 925*gib/10), OK, "MemorySufficient", "(7.5 %)", 0},
		{"the bytes decide on a small host", someMemory, amounts(99*mib, 900*mib), Degraded, "MemoryLow", "threshold 100 MiB", 50},
		{"nothing", someMemory, amounts(0, gib), Degraded, "MemoryLow", "available 0 B of 1 GiB (0.0 %)", 100},
		{"no thresholds", MemoryThresholds{}, amounts(0, gib), OK, "MemorySufficient", "threshold 0 %", 0},
		{"as large as it gets", someMemory, amounts(1<<63, 1<<63), OK, "MemorySufficient", "8 EiB of 16 EiB", 0},
		{"the percentage is of at most so much", allMemory, amounts(164*gib, 3890*gib), OK, "MemorySufficient",
			"available 164 GiB of 3.96 TiB (4.0 %), threshold 12.8 GiB", 0},
		{"low even so", allMemory, amounts(12*gib, 4000*gib), Degraded, "MemoryLow", "(0.2 %), threshold 12.8 GiB", 53},
		{"as much as counts", allMemory, amounts(128*gib/10-1, 256*gib-128*gib/10+1), Degraded, "MemoryLow", "threshold 5 %", 50},
		{"with a ZFS cache", allMemory, memSample{available: 3 * gib, anon: 13 * gib, arc: 2 * gib}, OK, "MemorySufficient",
			"available 3 GiB of 16 GiB (18.7 %), 2 GiB of it ZFS cache, threshold 5 %", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := test.t.judge(memSample{}, test.s, 0, slope{})
			check(t, o, test.level, test.reason, test.message)
			if o.Severity != test.severity {
				t.Errorf("severity %d, want %d", o.Severity, test.severity)
			}
		})
	}
}

func TestMemoryJudgesCombinations(t *testing.T) {
	t.Parallel()
	const never = 0
	for _, test := range []struct {
		name                  string
		available, some, full float64 // percent
		emptyIn               time.Duration
		level                 Level
		hysteresis            bool
		severity              int
		reason, message       string
	}{
		{"nothing wrong", 50, 0, 0, never, OK, false, 0, "MemorySufficient",
			"available 50 GiB of 100 GiB (50.0 %), threshold 5 %; stalled 0 % of the last second"},
		{"stalled, with plenty", 50, 100, 100, never, OK, false, 0, "MemorySufficient", "threshold 5 %; stalled 100 % of the last second"},
		{"emptying, with plenty", 50, 0, 0, time.Second, OK, false, 0, "MemorySufficient", "stalled 0 %"},

		{"stalled at the threshold", 14, 15, 0, never, Degraded, false, 50, "MemoryStalled",
			"available 14 GiB of 100 GiB (14.0 %), threshold 15 %; stalled 15 % of the last second, threshold 15 %"},
		{"a little less stalled", 14, 14.9, 0, never, OK, true, 49, "MemoryNearThreshold",
			"available 14 GiB of 100 GiB (14.0 %), threshold 15 %; stalled 14 % of the last second, threshold 15 %"},
		{"stalled two thirds of it", 14, 10, 0, never, OK, true, 33, "MemoryNearThreshold", ""},
		{"stalled less than that", 14, 9.9, 0, never, OK, false, 33, "MemorySufficient", "threshold 5 %; stalled 9 %"},
		{"stalled, at the level", 15, 100, 0, never, OK, true, 50, "MemoryNearThreshold", "(15.0 %)"},
		{"stalled, at the level that clears", 22.5, 100, 0, never, OK, false, 0, "MemorySufficient", ""},
		{"stalled, just below it", 22.4, 100, 0, never, OK, true, 0, "MemoryNearThreshold", ""},
		{"stalled, much", 7.5, 58, 0, never, Degraded, false, 75, "MemoryStalled", ""},

		{"running out", 19, 0, 0, 7500 * time.Millisecond, Degraded, false, 52, "MemoryRunningOut",
			"available 19 GiB of 100 GiB (19.0 %), threshold 20 %; empty in 7 s, threshold 10 s"},
		{"at the very end", 8, 0, 0, 400 * time.Millisecond, Degraded, false, 80, "MemoryRunningOut", "; empty in less than 1 s, threshold 10 s"},
		{"running out, past the time", 19, 0, 0, 10001 * time.Millisecond, OK, true, 49, "MemoryNearThreshold", "empty in 10 s, threshold 10 s"},
		{"running out, at the level", 20, 0, 0, time.Second, OK, true, 50, "MemoryNearThreshold", "(20.0 %), threshold 20 %"},
		{"running out later", 19, 0, 0, 15 * time.Second, OK, false, 0, "MemorySufficient", "threshold 5 %"},
		{"running out not much later", 19, 0, 0, 14500 * time.Millisecond, OK, true, 5, "MemoryNearThreshold", "empty in 14 s"},

		{"low", 4, 0, 0, never, Degraded, false, 60, "MemoryLow", "(4.0 %), threshold 5 %; stalled 0 % of the last second"},
		{"low and stalled", 4, 31, 5, never, Degraded, false, 60, "MemoryLow", "threshold 5 %; stalled 31 % of the last second"},
		{"low and running out", 4, 0, 0, time.Second, Degraded, false, 90, "MemoryLow", ""},
		{"critical", 4, 60, 40, never, Critical, false, 76, "MemoryStalledFully",
			"available 4 GiB of 100 GiB (4.0 %), threshold 5 %; all tasks stalled 40 % of the last second, threshold 40 %"},
		{"almost critical", 4, 60, 39.9, never, Degraded, false, 76, "MemoryLow", ""},
		{"stalled fully, not low", 5, 60, 60, never, Degraded, false, 76, "MemoryStalled", ""},
		{"as bad as it gets", 0, 100, 100, never, Critical, false, 100, "MemoryStalledFully", ""},
		{"more than all of the time", 0, 150, 150, never, Critical, false, 100, "MemoryStalledFully", "stalled 100 %"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := allMemory.judged(ofHost(test.available), test.some, test.full, test.emptyIn)
			check(t, o, test.level, test.reason, test.message)
			if o.Severity != test.severity || o.Hysteresis != test.hysteresis {
				t.Errorf("severity %d, hysteresis %t, want %d, %t", o.Severity, o.Hysteresis, test.severity, test.hysteresis)
			}
		})
	}
}

func TestMemoryThresholdsCanBeOff(t *testing.T) {
	t.Parallel()
	worst := func(t MemoryThresholds) Observation { return t.judged(ofHost(1), 100, 100, time.Second) }
	for name, test := range map[string]struct {
		off    func(*MemoryThresholds)
		level  Level
		reason string
	}{
		"none":           {func(*MemoryThresholds) {}, Critical, "MemoryStalledFully"},
		"critical":       {func(t *MemoryThresholds) { t.CriticalStalledPercent = 0 }, Degraded, "MemoryLow"},
		"level":          {func(t *MemoryThresholds) { t.AvailablePercent, t.AvailableBytes = 0, 0 }, Degraded, "MemoryRunningOut"},
		"level and time": {func(t *MemoryThresholds) { t.AvailablePercent, t.AvailableBytes, t.RunningOutWithin = 0, 0, 0 }, Degraded, "MemoryStalled"},
		"the time's level": {func(t *MemoryThresholds) {
			t.AvailablePercent, t.AvailableBytes, t.RunningOutAvailablePercent = 0, 0, 0
		}, Degraded, "MemoryStalled"},
		"all but the stall": {func(t *MemoryThresholds) { *t = MemoryThresholds{StalledPercent: 15} }, OK, "MemorySufficient"},
		"all but its level": {func(t *MemoryThresholds) { *t = MemoryThresholds{StalledAvailablePercent: 15} }, OK, "MemorySufficient"},
	} {
		thresholds := allMemory
		test.off(&thresholds)
		o := worst(thresholds)
		if wellFormed(t, o); o.Level != test.level || o.Reason != test.reason {
			t.Errorf("%s off: %+v", name, o)
		}
	}
}

// Without two looks that can be compared the level alone counts.
func TestMemoryJudgesTheLevelAloneAfterAGap(t *testing.T) {
	t.Parallel()
	before, now := ofHost(14).stalledFor(time.Hour, time.Hour), ofHost(14).stalledFor(time.Hour+time.Minute, time.Hour+time.Minute)
	for name, test := range map[string]struct {
		prev, cur memSample
		dt        time.Duration
	}{
		"first look":              {memSample{}, now, math.MaxInt64},
		"gap":                     {before, now, 31 * time.Second},
		"no time":                 {before, now, 0},
		"time runs backwards":     {before, now, -time.Second},
		"some runs backwards":     {now.stalledFor(2*time.Hour, time.Hour), now, time.Second},
		"full runs backwards":     {before.stalledFor(time.Hour, 2*time.Hour), now, time.Second},
		"pressure has come":       {ofHost(14), now, time.Second},
		"pressure has gone":       {before, ofHost(14), time.Second},
		"pressure was never here": {ofHost(14), ofHost(14), time.Second},
	} {
		o := allMemory.judge(test.prev, test.cur, test.dt, slope{})
		if wellFormed(t, o); o.Level != OK || o.Reason != "MemorySufficient" || strings.Contains(o.Message, "stalled") {
			t.Errorf("%s: %+v", name, o)
		}
	}
	check(t, allMemory.judge(before, now, 30*time.Second, slope{}), Degraded, "MemoryStalled", "stalled 100 % of the last 30.0 s")
	check(t, allMemory.judge(before, now, 250*time.Millisecond, slope{}), Degraded, "MemoryStalled", "stalled 100 % of the last 0.2 s")
}

func TestMemoryLevelIsMonotone(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 10 {
		whole := gib + random.Uint64N(1<<40)
		thresholds := MemoryThresholds{AvailablePercent: 1 + 30*random.Float64(), AvailableBytes: random.Uint64N(gib / 2), ClearFactor: 1 + random.Float64()}
		monotone(t, func(available uint64) Observation {
			return thresholds.judge(memSample{}, amounts(available, whole-available), 0, slope{})
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
		some, full, soon := 100*random.Float64(), 100*random.Float64(), time.Duration(1+random.Int64N(int64(20*time.Second)))
		better := func(bad float64) float64 { return bad * (1 - max(0, random.Float64()-0.3)) }
		bad := thresholds.judged(ofHost(min(less, more)), some, full, soon)
		good := thresholds.judged(ofHost(max(less, more)), better(some), better(full), soon+time.Duration(random.Int64N(int64(20*time.Second))))
		wellFormed(t, bad)
		if bad.Severity < good.Severity || bad.Level < good.Level || !bad.Hysteresis && bad.Level == OK && good.Hysteresis {
			t.Fatalf("worse is judged better by %+v:\n%+v\n%+v", thresholds, bad, good)
		}
		if bad.Level >= Degraded && bad.Severity < 50 || bad.Level == OK && bad.Severity > 50 {
			t.Fatalf("level and severity contradict each other: %+v", bad)
		}
		if o := thresholds.judged(ofHost(20+random.Float64()), some, full, 0); o.Level != OK || o.Severity >= 50 {
			t.Fatalf("stalls alone: %+v", o)
		}
	}
}

// followAll judges a sequence of samples that are a second apart, and returns
// the observations.
func followAll(samples ...memSample) (all []Observation) {
	m := NewMemory(healthyHost, allMemory)
	for i, s := range samples {
		all = append(all, m.follow(memLook{s, time.Unix(1000+int64(i), 0)}))
	}
	return all
}

func TestMemorySeesALeakBeforeItIsLow(t *testing.T) {
	t.Parallel()
	var samples []memSample
	for second := range 50 { // 2 GiB a second from 100 GiB on, with noise
		samples = append(samples, ofHost(100-2*float64(second)+0.2*float64(second%3)).stalledFor(0, 0))
	}
	all := followAll(samples...)
	for second, o := range all {
		switch {
		case second < 40 && o.Level != OK, second > 41 && o.Level != Degraded:
			t.Errorf("after %d s: %+v", second, o)
		case second == 42:
			check(t, o, Degraded, "MemoryRunningOut", "available 16 GiB of 100 GiB (16.0 %), threshold 20 %; empty in ")
		}
	}
	check(t, all[49], Degraded, "MemoryLow", "")
}

func TestMemoryCountsSwapAsTimeNotAsPlenty(t *testing.T) {
	t.Parallel()
	var without, with []memSample
	for second := range 10 {
		s := ofHost(28 - float64(second))
		without = append(without, s)
		s.freeSwap = 64 * gib
		with = append(with, s)
	}
	for second := 10; second < 20; second++ { // from here on what is used goes to swap
		s := ofHost(4)
		s.freeSwap = 64*gib - uint64(second-9)*5*gib
		with = append(with, s)
	}
	if o := followAll(without...)[9]; o.Hysteresis || o.Level != OK {
		t.Errorf("19 s to go: %+v", o)
	}
	for second, o := range followAll(with...) {
		if second < 10 && (o.Level != OK || o.Hysteresis) || second >= 10 && o.Reason != "MemoryLow" {
			t.Errorf("after %d s: %+v", second, o)
		}
	}
	// Swap that falls at the same time as memory brings the end near, memory being above its level.
	var both []memSample
	for second := range 10 {
		s := ofHost(18)
		s.freeSwap = uint64(50-5*second) * gib
		both = append(both, s)
	}
	check(t, followAll(both...)[9], Degraded, "MemoryRunningOut", "empty in 4 s")
}

func TestMemoryForgivesABurst(t *testing.T) {
	t.Parallel()
	var samples []memSample
	waited := time.Duration(0)
	for second := range 60 {
		percent := 60.0
		if second >= 20 { // 12 % a second for 3 s, and a stall with it
			percent = max(24, 60-12*float64(second-19))
		}
		if second >= 20 && second < 23 {
			waited += 300 * time.Millisecond
		}
		samples = append(samples, ofHost(percent).stalledFor(waited, waited/2))
	}
	for second, o := range followAll(samples...) {
		if o.Level != OK || o.Severity >= 50 || second > 35 && o.Hysteresis {
			t.Errorf("after %d s: %+v", second, o)
		}
	}
}

// A flood of page cache takes all free memory, and none that programs could
// not have.
func TestMemoryForgivesAFloodOfPageCache(t *testing.T) {
	t.Parallel()
	h := copyOfHealthy(t)
	whole := healthyText(t, "proc/meminfo")
	m := NewMemory(h, allMemory)
	for second := range 20 {
		read := min(2_000_000, second*200_000)
		text := line(t, whole, "MemFree", fmt.Sprintf("MemFree: %d kB\n", 2048000-read))
		text = line(t, text, "Cached", fmt.Sprintf("Cached: %d kB\n", 6144000+read))
		text = line(t, text, "MemAvailable", fmt.Sprintf("MemAvailable: %d kB\n", 8192000-read/40))
		write(t, h, "proc/meminfo", text)
		s, err := readMemory(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		if o := m.follow(memLook{s, time.Unix(int64(second), 0)}); o.Level != OK || o.Hysteresis || o.Severity > 0 {
			t.Errorf("after %d s: %+v", second, o)
		}
	}
}

// memoryHost is one of the hosts in testdata/memory.
func memoryHost(name string) Host {
	root := filepath.Join("testdata", "memory", name)
	return Host{Root: root, Proc: filepath.Join(root, "proc"), Sys: filepath.Join(root, "sys")}
}

func TestMemoryOfOtherHosts(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		sample  memSample
		message string
	}{
		"512MiB": {memSample{available: 248 * mib, anon: 142 * mib, measured: true, pressure: pressure{8423 * time.Microsecond, 5120 * time.Microsecond}},
			"available 248 MiB of 390 MiB (63.5 %), threshold 100 MiB; stalled 0 %"},
		"4TiB": {memSample{available: 164 * gib, anon: 3890 * gib, measured: true, pressure: pressure{98765432109 * time.Microsecond, 1234567890 * time.Microsecond}},
			"available 164 GiB of 3.96 TiB (4.0 %), threshold 12.8 GiB; stalled 0 %"},
		"zram": {memSample{available: 1200 * mib, anon: 5600 * mib, freeSwap: 4194300 << 10, measured: true, pressure: pressure{7654321 * time.Microsecond, 321098 * time.Microsecond}},
			"available 1.17 GiB of 6.64 GiB (17.6 %), threshold 5 %; stalled 0 %"},
		"zfs": {memSample{available: 2200*mib + 42*gib, anon: 14 * gib, arc: 42 * gib, measured: true, pressure: pressure{1234 * time.Microsecond, 567 * time.Microsecond}},
			"available 44.1 GiB of 58.1 GiB (75.9 %), 42 GiB of it ZFS cache, threshold 5 %; stalled 0 %"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := readMemory(t.Context(), memoryHost(name))
			if err != nil || s != want.sample {
				t.Errorf("read %+v, %v, want %+v", s, err, want.sample)
			}
			check(t, followAll(s, s)[1], OK, "MemorySufficient", want.message)
		})
	}
}

// line replaces the one line of text that starts with the key.
func line(t testing.TB, text, key, replacement string) string {
	t.Helper()
	before, after, ok := strings.Cut(text, "\n"+key+":")
	if !ok {
		t.Fatalf("no line %s", key)
	}
	_, after, _ = strings.Cut(after, "\n")
	return before + "\n" + replacement + after
}

func TestMemoryReadsTheNumbers(t *testing.T) {
	t.Parallel()
	got, err := readMemory(t.Context(), healthyHost)
	if want := amounts(8192000*1024, 6144000*1024); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	text := line(t, healthyText(t, "proc/meminfo"), "MemAvailable", "MemAvailable: 0 kB\n")
	o := observe(t, NewMemory(with(t, "proc/meminfo", text), someMemory))
	check(t, o, Degraded, "MemoryLow", "available 0 B")
}

func TestMemoryDamage(t *testing.T) {
	t.Parallel()
	whole := healthyText(t, "proc/meminfo")
	available := func(value string) string { return line(t, whole, "MemAvailable", "MemAvailable: "+value+"\n") }
	total := func(value string) string {
		_, rest, _ := strings.Cut(whole, "\n")
		return "MemTotal: " + value + "\n" + rest
	}
	inNumber := strings.Index(whole, "6144000 kB\nMapped") + 4
	testDamage(t, "proc/meminfo", func(h Host) Probe { return NewMemory(h, someMemory) }, []damage{
		{"missing", "", true, "MeminfoUnreadable"},
		{"empty", "", false, "MeminfoIncomplete"},
		{"binary", binary, false, "MeminfoGarbled"},
		{"one endless line", strings.Repeat("x", 1<<17), false, "MeminfoIncomplete"},
		{"cut off between lines", whole[:strings.Index(whole, "MemAvailable")], false, "MeminfoIncomplete"},
		{"cut off within a name", whole[:strings.Index(whole, "ailable")], false, "MeminfoGarbled"},
		{"cut off before AnonPages", whole[:strings.Index(whole, "AnonPages")], false, "MeminfoIncomplete"},
		{"cut off within AnonPages' number", whole[:inNumber], false, "MeminfoGarbled"},
		{"no MemTotal", strings.TrimPrefix(whole, "MemTotal"), false, "MeminfoIncomplete"},
		{"no MemAvailable", line(t, whole, "MemAvailable", ""), false, "MeminfoIncomplete"},
		{"no AnonPages", line(t, whole, "AnonPages", ""), false, "MeminfoIncomplete"},
		{"MemTotal 0", total("0 kB"), false, "MeminfoGarbled"},
		{"MemTotal wraps to 0", total("18014398509481984 kB"), false, "MeminfoGarbled"},
		{"words", available("plenty kB"), false, "MeminfoGarbled"},
		{"no number", available(" kB"), false, "MeminfoGarbled"},
		{"negative", available("-1 kB"), false, "MeminfoGarbled"},
		{"exponent", available("8e6 kB"), false, "MeminfoGarbled"},
		{"hexadecimal", available("0x100 kB"), false, "MeminfoGarbled"},
		{"no unit", available("8192000"), false, "MeminfoGarbled"},
		{"another unit", available("8192000 MB"), false, "MeminfoGarbled"},
		{"2^63", available("9223372036854775808 kB"), false, "MeminfoGarbled"},
		{"2^64", available("18446744073709551616 kB"), false, "MeminfoGarbled"},
		{"more available than there is", available("16384001 kB"), false, "MeminfoGarbled"},
		{"more anonymous than there is", line(t, whole, "AnonPages", "AnonPages: 16384001 kB\n"), false, "MeminfoGarbled"},
		{"neither available nor used", line(t, available("0 kB"), "AnonPages", "AnonPages: 0 kB\n"), false, "MeminfoGarbled"},
	})
}

func TestBelieve(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		vm          mem.VirtualMemoryStat
		total, anon uint64
		err         string
	}{
		{mem.VirtualMemoryStat{Total: 100, Available: 40}, 100, 50, ""},
		{mem.VirtualMemoryStat{Total: 100, Available: 0}, 100, 50, ""},
		{mem.VirtualMemoryStat{UsedPercent: math.NaN()}, 100, 50, "two reads"}, // gopsutil without a file
		{mem.VirtualMemoryStat{UsedPercent: math.NaN()}, 0, 0, "MemTotal of 0"},
		{mem.VirtualMemoryStat{Total: 100, Available: 101}, 100, 50, "MemAvailable is more"},
		{mem.VirtualMemoryStat{Total: 100, Available: 40}, 100, 101, "AnonPages is more"},
		{mem.VirtualMemoryStat{Total: 100}, 100, 0, "both be 0"},
	} {
		s, err := believe(&test.vm, test.total, test.anon)
		if (err == nil) != (test.err == "") || !strings.Contains(fmt.Sprint(err), test.err) {
			t.Errorf("%+v: %+v, %v, want error %q", test, s, err, test.err)
		}
	}
}

func TestMemoryWithoutProc(t *testing.T) {
	t.Parallel()
	o := observe(t, NewMemory(Host{Proc: "testdata/nowhere"}, someMemory))
	check(t, o, Unknown, "MeminfoUnreadable", "testdata/nowhere")
}

func FuzzReadMeminfo(f *testing.F) {
	f.Add(healthyText(f, "proc/meminfo"))
	f.Add("MemTotal: 1 kB\nMemAvailable: 1 kB\nAnonPages: 0 kB\n")
	f.Add(binary)
	f.Fuzz(func(t *testing.T, text string) {
		h := Host{Root: t.TempDir()}
		h.Proc = h.Root
		write(t, h, "meminfo", text)
		s, total, err := readMeminfo(t.Context(), h.Proc)
		if err == nil && (total == 0 || s.available > total || s.anon > total || s.available+s.anon == 0 || total%1024 != 0) {
			t.Errorf("%q: %+v of %d", text, s, total)
		}
	})
}

func BenchmarkMemoryObserve(b *testing.B) {
	m := NewMemory(Host{Proc: "/proc"}, allMemory)
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(b.Context())
	}
}
