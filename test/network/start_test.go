package network

import (
	"errors"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/bed/fleet"
)

// A port that is blocked when the agents start was never open: nobody is accused.
// That holds for both ports, and for a host that is cut off from the start.
func TestBlockedFromTheStart(t *testing.T) {
	onlyLong(t)
	for name, rules := range map[string][]string{
		"taintlet's port":                    {blocked},
		"taintlet's port and the kubelet's":  {bothBlocked},
		"everything from peers and to peers": {fromPeers + " drop", toPeers + " drop"},
	} {
		t.Run(name, func(t *testing.T) {
			s, began := require(t), time.Now()
			mend := func() error { return nil }
			for _, h := range s.Network.Hosts {
				if err := h.Break("start", rules...); err != nil {
					t.Fatal(err)
				}
				before := mend
				mend = func() error { return errors.Join(before(), h.Mend("start")) }
			}
			t.Cleanup(func() {
				if err := mend(); err != nil {
					t.Error(err)
				}
			})
			agents := s.Start(t, hosts, fleet.Quick)
			fleet.WaitSamples(t, agents, int(lasts/(5*time.Second)))
			s.CheckChanges(t, began, nil)
			t.Logf("\n%s", fleet.Show(s.Records.Since(began)))
			writeTable(t, hosts, []result{{"From the start: " + name + " blocked on all hosts", "nobody", "–", "–"}})
		})
	}
}
