package pid

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/probetest"
	"github.com/taintlet/taintlet/probes/trend"
)

var somePIDs = Thresholds{UsedPercent: 85, FreeTasks: 1000, ClearFactor: 1.5}

// tasks is a sample of a host without a limit of the pods.
func tasks(used, pidMax, threadsMax uint64) sample {
	if threadsMax < pidMax {
		return sample{host: budget{used, threadsMax, "kernel.threads-max"}}
	}
	return sample{host: budget{used, pidMax, "kernel.pid_max"}}
}

func TestPIDJudge(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name            string
		t               Thresholds
		s               sample
		level           probes.Level
		reason, message string
		severity        int
	}{
		{"plenty", somePIDs, tasks(1234, 32768, 127000), probes.OK, "PIDsSufficient",
			"used 1234 of 32768 tasks (3.7 %, 31534 free), limit kernel.pid_max, threshold 85 %", 0},
		{"threads-max is lower", somePIDs, tasks(28000, 4194304, 32000), probes.Degraded, "PIDsLow",
			"used 28000 of 32000 tasks (87.5 %, 4000 free), limit kernel.threads-max, threshold 85 %", 58},
		{"a task below the threshold", somePIDs, tasks(84_999, 100_000, 100_000), probes.OK, "PIDsNearThreshold", "(84.9 %", 50},
		{"at the threshold", somePIDs, tasks(85_000, 100_000, 100_000), probes.Degraded, "PIDsLow", "(85.0 %", 50},
		{"above the clear threshold", somePIDs, tasks(77_499, 100_000, 100_000), probes.OK, "PIDsNearThreshold", "", 0},
		{"at the clear threshold", somePIDs, tasks(77_498, 100_000, 100_000), probes.OK, "PIDsSufficient", "", 0},
		{"free tasks decide", somePIDs, tasks(4001, 5000, 5000), probes.Degraded, "PIDsLow", "threshold 1000 free", 50},
		{"free tasks at the threshold", somePIDs, tasks(4000, 5000, 5000), probes.OK, "PIDsNearThreshold", "", 50},
		{"free tasks above it", somePIDs, tasks(3000, 5000, 5000), probes.OK, "PIDsSufficient", "", 0},
		{"a tiny limit, little used", somePIDs, tasks(100, 400, 400), probes.OK, "PIDsSufficient", "threshold 100 free", 0},
		{"a tiny limit, used up", somePIDs, tasks(301, 400, 400), probes.Degraded, "PIDsLow", "threshold 100 free", 50},
		{"all used", somePIDs, tasks(400, 400, 400), probes.Degraded, "PIDsLow", "0 free", 100},
		{"more used than there are", somePIDs, tasks(500, 400, 400), probes.Degraded, "PIDsLow", "(125.0 %, 0 free)", 100},
		{"100 percent", Thresholds{UsedPercent: 100}, tasks(999, 1000, 1000), probes.OK, "PIDsSufficient", "", 50},
		{"100 percent reached", Thresholds{UsedPercent: 100}, tasks(1000, 1000, 1000), probes.Degraded, "PIDsLow", "", 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := test.t.judge(test.s, trend.Slope{})
			probetest.Check(t, o, test.level, test.reason, test.message)
			if o.Severity != test.severity {
				t.Errorf("severity %d, want %d", o.Severity, test.severity)
			}
		})
	}
}

func TestPIDIsMonotone(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for range 10 {
		limit := 301 + random.Uint64N(1<<22)
		thresholds := Thresholds{
			UsedPercent: 60 + 40*random.Float64(), FreeTasks: random.Uint64N(5000), ClearFactor: 1 + random.Float64(),
		}
		probetest.Monotone(t, func(free uint64) probes.Observation {
			return thresholds.judge(tasks(limit-free, limit, limit+1), trend.Slope{})
		}, limit)
	}
}

func TestPIDReadsTheNumbers(t *testing.T) {
	t.Parallel()
	got, err := readSample(probetest.Healthy())
	if want := tasks(1234, 32768, 127000); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestPIDDamage(t *testing.T) {
	t.Parallel()
	probe := func(h probes.Host) probes.Probe { return New(h, somePIDs) }
	probetest.Missing(t, "proc/loadavg", probe, "LoadavgUnreadable")
	probetest.Damaged(t, "proc/loadavg", probe, "LoadavgGarbled", map[string]string{
		"empty":                  "",
		"only a newline":         "\n",
		"binary":                 probetest.Binary,
		"cut off":                "0.52 0.58 0.59 3/12",
		"no newline":             "0.52 0.58 0.59 3/1234 45678",
		"cut off with a newline": "0.52 0.58 0.59 3/1234\n",
		"no slash":               "0.52 0.58 0.59 31234 45678\n",
		"no total":               "0.52 0.58 0.59 3/ 45678\n",
		"0":                      "0.52 0.58 0.59 3/0 45678\n",
		"negative":               "0.52 0.58 0.59 3/-1234 45678\n",
		"exponent":               "0.52 0.58 0.59 3/1e3 45678\n",
		"2^63":                   "0.52 0.58 0.59 3/9223372036854775808 45678\n",
	})
	for path, thing := range map[string]string{"proc/sys/kernel/pid_max": "PIDMax", "proc/sys/kernel/threads-max": "ThreadsMax"} {
		probetest.Missing(t, path, probe, thing+"Unreadable")
		probetest.Damaged(t, path, probe, thing+"Garbled", map[string]string{
			"empty":      "",
			"binary":     probetest.Binary,
			"no newline": "327",
			"two lines":  "32768\n32768\n",
			"0":          "0\n",
			"negative":   "-1\n",
			"exponent":   "3e4\n",
			"fraction":   "32768.0\n",
			"2^31":       "2147483648\n",
			"2^63":       "9223372036854775808\n",
		})
	}
}

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
		{"fork bomb", 16000, 500, probes.Degraded, false, "PIDsRunningOut", "; none left in 24 s, threshold 30 s"},
		{"slower, easier threshold", 16000, 350, probes.OK, true, "PIDsNearThreshold", ""},
		{"slow", 16000, 10, probes.OK, false, "PIDsSufficient", ""},
		{"fast, few used", 1000, 1400, probes.OK, true, "PIDsNearThreshold", ""},
		{"getting better", 20000, 0, probes.OK, false, "PIDsSufficient", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := New(probes.Host{}, thresholds)
			start, last := time.Unix(1e9, 0), probes.Observation{}
			for second := range uint64(10) {
				last = p.follow(tasks(test.from+second*test.perSecond, 32768, 127000), start.Add(time.Duration(second)*time.Second))
			}
			probetest.Check(t, last, test.level, test.reason, test.contains)
			if last.Hysteresis != test.hysteresis {
				t.Errorf("hysteresis %t", last.Hysteresis)
			}
		})
	}
}

