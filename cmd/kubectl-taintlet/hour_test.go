package main

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/recording"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/fixtures"
)

// recordedHour was recorded by "taintlet record" on a host of two
// processors on which programs were compiled and clusters ran their tests:
// between 72 and 100 % of its memory was available, and between 31,780 and 32,687
// of its tasks were free.
const recordedHour = "testdata/hour.csv.gz"

// An hour of a busy host makes no Event, and no patch but heartbeats: by the
// defaults, and by thresholds that the noise comes near to all the time.
func TestTheRecordedHourIsQuiet(t *testing.T) {
	t.Parallel()
	for name, fields := range map[string]string{
		"defaults": "",
		"near":     "memory: {availablePercent: 60}\ndisk: {paths: [/], availablePercent: 59.5}\npid: {usedPercent: 3.2, clearFactor: 1.02, freeTasks: 0, criticalUsedPercent: 0}",
	} {
		cfg, err := config.HostSchema().Load(fixtures.ConfigFile(t, fields))
		if err != nil {
			t.Fatal(err)
		}
		near, heartbeats := quietHour(t, name, cfg)
		if heartbeats != 12 || (name == "near") != (near > 1000) {
			t.Errorf("%s: %d heartbeats, %d samples near the threshold", name, heartbeats, near)
		}
	}
}

// quietHour replays the recorded hour, with a heartbeat every five minutes. It
// returns how many samples were near a threshold, and how many heartbeats were
// written.
func quietHour(t *testing.T, name string, cfg *config.Config) (near, heartbeats int) {
	t.Helper()
	file, err := os.Open(recordedHour)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := recording.NewReader(text)
	if err != nil {
		t.Fatal(err)
	}
	r := newReplay(cfg, true, io.Discard)
	step := func(in decide.Inputs) (isWritten bool) {
		in.Node, in.Facts, in.Slot = r.node, r.facts, r.slot
		var d decide.Decision
		r.state, d = decide.Step(r.policy, r.state, in, r.now)
		for _, n := range d.Notices {
			t.Errorf("%s at %s: %s %s", name, r.now, n.Kind, n.Message)
		}
		if d.Desired == nil {
			return false
		}
		if _, differs := d.Desired.Differs(r.node.Node); differs && r.now.Sub(r.from) > time.Minute {
			t.Errorf("%s: written at %s: %+v", name, r.now, d.Desired)
		}
		r.node = decide.Read(d.Desired.ApplyTo(r.node.Node))
		r.state, _ = decide.Step(r.policy, r.state, decide.Inputs{Node: r.node, Facts: r.facts, Slot: r.slot, Written: true}, r.now)
		return true
	}
	var due time.Time
	for {
		sample, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return near, heartbeats
		}
		if err != nil {
			t.Fatal(err)
		}
		r.now = sample.At
		if due.IsZero() {
			r.from, due = r.now, r.now.Add(5*time.Minute)
			r.state = decide.New(decide.Boot{ID: "replayed", At: r.now}, "replay", r.now)
		}
		for _, c := range r.subjects {
			if c.name == sample.Observation.Condition {
				sample.Observation = c.evaluate(sample)
			}
		}
		if sample.Observation.Hysteresis {
			near++
		}
		isWritten := step(decide.Inputs{Observations: []probes.Observation{sample.Observation}})
		if isWritten && r.now.Sub(r.from) > time.Minute {
			t.Errorf("%s: patched at %s for %+v", name, r.now, sample.Observation)
		}
		if !r.now.Before(due) {
			due = due.Add(5 * time.Minute)
			if step(decide.Inputs{Refresh: true}) {
				heartbeats++
			}
		}
	}
}
