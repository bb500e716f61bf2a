package soak

import (
	"testing"
)

const page = `# HELP go_goroutines Number of goroutines that currently exist.
# TYPE go_goroutines gauge
go_goroutines 31
go_memstats_heap_inuse_bytes 3.145728e+06
taintlet_node_writes_total{result="error"} 2
taintlet_node_writes_total{result="ok"} 40
taintlet_probe_samples_total{condition="MemoryPressure",level="OK"} 100
taintlet_probe_samples_total{condition="MemoryPressure",level="Degraded"} 7
taintlet_probe_samples_total{condition="PIDPressure",level="OK"} 90
`

func TestSeries(t *testing.T) {
	t.Parallel()
	s := &scraper{page: page}
	for _, c := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"go_goroutines", nil, 31},
		{"taintlet_node_writes_total", nil, 42},
		{"taintlet_node_writes_total", []string{`result="ok"`}, 40},
		{"taintlet_probe_samples_total", []string{`condition="MemoryPressure"`}, 107},
		{"taintlet_probe_samples_total", []string{`condition="MemoryPressure"`, `level="OK"`}, 100},
		{"taintlet_node_writes", nil, 0},
	} {
		if got := s.sum(c.name, c.labels...); got != c.want {
			t.Errorf("%s %v: %g, want %g", c.name, c.labels, got, c.want)
		}
	}
	if one := s.complete(sample{Threads: 3}); one.Goroutines != 31 || one.Heap != 3<<20 || one.Threads != 3 {
		t.Errorf("%+v", one)
	}
}
