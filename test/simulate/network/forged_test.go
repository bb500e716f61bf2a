package main

import (
	"slices"
	"testing"
	"time"
)

// forgedSeeds are how many fleets each row of TestForgedSuspicion is measured in.
const forgedSeeds = 25

// What forged suspicions cost a host that is cut off, by the number of its peers: the
// table in README.md. No healthy host is accused.
func TestForgedSuspicion(t *testing.T) {
	t.Parallel()
	const never = time.Duration(0)
	for _, test := range []struct {
		peers, forged int
		most          time.Duration // simulated, from the fault to the taint
	}{
		{12, 0, 28 * time.Second},
		{12, 1, 75 * time.Second},
		{12, 2, 75 * time.Second},
		{12, 3, 5 * time.Minute},
		{5, 0, 28 * time.Second},
		{5, 1, 75 * time.Second},
		{3, 0, 28 * time.Second},
		{3, 1, 75 * time.Second},
		{2, 0, 28 * time.Second},
		{2, 1, never},
	} {
		s := scenario{size: test.peers + 1, zones: 1, lasts: 5 * time.Minute, happens: func(f *fleet) {
			f.nodes[0].cut, f.nodes[0].broken = from(start), true
			for _, n := range f.nodes[1 : 1+test.forged] {
				n.forges = true
			}
		}}
		var took []time.Duration
		for seed := range uint64(forgedSeeds) {
			f, m := s.play(seed)
			if m.healthyAccused > 0 {
				whom(t.Output(), f)
				t.Errorf("%d peers, %d forged, seed %d: a healthy host is accused", test.peers, test.forged, seed)
			}
			if m.brokenAccused > 0 {
				took = append(took, m.slowest)
			}
		}
		want := forgedSeeds
		if test.most == never {
			want = 0
		}
		if len(took) != want {
			t.Errorf("%d peers, %d forged: accused in %d of %d fleets, want %d", test.peers, test.forged, len(took), forgedSeeds, want)
		}
		if slices.Sort(took); len(took) == 0 {
			continue
		}
		last := took[len(took)-1]
		t.Logf("%d peers, %d forged: half after %s, the last after %s", test.peers, test.forged, seconds(took[len(took)/2]), seconds(last))
		if last > test.most {
			t.Errorf("%d peers, %d forged: accused after %s, want at most %s", test.peers, test.forged, last, test.most)
		}
	}
}
