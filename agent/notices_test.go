package agent_test

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// told collects what the agent logs and which Events it writes.
type told struct {
	mu     sync.Mutex
	log    bytes.Buffer
	events []toldEvent
}

type toldEvent struct {
	at              time.Time
	reason, message string
}

func (w *told) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(line)
}

func (w *told) Event(_ *taints.Node, _, reason, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, toldEvent{time.Now(), reason, message})
}

func (w *told) Eventf(runtime.Object, string, string, string, ...any) {}

func (w *told) AnnotatedEventf(runtime.Object, map[string]string, string, string, string, ...any) {}

// take returns the log since the last call.
func (w *told) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.log.Reset()
	return w.log.String()
}

// runTold runs an agent whose log, at the default level, and Events are kept.
func runTold(t *testing.T, cfg *config.Config, test func(t *testing.T, by map[probes.Condition]*probe, w *told)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, by := &told{}, map[probes.Condition]*probe{}
		a := &agent.Agent{
			Config: cfg, NewProbe: func(c config.Condition) probes.Probe { return by[c.Name] }, Recorder: w,
			Log: slog.New(slog.NewTextHandler(w, nil)),
		}
		runInBubble(t, a, by, func(t *testing.T, by map[probes.Condition]*probe, _ *client) { test(t, by, w) })
	})
}

// A quiet hour logs nothing at the default level, and writes no Event.
func TestAQuietHourLogsNothing(t *testing.T) {
	runTold(t, config.Default(), func(t *testing.T, by map[probes.Condition]*probe, w *told) {
		if w.take() == "" {
			t.Error("the start is not logged: this test would see nothing")
		}
		for range 360 { // a sample now and then that sets nothing
			by[probes.MemoryPressure].set(probes.Unknown)
			time.Sleep(5 * time.Second)
			by[probes.MemoryPressure].set(probes.OK)
			time.Sleep(5 * time.Second)
		}
		if log := w.take(); log != "" || len(w.events) > 0 {
			t.Errorf("logged:\n%s\nEvents: %v", log, w.events)
		}
	})
}

// A change is one line, with all that is known of it.
func TestAChangeIsOneLineWithAllFields(t *testing.T) {
	cfg := config.Default()
	for i, rule := range cfg.Rules {
		if rule.Condition == probes.MemoryPressure {
			cfg.Rules[i].Taint = decide.Taint{Key: "example.com/tired", Value: "very", Effect: "NoSchedule"}
		}
	}
	runTold(t, cfg, func(t *testing.T, by map[probes.Condition]*probe, w *told) {
		w.take()
		by[probes.MemoryPressure].set(probes.Degraded)
		time.Sleep(10 * time.Second)
		line(t, w.take(), `msg="condition changed" condition=MemoryPressure from=OK to=Degraded reason=Seen message="Degraded; sets taint example.com/tired=very:NoSchedule"`,
			`msg="taints of the node changed" from=[] to="[example.com/tired=very:NoSchedule]"`)
		by[probes.MemoryPressure].set(probes.OK)
		time.Sleep(4 * time.Minute)
		line(t, w.take(), `msg="condition changed" condition=MemoryPressure from=Degraded to=OK reason=Seen message="OK; removes taint example.com/tired=very:NoSchedule"`,
			`msg="taints of the node changed" from="[example.com/tired=very:NoSchedule]" to=[]`)
		if last := w.events[len(w.events)-1]; len(w.events) != 2 || !strings.HasSuffix(last.message, "; removes taint example.com/tired=very:NoSchedule") {
			t.Errorf("Events: %v", w.events)
		}
	})
}

// line checks that the log has these lines and no others.
func line(t *testing.T, log string, want ...string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), log)
	}
	for i := range want {
		if !strings.HasSuffix(lines[i], want[i]) {
			t.Errorf("logged %s\nwant   %s", lines[i], want[i])
		}
	}
}

// However fast a condition changes, a minute has at most one Event about its level,
// and the last one tells what is so.
func TestAConditionHasOneEventAMinute(t *testing.T) {
	cfg := config.Default()
	cfg.WriteBudget.Burst, cfg.WriteBudget.Interval.Duration = 1000, time.Second
	for _, c := range cfg.Conditions {
		d := &c.Common().Debounce
		d.BadSamples, d.Samples, d.ClearAfter.Duration, d.MaxClearAfter.Duration = 1, 1, 0, 0
	}
	runTold(t, cfg, func(t *testing.T, by map[probes.Condition]*probe, w *told) {
		r := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // a fixed seed
		for range 600 {
			by[probes.PIDPressure].set([]probes.Level{probes.OK, probes.Degraded}[r.IntN(2)])
			time.Sleep(5 * time.Second)
		}
		by[probes.PIDPressure].set(probes.Degraded)
		time.Sleep(2 * time.Minute)
		settled := len(w.events)
		time.Sleep(5 * time.Minute)
		if len(w.events) != settled {
			t.Errorf("nothing changed, and %d more Events", len(w.events)-settled)
		}
		for i, e := range w.events {
			if i > 0 && e.at.Sub(w.events[i-1].at) < time.Minute {
				t.Fatalf("two Events within %s: %v", e.at.Sub(w.events[i-1].at), w.events[i-1:i+1])
			}
		}
		if n := len(w.events); n < 40 || w.events[n-1].reason != "HostPIDPressureDegraded" {
			t.Errorf("%d Events, the last one %v", n, w.events[n-1])
		}
		if changes := strings.Count(w.take(), "condition changed"); changes < 100 {
			t.Errorf("only %d changes: the samples are too calm for this test", changes)
		}
	})
}

// The Event and the line of a condition that is OK again say of a taint that somebody else is
// to remove that it stays, not that it is gone.
func TestATaintThatStaysIsToldSo(t *testing.T) {
	cfg, err := config.HostSchema().Decode([]byte(header + "rules: [{condition: DiskPressure, level: Degraded, taint: {key: example.com/look, effect: NoSchedule}, clear: manual}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	runTold(t, cfg, func(t *testing.T, by map[probes.Condition]*probe, w *told) {
		by[probes.DiskPressure].set(probes.Degraded)
		time.Sleep(2 * time.Minute)
		w.take()
		by[probes.DiskPressure].set(probes.OK)
		time.Sleep(5 * time.Minute)
		w.mu.Lock()
		last := w.events[len(w.events)-1]
		w.mu.Unlock()
		if last.reason != "HostDiskPressureOK" || last.message != "OK; taint example.com/look:NoSchedule stays until an operator removes it" {
			t.Errorf("%+v", last)
		}
		if log := w.take(); !strings.Contains(log, "to=OK") || !strings.Contains(log, "example.com/look:NoSchedule stays") {
			t.Error(log)
		}
	})
}
