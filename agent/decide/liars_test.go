package decide_test

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
)

// How many peers have to say that they have a host's condition until its taint is held
// back, at the defaults: the table in test/security/claims.md. One liar is one of these. The brake
// is cautious in the first five minutes.
func TestPeersThatBrake(t *testing.T) {
	t.Parallel()
	const never = -1
	for _, test := range []struct {
		asked, cautious, later int
	}{{4, never, never}, {5, 1, 2}, {8, 2, 3}, {12, 3, 5}} {
		for well, want := range map[time.Duration]int{10 * time.Second: test.cautious, 6 * time.Minute: test.later} {
			got := never
			for bad := 0; bad <= test.asked && got == never; bad++ {
				if isBraked(well, decide.Share{Asked: test.asked, Bad: bad}) {
					got = bad
				}
			}
			if got != want {
				t.Errorf("%s after the start, %d peers: %d brake, want %d", well, test.asked, got, want)
			}
		}
	}
}

// Of five peers of the own zone, as many brake as of five peers.
func TestNeighboursThatBrake(t *testing.T) {
	t.Parallel()
	for well, want := range map[time.Duration]int{10 * time.Second: 1, 6 * time.Minute: 2} {
		for bad := range 4 {
			if got := isBraked(well, decide.Share{Asked: 12, Bad: bad, ZoneAsked: 5, ZoneBad: bad}); got != (bad >= want) {
				t.Errorf("%s after the start, %d of 5 neighbours: braked %t", well, bad, got)
			}
		}
	}
}

// isBraked reports whether the taint of a host that was well for a time waits for its
// peers.
func isBraked(well time.Duration, share decide.Share) bool {
	s := newSim(config.Default().Policy())
	second := func(symbol string) {
		s.peers = decide.Peers{
			Known: share.Asked, Rounds: s.peers.Rounds + 1,
			Shares: map[probes.Condition]decide.Share{probes.MemoryPressure: share},
		}
		s.after(time.Second, sample(probes.MemoryPressure, symbol))
	}
	for range int(well / time.Second) {
		second("ok")
	}
	for range 60 {
		second("bad")
	}
	return s.state.Requested(probes.MemoryPressure) > s.state.Level(probes.MemoryPressure)
}
