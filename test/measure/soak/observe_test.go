package soak

import (
	"os"
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

// What is seen of a process is what that holds: this test's own.
func TestObserve(t *testing.T) {
	before, err := observe(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	kept := make([]byte, 32<<20)
	for i := range kept {
		kept[i] = 1
	}
	var files []*os.File
	for range 20 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close() //nolint:errcheck // nothing was written
		files = append(files, f)
	}
	after, err := observe(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if grown := int64(after.Anon) - int64(before.Anon); grown < int64(len(kept)) || after.RSS < after.Anon {
		t.Errorf("%d bytes more were seen of %d, RSS %d", grown, len(kept), after.RSS)
	}
	if more := after.Descriptors - before.Descriptors; more < len(files)-5 || before.Threads == 0 {
		t.Errorf("%d descriptors more were seen of %d, %d threads", more, len(files), before.Threads)
	}
}
