package agent

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/hostprobes"
	"github.com/taintlet/taintlet/agent/node"
	"github.com/taintlet/taintlet/agent/serve"
	"github.com/taintlet/taintlet/agent/slots"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// newBenchLoop returns a loop that has seen its Node and runs no worker. Its probes read
// this host.
func newBenchLoop(b *testing.B) *loop {
	b.Helper()
	begin := time.Now()
	l := newLoop(&Agent{
		Config: config.Default(), NewProbe: hostprobes.NewProbe(probes.Host{Root: "/", Proc: "/proc", Sys: "/sys"}),
		Client: node.NewMemory("bench", slog.New(slog.DiscardHandler)), Slots: slots.Rehearsed{}, Recorder: &Told{},
		Log: slog.New(slog.DiscardHandler), Instance: "bench", Boot: decide.Boot{ID: "boot", At: begin}, Now: time.Now, Version: "bench",
	}, nil)
	l.newest = decide.Read(&taints.Node{Name: "bench", UID: "uid", ResourceVersion: "1"})
	l.observePolicy(node.PolicyAnswer{IsPresent: true, Version: "1"})
	return l
}

// sampler returns what takes one sample of a condition and decides on it, as the runner
// and the loop do.
func (l *loop) sampler(ctx context.Context, name probes.Condition) func() {
	c, _ := l.cfg.Condition(name)
	probe := l.NewProbe(c)
	var measures []probes.Measure
	return func() {
		o := probe.Observe(ctx)
		if measurer, ok := probe.(probes.Measurer); ok {
			measures = measurer.Measures(measures[:0])
		}
		l.metrics.Sampled(o, measures)
		l.evaluate(decide.Inputs{Observations: []probes.Observation{o}})
	}
}

// BenchmarkSampleToDecision is all that an agent does of itself for a sample of
// memory, from the files to the metrics.
func BenchmarkSampleToDecision(b *testing.B) {
	for _, c := range []probes.Condition{probes.MemoryPressure, probes.DiskPressure, probes.PIDPressure} {
		b.Run(string(c), func(b *testing.B) {
			sample := newBenchLoop(b).sampler(b.Context(), c)
			sample()
			b.ReportAllocs()
			for b.Loop() {
				sample()
			}
		})
	}
}

// BenchmarkStepOfTheLoop is what follows a sample: the decision, and its metrics.
func BenchmarkStepOfTheLoop(b *testing.B) {
	for name, level := range map[string]probes.Level{"steady": probes.OK, "tainted": probes.Degraded} {
		b.Run(name, func(b *testing.B) {
			l := newBenchLoop(b)
			o := probes.Observation{Condition: probes.MemoryPressure, Level: level, Severity: 10, Reason: "MemoryLow", Message: "bench"}
			in := decide.Inputs{Observations: []probes.Observation{o}}
			l.evaluate(in)
			b.ReportAllocs()
			for b.Loop() {
				l.metrics.Sampled(o, nil)
				l.evaluate(in)
			}
		})
	}
}

// BenchmarkScrape is one GET of /metrics, from the host itself: nobody holds that back.
func BenchmarkScrape(b *testing.B) {
	l := newBenchLoop(b)
	for _, c := range config.Default().Names() {
		l.sampler(b.Context(), c)()
	}
	handler := (&serve.Server{Metrics: l.metrics, Health: l.health, Fleet: l.fleet, Now: l.Now, Log: l.Log}).Handler()
	here := netip.MustParseAddrPort("127.0.0.1:4808")
	request := httptest.NewRequest("GET", "/metrics", nil)
	request.RemoteAddr = here.String()
	request = request.WithContext(context.WithValue(b.Context(), http.LocalAddrContextKey, net.TCPAddrFromAddrPort(here)))
	var w *httptest.ResponseRecorder
	b.ReportAllocs()
	for b.Loop() {
		w = httptest.NewRecorder()
		if handler.ServeHTTP(w, request); w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
	b.ReportMetric(float64(w.Body.Len()), "bytes")
}
