package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/fixtures"
	"github.com/taintlet/taintlet/test/process"
)

// recordWhile records a host until do has returned, and then sends SIGTERM. do is
// given what waits for so many further samples of each condition.
func recordWhile(t *testing.T, host *fixtures.Host, path string, do func(further func(samples int))) {
	t.Helper()
	var stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), agent.Path(t), append([]string{"record", path}, host.Flags()...)...) //nolint:gosec // our own binary
	command.Stderr = &stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	do(func(samples int) {
		t.Helper()
		want := countSamples(path) + samples
		for deadline := time.Now().Add(time.Minute); countSamples(path) < want; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("no further %d samples within a minute: %s", samples, &stderr)
			}
		}
	})
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := process.CodeOf(t, command.Wait()); code != 0 || stderr.Len() > 0 {
		t.Errorf("recording: exit code %d, %s", code, &stderr)
	}
}

// countSamples returns how many samples of memory a recording has.
func countSamples(path string) int {
	text, _ := os.ReadFile(path) // there may be none yet
	return strings.Count(string(text), ",MemoryPressure,")
}

// A host is recorded in two runs into one file. Its memory is enough by default, and
// would not have been with another threshold. The simulator reads the same file.
func TestReplayOfARecordedHost(t *testing.T) {
	host, path := fixtures.NewHost(t), filepath.Join(t.TempDir(), "host.csv")
	recordWhile(t, host, path, func(further func(int)) {
		further(1)
		host.Memory(25)
		further(1)
	})
	host.Tasks(31000)
	recordWhile(t, host, path, func(further func(int)) { further(3) })

	code, out, stderr := program.Call(t, "replay", path)
	if code != 0 || strings.Contains(out, "MemoryPressure      OK →") || !strings.Contains(out, "PIDPressure         OK → Degraded (used 31000 of 32768 tasks (94.6 %, 1768 free)") {
		t.Errorf("by the defaults: exit code %d, %s\n%s", code, out, stderr)
	}
	try := fixtures.ConfigFile(t, "memory: {availablePercent: 30}\npid: {usedPercent: 99, freeTasks: 0, criticalUsedPercent: 0}")
	code, out, stderr = program.Call(t, "replay", "--config", try, path)
	if code != 0 || strings.Contains(out, "PIDPressure         OK →") {
		t.Errorf("by others: exit code %d, %s\n%s", code, out, stderr)
	}
	for _, want := range []string{
		"  MemoryPressure      OK → Degraded (available 4 GiB of 16 GiB (25.0 %), threshold 30 %",
		"\n                      sets node.kubernetes.io/memory-pressure:NoSchedule\n",
		"NetworkUnavailable: the levels are those that were recorded.",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}

	simulator, err := process.BuildProgram(t.Context(), "test/simulate", t.TempDir(), process.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	simulated, err := exec.CommandContext(t.Context(), simulator, "--input", path).CombinedOutput() //nolint:gosec // our own binary
	if err != nil || !strings.Contains(string(simulated), "PIDPressure         taintlet        1") {
		t.Errorf("the simulator: %v\n%s", err, simulated)
	}
}

// replayText returns what the binary says of a recording.
func replayText(t *testing.T, recording string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "recorded.csv")
	if err := os.WriteFile(path, []byte(recording), 0o600); err != nil {
		t.Fatal(err)
	}
	return program.Call(t, append([]string{"replay", path}, args...)...)
}

// seconds are lines of one condition, one a second, and the time after them.
func seconds(from time.Time, count int, fields string) (string, time.Time) {
	var text strings.Builder
	for range count {
		text.WriteString(from.Format(time.RFC3339) + "," + fields + "\n")
		from = from.Add(time.Second)
	}
	return text.String(), from
}

// Samples without inputs are replayed by their level: set by the second bad sample,
// Critical a minute later, OK two minutes after the first good one.
func TestReplayOfLevels(t *testing.T) {
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	critical, then := seconds(noon, 100, "MemoryPressure,Critical")
	good, _ := seconds(then, 200, "MemoryPressure,OK")
	recording := "time,condition,level\n" + critical + good
	evict := fixtures.ConfigFile(t, `eviction: {slots: 1}
rules:
- {condition: MemoryPressure, level: Degraded, taint: {key: example.com/memory, value: "low", effect: NoSchedule}}
- {condition: MemoryPressure, level: Critical, taint: {key: example.com/memory, effect: NoExecute}}`)
	code, out, stderr := replayText(t, recording, "--config", evict)
	changes, summary, _ := strings.Cut(out, "\n\n")
	want := []string{
		"2026-01-31T12:00:01Z  MemoryPressure      OK → Degraded (recorded as Critical)",
		"                      sets example.com/memory=low:NoSchedule",
		"2026-01-31T12:01:00Z  MemoryPressure      Degraded → Critical (recorded as Critical)",
		"                      sets example.com/memory:NoExecute",
		"2026-01-31T12:01:40Z  MemoryPressure      Critical → Degraded (recorded as OK)",
		"                      removes example.com/memory:NoExecute",
		"2026-01-31T12:03:40Z  MemoryPressure      Degraded → OK (recorded as OK)",
		"                      removes example.com/memory=low:NoSchedule",
	}
	if code != 0 || !slices.Equal(strings.Split(changes, "\n"), want) {
		t.Errorf("exit code %d, %s\n%s\nwant\n%s", code, stderr, changes, strings.Join(want, "\n"))
	}
	for _, part := range []string{
		"MemoryPressure  300      100  300          1    1         1        3m39s       OK\n",
		"MemoryPressure: 300 of 300 samples keep their recorded level",
		"An eviction slot is taken to be free.",
	} {
		if !strings.Contains(summary, part) {
			t.Errorf("%q is missing in\n%s", part, summary)
		}
	}
}

