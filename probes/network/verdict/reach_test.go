package verdict

import "testing"

func TestPeersResult(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reached, asked int
		want           Outcome
	}{{0, 0, NotKnown}, {12, 12, Well}, {10, 12, Well}, {9, 12, NotKnown}, {3, 12, NotKnown}, {2, 12, Failed}, {0, 3, Failed}, {3, 3, Well}, {2, 2, NotKnown}, {1, 1, NotKnown}, {0, 1, NotKnown}} {
		var found []PeerResult
		for i := range test.asked {
			found = append(found, PeerResult{Reached: i < test.reached})
		}
		if got := PeersResult(found, make([]Peer, 12)); got.Outcome != test.want {
			t.Errorf("%d of %d: %+v, want %v", test.reached, test.asked, got, test.want)
		} else if got.Never != (test.asked <= 2) { // a fifth of those chosen
			t.Errorf("%d of %d: %+v", test.reached, test.asked, got)
		}
	}
}
