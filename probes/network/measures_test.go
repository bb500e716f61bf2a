package network

import (
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/probetest"
)

// Measures sort the peers by what became of asking them, whatever they are called.
func TestMeasures(t *testing.T) {
	s := newScript()
	s.size = 10
	s.play(3, func(r *Round) {
		r.Peers[0] = PeerResult{Node: "gone"}
		r.Peers[1] = PeerResult{Node: "silent", Reached: true}
		r.Peers[2] = PeerResult{Node: "other-port", ReachedOther: true}
		r.Peers[3].Answer.Classes[DNS] = false
		r.Peers[4].Retransmits = 1
	})
	probetest.Measures(t, &Probe{measures: s.last.Measures},
		probes.Measure{Name: "peers_answered", Unit: probes.Items, Value: 7},
		probes.Measure{Name: "peers_silent", Unit: probes.Items, Value: 2},
		probes.Measure{Name: "peers_unreachable", Unit: probes.Items, Value: 1},
		probes.Measure{Name: "peers_reached", Unit: probes.Ratio, Value: 0.9, Degraded: 0.2, Clear: 0.8},
		probes.Measure{Name: "peers_well_pods", Unit: probes.Ratio, Value: 1},
		probes.Measure{Name: "peers_well_dns", Unit: probes.Ratio, Value: 6. / 7},
		probes.Measure{Name: "peers_well_local", Unit: probes.Ratio, Value: 1},
		probes.Measure{Name: "retransmitted", Unit: probes.Ratio, Value: 3. / 24, Degraded: 0.1, Clear: 0.07})
}
