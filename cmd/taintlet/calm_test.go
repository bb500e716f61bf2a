package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
)

// A failure that lasts is told once a minute, with what was left out; what is
// new is told at once.
func TestRepeatedLinesAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(newCalmHandler(slog.NewTextHandler(&out, nil))).With("node", "host")
		lines := func() []string {
			defer out.Reset()
			return strings.Split(strings.TrimSpace(out.String()), "\n")
		}
		for i := range 3 * 60 {
			log.Warn("cannot write the node", "error", errors.New("dial tcp: port "+fmt.Sprint(i)))
			time.Sleep(time.Second)
		}
		if got := lines(); len(got) != 3 || !strings.Contains(got[1], "leftOut=59") || !strings.Contains(got[2], "leftOut=59") {
			t.Errorf("in three minutes: %q", got)
		}
		for i := range 10 {
			log.Info("condition changed", "to", i)
			log.Info("condition changed", "to", i)
			log.Warn("probe failed", "condition", i)
		}
		if got := lines(); len(got) != 20 {
			t.Errorf("20 different lines: %q", got)
		}
		for i := range 100_000 {
			log.Warn(fmt.Sprint("another warning ", i))
			out.Reset()
		}
		h, ok := log.Handler().(*calmHandler)
		if !ok || len(h.told.lines) > maxRemembered {
			t.Errorf("%d lines are remembered", len(h.told.lines))
		}
	})
}

// A condition that comes, goes and comes again within a minute is told each time, up to a
// bound.
func TestRepeatedChangesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(newCalmHandler(slog.NewTextHandler(&out, nil)))
		flap := func(times int) (set, cleared int) {
			defer out.Reset()
			for range times {
				log.Info("condition changed", "condition", "PIDPressure", "from", "OK", "to", "Degraded")
				log.Info("condition changed", "condition", "PIDPressure", "from", "Degraded", "to", "OK")
				time.Sleep(100 * time.Millisecond)
			}
			return strings.Count(out.String(), "to=Degraded"), strings.Count(out.String(), "to=OK")
		}
		if set, cleared := flap(3); set != 3 || cleared != 3 {
			t.Errorf("of 3 flaps, %d sets and %d clears are logged", set, cleared)
		}
		if set, cleared := flap(100); set != changesInAMinute-3 || cleared != set {
			t.Errorf("of 103 flaps in a minute, 3 and %d sets, and 3 and %d clears, are logged", set, cleared)
		}
		time.Sleep(repeatAfter)
		log.Info("condition changed", "condition", "PIDPressure", "from", "OK", "to", "Degraded")
		if !strings.Contains(out.String(), "leftOut=93") {
			t.Errorf("what was left out is not told: %s", &out)
		}
	})
}

// What client-go says goes through the same handler, also by way of klog.
func TestRepeatedLinesOfLibrariesAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		klog.SetSlogLogger(slog.New(newCalmHandler(slog.NewTextHandler(&out, nil))))
		defer klog.ClearLogger()
		for i := range 2 * 60 {
			klog.ErrorS(errors.New("dial tcp: port "+fmt.Sprint(i)), "Failed to watch", "type", "Node")
			time.Sleep(time.Second)
		}
		if lines := strings.Count(out.String(), "Failed to watch"); lines != 2 {
			t.Errorf("%d lines in two minutes:\n%s", lines, out.String())
		}
	})
}

// What the API server says may repeat a megabyte of what somebody wrote. A line of
// the log does not.
func TestLinesOfTheLogAreShort(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		log := newLogger(&options{logFormat: format}, &out)
		log.Error(long, "error", fmt.Errorf("patch nodes host: %w", errors.New(long)), "reason", long)
		if out.Len() > 8<<10 {
			t.Errorf("%s: a line of %d KiB", format, out.Len()>>10)
		}
	}
}
