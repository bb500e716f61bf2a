package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/measure/bench/footprint"
)

func someLatencies() []latency {
	var all []latency
	for _, u := range subjects() {
		all = append(all, latency{Title: u.title, Thresholds: "here", Runs: []outcome{{Own: 200 * time.Millisecond, Condition: 7 * time.Second, Taint: 8 * time.Second}}})
	}
	return all
}

// A run that measured only some parts is completed by another one of the same day,
// commit and machine, and by no other.
func TestARunCompletesAnother(t *testing.T) {
	origin := measure.Origin{Date: "2026-11-22", Commit: "abc", Machine: "this"}
	folder := t.TempDir()
	first := &figures{Origin: origin, HotPaths: &hotPaths{Raw: "raw", Compared: "text"}, Latencies: someLatencies()}
	if first.isComplete() {
		t.Error("a run without a footprint is complete")
	}
	if _, err := first.write(folder); err != nil {
		t.Fatal(err)
	}
	second := &figures{Origin: origin, Footprint: &footprint.Figures{}}
	if err := second.completeFrom(folder); err != nil {
		t.Fatal(err)
	}
	if !second.isComplete() || second.HotPaths.Raw != "raw" || second.HotPaths.Compared != "text" {
		t.Errorf("%+v", second)
	}
	for name, other := range map[string]figures{
		"commit":  {Origin: measure.Origin{Date: "2026-11-22", Commit: "def", Machine: "this"}},
		"machine": {Origin: measure.Origin{Date: "2026-11-22", Commit: "abc", Machine: "that"}},
		"day":     {Origin: measure.Origin{Date: "2026-11-23", Commit: "abc", Machine: "this"}},
		"short":   {Origin: origin, Short: true},
	} {
		if err := other.completeFrom(folder); err != nil || other.HotPaths != nil || other.Latencies != nil {
			t.Errorf("another %s: %v %+v", name, err, other)
		}
	}
	dirty := origin
	dirty.Commit = "abc-dirty"
	if _, err := (&figures{Origin: dirty, Latencies: someLatencies()}).write(folder); err != nil {
		t.Fatal(err)
	}
	again := &figures{Origin: dirty}
	if err := again.completeFrom(folder); err != nil || again.Latencies != nil {
		t.Errorf("a dirty checkout may have been another one: %v %+v", err, again)
	}
}

func TestACompleteRun(t *testing.T) {
	for name, change := range map[string]func(*figures){
		"short":            func(f *figures) { f.Short = true },
		"no hot paths":     func(f *figures) { f.HotPaths = nil },
		"one benchmark":    func(f *figures) { f.HotPaths.LeftOut = "BenchmarkRound" },
		"no peers":         func(f *figures) { f.Footprint.LeftOut = "peers" },
		"a latency lacks":  func(f *figures) { f.Latencies = f.Latencies[1:] },
		"nothing is wrong": func(*figures) {},
	} {
		f := &figures{HotPaths: &hotPaths{}, Footprint: &footprint.Figures{}, Latencies: someLatencies()}
		change(f)
		if got, want := f.isComplete(), name == "nothing is wrong"; got != want {
			t.Errorf("%s: complete is %t", name, got)
		}
	}
}

func TestRender(t *testing.T) {
	f := &figures{
		Origin: measure.Origin{Date: "2026-11-22", Commit: "abc-dirty", Kernel: "6.1"}, Failed: []string{hotPathsPart},
		Footprint: &footprint.Figures{Seconds: 600, WarmUp: 120, Peers: 7, Taintlet: footprint.Program{RSS: 15}, Exporter: footprint.Program{RSS: 20}},
		Latencies: someLatencies(),
	}
	folder := t.TempDir()
	path, err := f.write(folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2026-11-22", "abc-dirty", "Linux 6.1", "it failed: hotpaths", "for 10.0 min after 2.0 min", "7 peers",
		"| RSS | 15.0 MiB | 20.0 MiB | 0.75 |", "| memory | 0.20 | 0.20 | 8.00 | 8.00 | 40.0 | 0.03 |",
		"| from threshold to taint, median | memory 8.0 s, PIDs 8.0 s, disk 8.0 s | memory 0.2 s, PIDs 0.2 s, disk 0.2 s |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "2026-11-22.txt")); err == nil {
		t.Error("there is a raw output of benchmarks that were not run")
	}
}