// What is no recording is refused with the place and what is allowed.
func TestGarbageIsNotReplayed(t *testing.T) {
	const header = "time,condition,level,certain,hysteresis,severity,reason,inputs\n"
	const begin = header + "2026-01-31T12:00:00Z,MemoryPressure,"
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "the file is empty; its first line must be time,condition,level,certain"},
		"header only":   {header, "no sample follows the header"},
		"other header":  {"when,what\n", `line 1, column "when": must be one of time, condition, level, certain, hysteresis, severity, reason, inputs`},
		"column twice":  {"time,time\n", `line 1, column "time": is there twice`},
		"no level":      {"time,condition\n", `line 1: column "level" is missing; the header must have time, condition, level`},
		"too few":       {header + "2026-01-31T12:00:00Z,MemoryPressure\n", "line 2: has 2 columns; must have 8, as the header"},
		"time":          {header + "noon,MemoryPressure,OK,,,,,\n", `line 2, column time: "noon": must be RFC 3339, such as 2026-01-31T12:00:00Z`},
		"year":          {header + "1970-01-31T12:00:00Z,MemoryPressure,OK,,,,,\n", `line 2, column time: "1970-01-31T12:00:00Z": must be in the years 1971 to 2200`},
		"time again":    {begin + "OK,,,,,\n2026-01-31T12:00:00Z,MemoryPressure,OK,,,,,\n", "line 3, column time: must be later than that of the sample of MemoryPressure before it"},
		"time back":     {begin + "OK,,,,,\n2026-01-31T11:00:00Z,PIDPressure,OK,,,,,\n", "line 3, column time: must not be before that of the line above, 2026-01-31T12:00:00Z"},
		"condition":     {header + "2026-01-31T12:00:00Z,Memory,OK,,,,,\n", `line 2, column condition: "Memory": must be one of MemoryPressure, DiskPressure, PIDPressure, NetworkUnavailable`},
		"level":         {begin + "bad,,,,,\n", `line 2, column level: "bad": must be one of OK, Degraded, Critical, Unknown`},
		"certain":       {begin + "Degraded,1,,,,\n", `line 2, column certain: "1": must be true or false`},
		"certainly OK":  {begin + "OK,true,,,,\n", "line 2, column certain: true goes with Degraded and Critical only, not with OK"},
		"hysteresis":    {begin + "Degraded,,true,,,\n", "line 2, column hysteresis: true goes with level OK only, not with Degraded"},
		"severity":      {begin + "OK,,,101,,\n", `line 2, column severity: "101": must be a whole number of 0 to 100`},
		"reason":        {begin + "OK,,,,\x1b[2J,\n", `line 2, column reason: "\x1b[2J": must be a word of letters and digits`},
		"inputs":        {begin + "OK,,,,,available\n", `line 2, column inputs: "available": must be NAME=VALUE or NAME:PATH=VALUE`},
		"path":          {begin + "OK,,,,,available:%zz=1\n", `line 2, column inputs: "available:%zz=1": must be NAME=VALUE or NAME:PATH=VALUE, PATH as in a URL`},
		"value":         {begin + "OK,,,,,available=-1\n", `line 2, column inputs: "available=-1": the value must be a number of 0 to 1e+18`},
		"not a number":  {begin + "OK,,,,,available=NaN\n", `line 2, column inputs: "available=NaN": the value must be`},
		"quotes":        {begin + "OK,,,,,\"x\n", "line 2, character "},
		"line too long": {header + strings.Repeat("x", 2<<20), "line 2: must have at most 1048576 bytes"},
		"binary":        {"\x7fELF\x02\x01\x01\x00", "line 1, column "},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := replayText(t, c.text)
			if code != 2 || !strings.Contains(stderr, c.want) || strings.ContainsRune(stderr, '\x1b') {
				t.Errorf("exit code %d, %q\nwant %q", code, stderr, c.want)
			}
		})
	}
}