func TestPIDCritical(t *testing.T) {
	t.Parallel()
	thresholds := somePIDs
	thresholds.CriticalUsedPercent = 95
	for used, level := range map[uint64]probes.Level{94_999: probes.Degraded, 95_000: probes.Critical, 100_000: probes.Critical} {
		if o := thresholds.judge(tasks(used, 100_000, 100_000), trend.Slope{}); o.Level != level {
			t.Errorf("%d used: %s", used, o.Level)
		}
	}
}

// The tighter of the host's limit and the pods' counts, wherever the control
// groups are mounted; no limit is none.
func TestPIDLimitOfThePods(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files  map[string]string
		level  probes.Level
		reason string
		text   string
	}{
		"v2, systemd":  {map[string]string{"kubepods.slice/pids.max": "2000\n", "kubepods.slice/pids.current": "1900\n"}, probes.Degraded, "PIDsLow", "used 1900 of 2000 tasks (95.0 %, 100 free), limit pids.max of all pods"},
		"v1, cgroupfs": {map[string]string{"pids/kubepods/pids.max": "2000\n", "pids/kubepods/pids.current": "1900\n"}, probes.Degraded, "PIDsLow", "limit pids.max of all pods"},
		"no pods":      {map[string]string{"kubepods/pids.max": "2000\n", "kubepods/pids.current": "0\n"}, probes.OK, "PIDsSufficient", "limit kernel.pid_max"},
		"no limit":     {map[string]string{"kubepods/pids.max": "max\n", "kubepods/pids.current": "1900\n"}, probes.OK, "PIDsSufficient", "limit kernel.pid_max"},
		"garbled":      {map[string]string{"kubepods/pids.max": "lots\n"}, probes.Unknown, "PodsPIDsMaxGarbled", "lots"},
		"half gone":    {map[string]string{"kubepods/pids.max": "2000\n"}, probes.Unknown, "PodsPIDsCurrentUnreadable", "pids.current"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := probes.Host{Proc: probetest.Healthy().Proc, Sys: t.TempDir()}
			for file, text := range test.files {
				path := filepath.Join(h.Sys, "fs", "cgroup", file)
				if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			probetest.Check(t, New(h, somePIDs).Observe(t.Context()), test.level, test.reason, test.text)
		})
	}
}

// A pid_max that belongs to another PID namespace than the host's is not
// believed.
func TestPIDMaxOfAPrivateNamespaceIsNotBelieved(t *testing.T) {
	t.Parallel()
	for link, want := range map[string]string{
		"pid:[4026531836]": "limit kernel.pid_max, threshold 85 %",
		"pid:[4026532841]": "limit kernel.threads-max, threshold 85 %; kernel.pid_max is not believed",
	} {
		proc := t.TempDir()
		if err := os.CopyFS(proc, os.DirFS(probetest.Healthy().Proc)); err != nil {
			t.Fatal(err)
		}
		ns := filepath.Join(proc, "self", "ns")
		if err := os.MkdirAll(ns, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(link, filepath.Join(ns, "pid")); err != nil {
			t.Fatal(err)
		}
		probetest.Check(t, New(probes.Host{Proc: proc}, somePIDs).Observe(t.Context()), probes.OK, "PIDsSufficient", want)
	}
}

func FuzzParseLoadavgTasks(f *testing.F) {
	f.Add("0.52 0.58 0.59 3/1234 45678\n")
	f.Add("0.52 0.58 0.59 3/1234 45678")
	f.Add(probetest.Binary)
	f.Fuzz(func(t *testing.T, text string) {
		tasks, err := parseLoadavgTasks(text)
		if err == nil && (tasks == 0 || tasks >= 1<<31 || !strings.HasSuffix(text, "\n")) {
			t.Errorf("%q has %d tasks", text, tasks)
		}
	})
}

func FuzzParseCount(f *testing.F) {
	f.Add("32768\n")
	f.Add("-0\n")
	f.Add(probetest.Binary)
	f.Fuzz(func(t *testing.T, text string) {
		count, err := parseCount(text)
		if err == nil && (count == 0 || count >= 1<<31 || strings.TrimLeft(text, "0123456789") != "\n") {
			t.Errorf("%q counts %d", text, count)
		}
	})
}

func BenchmarkPIDObserve(b *testing.B) {
	p := New(probes.Host{Proc: "/proc"}, somePIDs)
	b.ReportAllocs()
	for b.Loop() {
		p.Observe(b.Context())
	}
}
