package network

import "github.com/taintlet/taintlet/probes"

// Verdict is what the rounds so far mean.
type Verdict struct {
	Observation probes.Observation
	// Ask names the Nodes whose Standings the next round needs, because this host
	// suspects itself.
	Ask []string
}
