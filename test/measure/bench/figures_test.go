package main

import (
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/measure/bench/footprint"
)

// complete returns the figures of a run that measured everything.
func complete() *figures {
	f := &figures{
		Origin:    measure.Origin{Date: "2026-11-22", Commit: "abc-dirty", Kernel: "6.1"},
		Footprint: &footprint.Figures{Seconds: 600, WarmUp: 120, Peers: 7, Taintlet: footprint.Program{RSS: 15}, Exporter: footprint.Program{RSS: 20}},
	}
	for _, u := range subjects() {
		f.Latencies = append(f.Latencies, latency{Title: u.title, Thresholds: "here", Runs: []outcome{{Own: 200 * time.Millisecond, Condition: 7 * time.Second, Taint: 8 * time.Second}}})
	}
	return f
}

func TestACompleteRun(t *testing.T) {
	for name, change := range map[string]func(*figures){
		"short":            func(f *figures) { f.Short = true },
		"no footprint":     func(f *figures) { f.Footprint = nil },
		"no peers":         func(f *figures) { f.Footprint.LeftOut = "peers" },
		"a latency lacks":  func(f *figures) { f.Latencies = f.Latencies[1:] },
		"nothing is wrong": func(*figures) {},
	} {
		f := complete()
		change(f)
		if got, want := f.isComplete(), name == "nothing is wrong"; got != want {
			t.Errorf("%s: complete is %t", name, got)
		}
	}
}

func TestRender(t *testing.T) {
	f := complete()
	f.Failed = []string{kubeletPart}
	text := render(f)
	for _, want := range []string{
		"2026-11-22", "abc-dirty", "Linux 6.1", "it failed: kubelet", "for 10.0 min after 2.0 min", "7 peers",
		"| RSS | 15.0 MiB | 20.0 MiB | 0.75 |", "| memory | 0.20 | 0.20 | 8.00 | 8.00 | 40.0 | 0.03 |",
		"| from threshold to taint, median | memory 8.0 s, PIDs 8.0 s, disk 8.0 s | memory 0.2 s, PIDs 0.2 s, disk 0.2 s |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}
