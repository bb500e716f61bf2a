package soak

import (
	"github.com/taintlet/taintlet/probes"
)

// How often some things happen by the defaults, in seconds.
const (
	heartbeatPeriod = 300
	scrapePeriod    = 15
	networkPeriod   = 5
	refreshPeriod   = 600 // of the slices
	watchPeriod     = 450 // on average, until the API server ends a watch
)

// work is what the agent did in a run that stands for so many seconds.
func (s *scraper) work(seconds float64) []work {
	answered, failed := s.counts()
	samples := func(c probes.Condition) float64 {
		return s.sum("taintlet_probe_samples_total", `condition="`+string(c)+`"`)
	}
	return []work{
		{"samples of memory", samples(probes.MemoryPressure), 0},
		{"samples of disks", samples(probes.DiskPressure), 0},
		{"samples of PIDs", samples(probes.PIDPressure), 0},
		{"rounds of the network", samples(probes.NetworkUnavailable), seconds / networkPeriod},
		{"writes of the Node, heartbeats among them", s.sum("taintlet_node_writes_total", `result="ok"`), seconds / heartbeatPeriod},
		{"changes of a level", s.sum("taintlet_condition_changes_total"), 0},
		{"peers that answer, at the end", s.sum("taintlet_peers", `state="answered"`), 0},
		{"scrapes", float64(answered), seconds / scrapePeriod},
		{"scrapes without an answer", float64(failed), 0},
	}
}
