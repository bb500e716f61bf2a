package probetest

import (
	"testing"

	"github.com/taintlet/taintlet/probes"
)

// Measures checks what a probe tells of its newest sample: want and nothing else, and
// without an allocation.
func Measures(t testing.TB, p probes.Measurer, want ...probes.Measure) {
	t.Helper()
	got := p.Measures(nil)
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(want):
			t.Errorf("one more measure: %+v", got[i])
		case i >= len(got):
			t.Errorf("no measure %+v", want[i])
		case got[i] != want[i]:
			t.Errorf("measure %+v, want %+v", got[i], want[i])
		}
	}
	room := make([]probes.Measure, 0, len(got))
	if n := testing.AllocsPerRun(10, func() { p.Measures(room) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
