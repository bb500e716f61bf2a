package decide_test

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
)

// BenchmarkStep takes one observation per step: of a healthy host, of one that
// is tainted for long, and of one that changes its mind all the time.
func BenchmarkStep(b *testing.B) {
	for name, levels := range map[string][]probes.Level{
		"steady":   {probes.OK},
		"tainted":  {probes.Degraded},
		"flapping": {probes.OK, probes.Degraded, probes.Degraded, probes.OK, probes.OK},
	} {
		b.Run(name, func(b *testing.B) {
			cfg := config.Default().Policy()
			w := newWorld()
			in := decide.Inputs{Node: w.read, Facts: w.facts, Observations: make([]probes.Observation, 1)}
			state := w.state
			now := w.clock()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				now = now.Add(time.Second)
				in.Observations[0] = probes.Observation{Condition: probes.MemoryPressure, Level: levels[i%len(levels)]}
				var d decide.Decision
				state, d = decide.Step(cfg, state, in, now)
				if in.Written = d.Desired != nil; in.Written { // as an API server does
					b.StopTimer()
					in.Node = decide.Read(d.Desired.ApplyTo(in.Node.Node))
					b.StartTimer()
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

// BenchmarkRead takes in a version of a Node that was tainted by the agent: what
// follows each event of the watch.
func BenchmarkRead(b *testing.B) {
	w := newWorld()
	for range 3 {
		w.now += time.Second
		w.sample(probes.Observation{Condition: probes.MemoryPressure, Level: probes.Degraded, Reason: "MemoryLow", Message: "low"})
	}
	if len(w.node.Taints) == 0 {
		b.Fatal("the Node is not tainted")
	}
	b.ReportAllocs()
	for b.Loop() {
		decide.Read(w.node)
	}
}
