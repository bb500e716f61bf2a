package verdict

import (
	"slices"
	"testing"

	"github.com/taintlet/taintlet/probes"
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
	want := []probes.Measure{
		{Name: "peers_answered", Unit: probes.Items, Value: 7},
		{Name: "peers_silent", Unit: probes.Items, Value: 2},
		{Name: "peers_unreachable", Unit: probes.Items, Value: 1},
		{Name: "peers_reached", Unit: probes.Ratio, Value: 0.9, Degraded: 0.2, Clear: 0.8},
		{Name: "peers_well_pods", Unit: probes.Ratio, Value: 1},
		{Name: "peers_well_dns", Unit: probes.Ratio, Value: 6. / 7},
		{Name: "peers_well_local", Unit: probes.Ratio, Value: 1},
		{Name: "retransmitted", Unit: probes.Ratio, Value: 3. / 24, Degraded: 0.1, Clear: 0.07},
	}
	if !slices.Equal(s.last.Measures, want) {
		t.Errorf("%+v, want %+v", s.last.Measures, want)
	}
}
