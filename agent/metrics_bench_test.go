package agent

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/hostprobes"
	"github.com/taintlet/taintlet/agent/slots"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// newBenchLoop returns a loop that has seen its Node and runs no worker, and its
// runners by condition. The probes read this host.
func newBenchLoop(b *testing.B) (*loop, map[probes.Condition]*runner) {
	b.Helper()
	cfg := config.Default()
	begin := time.Now()
	l := newLoop(&Agent{
		Config: cfg, NewProbe: hostprobes.Environment{Host: probes.Host{Root: "/", Proc: "/proc", Sys: "/sys"}}.NewProbe,
		Client: NewOffline("bench", slog.New(slog.DiscardHandler)), Slots: slots.Offline{}, Recorder: &Told{},
		Log: slog.New(slog.DiscardHandler), Instance: "bench", Boot: decide.Boot{ID: "boot", At: begin}, Now: time.Now, Version: "bench",
	}, workers{})
	l.node = decide.Read(&taints.Node{Name: "bench", UID: "uid", ResourceVersion: "1"})
	l.policyKnown, l.facts.KeepPolicy = true, true
	running := map[probes.Condition]*runner{}
	for _, c := range cfg.Conditions {
		running[c.Name] = &runner{probe: l.NewProbe(c), metrics: l.metrics, log: l.Log}
	}
	return l, running
}

// take takes one sample and decides on it, as the loop does.
func (l *loop) take(ctx context.Context, r *runner) {
	o, _ := r.observe(ctx)
	l.metrics.samples.observe(o)
	l.step(decide.Inputs{Observations: []probes.Observation{o}})
}

// BenchmarkSampleToDecision is all that an agent does of itself for a sample of
// memory, from the files to the metrics.
func BenchmarkSampleToDecision(b *testing.B) {
	for _, c := range []probes.Condition{probes.MemoryPressure, probes.DiskPressure, probes.PIDPressure} {
		b.Run(string(c), func(b *testing.B) {
			l, running := newBenchLoop(b)
			l.take(b.Context(), running[c])
			b.ReportAllocs()
			for b.Loop() {
				l.take(b.Context(), running[c])
			}
		})
	}
}

// BenchmarkStepOfTheLoop is what follows a sample: the decision, and its metrics.
func BenchmarkStepOfTheLoop(b *testing.B) {
	for name, level := range map[string]probes.Level{"steady": probes.OK, "tainted": probes.Degraded} {
		b.Run(name, func(b *testing.B) {
			l, _ := newBenchLoop(b)
			o := probes.Observation{Condition: probes.MemoryPressure, Level: level, Severity: 10, Reason: "MemoryLow", Message: "bench"}
			in := decide.Inputs{Observations: []probes.Observation{o}}
			l.step(in)
			b.ReportAllocs()
			for b.Loop() {
				l.metrics.samples.observe(o)
				l.step(in)
			}
		})
	}
}

// BenchmarkScrape is one GET of /metrics.
func BenchmarkScrape(b *testing.B) {
	l, running := newBenchLoop(b)
	for _, c := range config.Default().Names() {
		l.take(b.Context(), running[c])
	}
	handler := l.handler()
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		b.ReportMetric(float64(w.Body.Len()), "bytes")
	}
}
