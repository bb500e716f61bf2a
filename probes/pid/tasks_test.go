package pid

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

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
