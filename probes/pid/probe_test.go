package pid

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// Tasks that go fast taint while there is still time, but only when many are
// gone already: a host that starts a hundred pods is no fork bomb.
func TestPIDRunningOut(t *testing.T) {
	t.Parallel()
	thresholds := somePIDs
	thresholds.RunningOutWithin, thresholds.RunningOutUsedPercent = 30*time.Second, 50
	for _, test := range []struct {
		name             string
		from, perSecond  uint64
		level            probes.Level
		hysteresis       bool
		reason, contains string
	}{
		{"fork bomb", 10000, 500, probes.Degraded, false, "PIDsRunningOut", "; none left in 24 s, threshold 30 s"},
		{"slower, easier threshold", 13000, 350, probes.OK, true, "PIDsNearThreshold", ""},
		{"slow", 20000, 10, probes.OK, false, "PIDsSufficient", ""},
		{"fast, few used", 1000, 500, probes.OK, true, "PIDsNearThreshold", ""},
		{"getting better", 20000, 0, probes.OK, false, "PIDsSufficient", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := New(probes.Host{}, thresholds)
			start, last := time.Unix(1e9, 0), probes.Observation{}
			for second := range uint64(22) {
				last = p.follow(tasks(test.from+second*test.perSecond, 32768, 127000), start.Add(time.Duration(second)*time.Second))
			}
			probetest.Check(t, last, test.level, test.reason, test.contains)
			if last.Hysteresis != test.hysteresis {
				t.Errorf("hysteresis %t", last.Hysteresis)
			}
		})
	}
}

// A limit that changes, or another that becomes the tightest, is no run of
// tasks: "none left in 11 s" was said of a host that had started none.
func TestSlopeRestartsWithTheLimit(t *testing.T) {
	t.Parallel()
	thresholds := somePIDs
	thresholds.RunningOutWithin, thresholds.RunningOutUsedPercent = 30*time.Second, 50
	host := tasks(5000, 32768, 127000)
	underPods := func(used, limit uint64) sample {
		s := host
		s.pods = &budget{used, limit, "pids.max of all pods"}
		return s
	}
	for name, second := range map[string]func(i int) sample{
		"pids.max is lowered":      func(i int) sample { return underPods(2600, 10_000-uint64(i/5)*5000) },
		"the pods' limit appears":  func(i int) sample { return map[bool]sample{false: host, true: underPods(2600, 5000)}[i >= 5] },
		"pid_max is lowered":       func(i int) sample { return tasks(5000, 32768-uint64(i/5)*23_000, 127_000) },
		"pids.max is raised again": func(i int) sample { return underPods(2600, 5000+uint64(i/5)*5000) },
	} {
		p := New(probes.Host{}, thresholds)
		start := time.Unix(1e9, 0)
		for i := range 10 {
			o := p.follow(second(i), start.Add(time.Duration(i)*time.Second))
			if o.Level != probes.OK || o.Reason == "PIDsRunningOut" {
				t.Errorf("%s, second %d: %s %s", name, i, o.Reason, o.Message)
			}
			if o.Headroom < 100*time.Millisecond && o.Level == probes.OK && !o.Hysteresis {
				t.Errorf("%s, second %d: headroom %s", name, i, o.Headroom)
			}
		}
	}
}

// The nearer the threshold and the faster tasks are started, the less headroom.
func TestHeadroom(t *testing.T) {
	t.Parallel()
	start := time.Unix(1e9, 0)
	for name, test := range map[string]struct {
		used, then uint64 // a second later
		want       time.Duration
	}{
		"at rest":                  {232, 232, 2762 * time.Millisecond}, // 27,852 may be used below 85 %
		"near the threshold":       {26_852, 26_852, 100 * time.Millisecond},
		"faster than is plausible": {2852, 17_852, 667 * time.Millisecond},
		"at the threshold":         {27_851, 27_851, time.Nanosecond},
		"slower than is plausible": {7852, 7852, 2 * time.Second},
	} {
		p := New(probes.Host{}, somePIDs)
		p.follow(tasks(test.used, 32768, 127000), start)
		o := p.follow(tasks(test.then, 32768, 127000), start.Add(time.Second))
		if diff := o.Headroom - test.want; diff < -time.Millisecond || diff > time.Millisecond {
			t.Errorf("%s: %s (%s), want %s", name, o.Headroom, o.Message, test.want)
		}
	}
}

func BenchmarkPIDObserve(b *testing.B) {
	p := New(probes.Host{Proc: "/proc"}, somePIDs)
	b.ReportAllocs()
	for b.Loop() {
		p.Observe(b.Context())
	}
}
