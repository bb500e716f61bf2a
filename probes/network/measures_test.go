package network

import (
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// The measures are those of the newest verdict.
func TestMeasures(t *testing.T) {
	all := []probes.Measure{{Name: "peers_answered", Unit: probes.Items, Value: 7}, {Name: "peers_silent", Unit: probes.Items, Value: 2}}
	probetest.Measures(t, &Probe{measures: all}, all...)
}
