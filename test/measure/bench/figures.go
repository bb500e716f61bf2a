package main

import (
	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/measure/bench/footprint"
)

// figures are what a run measured. A part that was not measured is nil.
type figures struct {
	measure.Origin
	// Short: they were measured too quickly to mean anything.
	Short bool
	// Failed are parts that were begun and not measured.
	Failed    []string
	Footprint *footprint.Figures
	Latencies []latency
}

// isComplete reports whether everything was measured.
func (f *figures) isComplete() bool {
	return !f.Short && f.Footprint != nil && f.Footprint.LeftOut == "" && len(f.Latencies) == len(subjects())
}
