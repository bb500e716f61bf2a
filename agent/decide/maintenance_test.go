package decide_test

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/decide"
)

// A peer that says falsely that it is under maintenance never does more for a taint than
// one that says falsely that it is OK, whatever the others say and the brake is.
func TestForgedMaintenanceIsNoWorseThanForgedHealth(t *testing.T) {
	t.Parallel()
	tried := 0
	for others := range 12 {
		for bad := range others + 1 {
			for maintained := range others - bad + 1 {
				honest := decide.Share{Asked: others - maintained, Bad: bad, Maintained: maintained}
				for minPeers := 1; minPeers <= 12; minPeers++ {
					for percent := 1; percent <= 100; percent++ {
						healthy, forged := honest.With(false, false, false), honest.With(false, true, false)
						tried++
						if healthy.Reaches(percent, minPeers) && !forged.Reaches(percent, minPeers) {
							t.Fatalf("%+v with one peer more, percent %d, minPeers %d: OK brakes and maintenance does not", honest, percent, minPeers)
						}
					}
				}
			}
		}
	}
	if tried < 100000 {
		t.Fatalf("tried %d", tried)
	}
}

// Peers under maintenance do not count: neither their conditions nor their health. So of
// twelve peers, six of them under maintenance, five of the others brake as five of six do.
func TestPeersUnderMaintenanceDoNotCount(t *testing.T) {
	t.Parallel()
	const long = 6 * time.Minute // after the start the brake is cautious
	for _, test := range []struct {
		name   string
		share  decide.Share
		braked bool
	}{
		{"4 of 12 have it", decide.Share{Asked: 12, Bad: 4}, false},
		{"4 of 6 have it, and 6 are under maintenance", decide.Share{Asked: 6, Bad: 4, Maintained: 6}, true},
		{"1 of 6 has it, and 6 are under maintenance", decide.Share{Asked: 6, Bad: 1, Maintained: 6}, false},
		{"1 of 2 has it, and 10 are under maintenance", decide.Share{Asked: 2, Bad: 1, Maintained: 10}, true},
		{"none of 1 has it, and 11 are under maintenance", decide.Share{Asked: 1, Maintained: 11}, false},
		{"all are under maintenance", decide.Share{Maintained: 12}, false},
		{"too few answer", decide.Share{Asked: 2, Bad: 2, Maintained: 2}, false},
		{"neighbours under maintenance", decide.Share{Asked: 10, Bad: 2, Maintained: 2, ZoneAsked: 3, ZoneBad: 2, ZoneMaintained: 2}, true},
	} {
		if got := isBraked(long, test.share); got != test.braked {
			t.Errorf("%s: braked %t", test.name, got)
		}
	}
}
