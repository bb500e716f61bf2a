package sampling

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/probes"
)

// A culprit is logged once in each incident, and that none can be named once for all.
func TestCulpritLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	var l culpritLog
	bad := probes.Observation{Condition: probes.MemoryPressure, Level: probes.Degraded, Culprit: probes.Culprit{Kind: "pod", Name: "a", Command: "java", Took: 5 << 30, TookText: "5 GiB in 2.7 s"}}
	hidden := probes.Observation{Level: probes.Degraded, Culprit: probes.Culprit{Unreadable: "hidepid"}}
	other := bad
	other.Culprit.Name = "b"
	for i, step := range []struct {
		o    probes.Observation
		want int // lines from now on
	}{
		{probes.Observation{Level: probes.OK}, 0},
		{bad, 1}, {bad, 1}, {probes.Observation{Level: probes.OK, Hysteresis: true}, 1}, {bad, 1},
		{other, 2}, {probes.Observation{Level: probes.OK}, 2}, {bad, 3},
		{hidden, 4}, {probes.Observation{Level: probes.OK}, 4}, {hidden, 4},
	} {
		l.follow(step.o, log)
		if got := strings.Count(out.String(), "\n"); got != step.want {
			t.Errorf("step %d: %d lines, want %d:\n%s", i, got, step.want, out.String())
		}
	}
	if want := "condition=MemoryPressure kind=pod name=a command=java took=\"5 GiB in 2.7 s\""; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in:\n%s", want, out.String())
	}
}
