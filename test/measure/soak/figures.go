// Package soak watches one agent for a long time, from outside, through a week of incidents or
// at its own pace. TestSoak runs it, by make soak.
package soak

import (
	"time"

	"github.com/taintlet/taintlet/test/measure"
)

// figures are what one run measured.
type figures struct {
	measure.Origin
	Took time.Duration
	// Mode is what was watched.
	Mode    string
	Samples []sample `json:"-"`
	// Tenths are the medians of the samples, as they are kept.
	Tenths [10]tenth
	Work   []work
	// Seed is of the schedule of the incidents, Pace how many times as fast the agent
	// was; 0: there were none, and it was not.
	Seed uint64
	Pace int
	// Incidents are how many there were of each kind, Failures what they should have
	// ended in and did not.
	Incidents map[string]int
	Failures  []string
	// Ended says how the process ended before it was told to; empty: it did not.
	Ended string
	// Taints of ours that were on the Node at the end.
	Taints []string
}

// sample is what the agent's process held at one moment.
type sample struct {
	// At is how much of the run was over, from 0 to 1.
	At float64
	// RSS, Anon and Heap are bytes. Heap is what the Go runtime has for objects.
	RSS, Anon, Heap                  uint64
	Threads, Descriptors, Goroutines int
	// CPU is in seconds since the start of the process.
	CPU float64
}

// work is something that the agent did, by its own count or by that of who asked.
type work struct {
	What string
	Done float64
	// Due is how often it happens in the time that the run stands for; 0: as often as
	// there was a reason.
	Due float64
}
