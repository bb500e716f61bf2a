package probes

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestPIDJudge(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name            string
		t               PIDThresholds
		s               taskSample
		level           Level
		reason, message string
		severity        int
	}{
		{"plenty", somePIDs, taskSample{1234, 32768, 127000}, OK, "PIDsSufficient",
			"used 1234 of 32768 tasks (3.7 %, 31534 free), limit kernel.pid_max, threshold 85 %", 0},
		{"threads-max is lower", somePIDs, taskSample{28000, 4194304, 32000}, Degraded, "PIDsLow",
			"used 28000 of 32000 tasks (87.5 %, 4000 free), limit kernel.threads-max, threshold 85 %", 58},
		{"a task below the threshold", somePIDs, taskSample{84_999, 100_000, 100_000}, OK, "PIDsNearThreshold", "(84.9 %", 50},
		{"at the threshold", somePIDs, taskSample{85_000, 100_000, 100_000}, Degraded, "PIDsLow", "(85.0 %", 50},
		{"above the clear threshold", somePIDs, taskSample{77_499, 100_000, 100_000}, OK, "PIDsNearThreshold", "", 0},
		{"at the clear threshold", somePIDs, taskSample{77_498, 100_000, 100_000}, OK, "PIDsSufficient", "", 0},
		{"free tasks decide", somePIDs, taskSample{4001, 5000, 5000}, Degraded, "PIDsLow", "threshold 1000 free", 50},
		{"free tasks at the threshold", somePIDs, taskSample{4000, 5000, 5000}, OK, "PIDsNearThreshold", "", 50},
		{"free tasks above it", somePIDs, taskSample{3000, 5000, 5000}, OK, "PIDsSufficient", "", 0},
		{"a tiny limit, little used", somePIDs, taskSample{100, 400, 400}, OK, "PIDsSufficient", "threshold 100 free", 0},
		{"a tiny limit, used up", somePIDs, taskSample{301, 400, 400}, Degraded, "PIDsLow", "threshold 100 free", 50},
		{"all used", somePIDs, taskSample{400, 400, 400}, Degraded, "PIDsLow", "0 free", 100},
		{"more used than there are", somePIDs, taskSample{500, 400, 400}, Degraded, "PIDsLow", "(125.0 %, 0 free)", 100},
		{"100 percent", PIDThresholds{UsedPercent: 100}, taskSample{999, 1000, 1000}, OK, "PIDsSufficient", "", 50},
		{"100 percent reached", PIDThresholds{UsedPercent: 100}, taskSample{1000, 1000, 1000}, Degraded, "PIDsLow", "", 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := test.t.judge(test.s)
			check(t, o, test.level, test.reason, test.message)
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
		thresholds := PIDThresholds{60 + 40*random.Float64(), random.Uint64N(5000), 1 + random.Float64()}
		monotone(t, func(free uint64) Observation {
			return thresholds.judge(taskSample{limit - free, limit, limit + 1})
		}, limit)
	}
}

func TestPIDReadsTheNumbers(t *testing.T) {
	t.Parallel()
	got, err := readTasks(healthyHost.Proc)
	if want := (taskSample{1234, 32768, 127000}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestPIDDamage(t *testing.T) {
	t.Parallel()
	probe := func(h Host) Probe { return NewPID(h, somePIDs) }
	testDamage(t, "proc/loadavg", probe, []damage{
		{"missing", "", true, "LoadavgUnreadable"},
		{"empty", "", false, "LoadavgGarbled"},
		{"only a newline", "\n", false, "LoadavgGarbled"},
		{"binary", binary, false, "LoadavgGarbled"},
		{"cut off", "0.52 0.58 0.59 3/12", false, "LoadavgGarbled"},
		{"no newline", "0.52 0.58 0.59 3/1234 45678", false, "LoadavgGarbled"},
		{"cut off with a newline", "0.52 0.58 0.59 3/1234\n", false, "LoadavgGarbled"},
		{"no slash", "0.52 0.58 0.59 31234 45678\n", false, "LoadavgGarbled"},
		{"no total", "0.52 0.58 0.59 3/ 45678\n", false, "LoadavgGarbled"},
		{"0", "0.52 0.58 0.59 3/0 45678\n", false, "LoadavgGarbled"},
		{"negative", "0.52 0.58 0.59 3/-1234 45678\n", false, "LoadavgGarbled"},
		{"exponent", "0.52 0.58 0.59 3/1e3 45678\n", false, "LoadavgGarbled"},
		{"2^63", "0.52 0.58 0.59 3/9223372036854775808 45678\n", false, "LoadavgGarbled"},
	})
	for path, thing := range map[string]string{"proc/sys/kernel/pid_max": "PIDMax", "proc/sys/kernel/threads-max": "ThreadsMax"} {
		testDamage(t, path, probe, []damage{
			{"missing", "", true, thing + "Unreadable"},
			{"empty", "", false, thing + "Garbled"},
			{"binary", binary, false, thing + "Garbled"},
			{"no newline", "327", false, thing + "Garbled"},
			{"two lines", "32768\n32768\n", false, thing + "Garbled"},
			{"0", "0\n", false, thing + "Garbled"},
			{"negative", "-1\n", false, thing + "Garbled"},
			{"exponent", "3e4\n", false, thing + "Garbled"},
			{"fraction", "32768.0\n", false, thing + "Garbled"},
			{"2^31", "2147483648\n", false, thing + "Garbled"},
			{"2^63", "9223372036854775808\n", false, thing + "Garbled"},
		})
	}
}

func FuzzParseLoadavgTasks(f *testing.F) {
	f.Add("0.52 0.58 0.59 3/1234 45678\n")
	f.Add("0.52 0.58 0.59 3/1234 45678")
	f.Add(binary)
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
	f.Add(binary)
	f.Fuzz(func(t *testing.T, text string) {
		count, err := parseCount(text)
		if err == nil && (count == 0 || count >= 1<<31 || strings.TrimLeft(text, "0123456789") != "\n") {
			t.Errorf("%q counts %d", text, count)
		}
	})
}

func BenchmarkPIDObserve(b *testing.B) {
	p := NewPID(Host{Proc: "/proc"}, somePIDs)
	b.ReportAllocs()
	for b.Loop() {
		p.Observe(b.Context())
	}
}
