package sampling

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/metrics"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/fixtures"
)

// The next sample follows soon while it decides more, and not when the level is
// decided already.
func TestDue(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		name    string
		decided probes.Level
		last    probes.Observation
		want    time.Duration
	}{
		{"good", probes.OK, probes.Observation{Level: probes.OK}, 5 * time.Second},
		{"bad", probes.OK, probes.Observation{Level: probes.Degraded}, 700 * time.Millisecond},
		{"near and due", probes.OK, probes.Observation{Level: probes.OK, Hysteresis: true, Due: now}, 700 * time.Millisecond},
		{"unknown and due", probes.OK, probes.Observation{Level: probes.Unknown, Due: now}, 700 * time.Millisecond},
		{"due in 3 s", probes.OK, probes.Observation{Level: probes.Unknown, Due: now.Add(3 * time.Second)}, 3 * time.Second},
		{"due in 10 s", probes.OK, probes.Observation{Level: probes.Unknown, Due: now.Add(10 * time.Second)}, 4 * time.Second},
		{"unknown", probes.OK, probes.Observation{Level: probes.Unknown}, 4 * time.Second},
		{"decided", probes.Degraded, probes.Observation{Level: probes.Unknown, Due: now}, 4 * time.Second},
	} {
		r := &runner{start: now, period: 5 * time.Second, step: time.Second, followUp: 700 * time.Millisecond}
		r.decided.Store(int32(test.decided))
		if got := r.due(now, test.last); got != test.want {
			t.Errorf("%s: due after %s, want %s", test.name, got, test.want)
		}
	}
}

// waking is a probe that is woken as long as it runs.
type waking struct {
	probes.PeriodOnly
	wake  chan struct{}
	ended bool
}

func (w *waking) Condition() probes.Condition { return probes.DiskPressure }
func (w *waking) Wake() <-chan struct{}       { return w.wake }

func (w *waking) Observe(context.Context) probes.Observation {
	return probes.Observation{Condition: probes.DiskPressure, Level: probes.OK}
}

func (w *waking) Run(ctx context.Context) {
	select {
	case w.wake <- struct{}{}:
	case <-ctx.Done():
	}
	<-ctx.Done()
	time.Sleep(time.Second) // it has something to close
	w.ended = true
}

// A probe runs while its runner does: it wakes it, and ends before it, with the agent or when
// its condition is dropped.
func TestAProbeRunsWithItsRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { testAProbeRunsWithItsRunner(t, func(_ *Runners, cancel func()) { cancel() }) })
	synctest.Test(t, func(t *testing.T) {
		testAProbeRunsWithItsRunner(t, func(r *Runners, _ func()) { r.Stop(probes.DiskPressure) })
	})
}

func testAProbeRunsWithItsRunner(t *testing.T, end func(r *Runners, cancel func())) {
	probe, ended := &waking{wake: make(chan struct{})}, make(chan error)
	r := NewRunners(func(config.Condition) probes.Probe { return probe }, func(ctx context.Context, _ string, run func(context.Context) error) {
		go func() { ended <- run(ctx) }()
	}, metrics.New("test"), slog.New(slog.DiscardHandler))
	cfg := config.Default()
	disk := fixtures.Section[*config.Disk](cfg)
	disk.Period.Duration = time.Hour
	c, _ := cfg.Condition(probes.DiskPressure)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.Start(ctx, c, probes.OK)
	for range 2 { // the second one only because the probe was woken
		if s := <-r.Samples; !r.IsCurrent(s) {
			t.Errorf("a sample of another probe: %+v", s)
		}
	}
	end(r, cancel)
	if err := <-ended; !errors.Is(err, context.Canceled) || !probe.ended {
		t.Errorf("%v, the probe ended: %t", err, probe.ended)
	}
}
