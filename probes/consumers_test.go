package probes_test

import (
	"context"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/consumers"
	"github.com/taintlet/taintlet/probes/memory"
	"github.com/taintlet/taintlet/test/probetest"
)

// BenchmarkSampleBesideReading tells how late a sample of memory ends that is due while 5,000
// processes are read without a pause, on the one CPU that the chart gives an agent, and how
// late it ends without that. In an agent, reading has 1 % of the time.
func BenchmarkSampleBesideReading(b *testing.B) {
	for range 5000 {
		sleeper := exec.CommandContext(b.Context(), "sleep", "600")
		if err := sleeper.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			sleeper.Process.Kill() //nolint:errcheck // it sleeps
			sleeper.Wait()         //nolint:errcheck // it was killed
		})
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, name := range []string{"alone", "beside reading"} {
		b.Run(name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			var reading sync.WaitGroup
			if name != "alone" {
				reading.Go(func() {
					for ctx.Err() == nil {
						if _, err := consumers.NewReader(probetest.HostAt("/")).Read(consumers.Soon, 0); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			late(b)
			cancel()
			reading.Wait()
		})
	}
}

// late takes a sample each 10 ms and reports how long after that it ended.
func late(b *testing.B) {
	b.Helper()
	probe := memory.New(probetest.HostAt("/"), memory.Thresholds{AvailablePercent: 5, ClearFactor: 1.5})
	var all []time.Duration
	for b.Loop() {
		due := time.Now().Add(10 * time.Millisecond)
		time.Sleep(time.Until(due))
		probe.Observe(b.Context())
		all = append(all, time.Since(due))
	}
	slices.Sort(all)
	b.ReportMetric(0, "ns/op") // would be the time between two samples
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "ms-late-median")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "ms-late-p99")
}

// BenchmarkFarSample is a sample of memory far from its threshold, alone and with what names
// consumers around it.
func BenchmarkFarSample(b *testing.B) {
	alone := memory.New(probetest.HostAt("/"), memory.Thresholds{ClearFactor: 1.5})
	for name, p := range map[string]probes.Probe{"alone": alone, "named": consumers.Name(alone, consumers.NewReader(probetest.HostAt("/")))} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Observe(b.Context())
			}
		})
	}
}
