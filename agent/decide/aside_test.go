package decide_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// A suspicion, and a fleet brake, that come and go with every sample cost at most
// 2 reports a minute, each one patch of the Node's status and none of its taints.
// A suspicion that begins is on the Node with the next step all the same.
func TestAsidesAreBounded(t *testing.T) {
	const hours = 4
	s := newSim(config.Default().Policy())
	seenAll(s)
	reports, late := 0, 0
	s.onWrite = func(_ *sim, c taints.Desired) {
		if len(c.Conditions) > 0 {
			reports++
		}
	}
	r := random(3)
	before, was := s.writes, false
	s.now = s.now.Add(10 * time.Minute)
	for range hours * 3600 {
		s.peers.Known, s.peers.Shares = 12, brakes(r)
		suspects := r.IntN(3) == 0
		symbol := map[bool]string{true: "suspects", false: "ok"}[suspects]
		s.after(time.Second, sample(probes.NetworkUnavailable, symbol), sample(probes.MemoryPressure, "bad"))
		shown := s.read.Condition("HostNetworkUnavailable")
		if suspects && !was && shown.Status != taints.ConditionUnknown {
			late++
		}
		was = suspects
	}
	bound := hours*60*2 + levelBound(s.cfg.WriteBudget, hours*time.Hour, 4)
	t.Logf("%d reports in %d h, bound %d; %d writes of the taints", reports, hours, bound, s.writes-before)
	if reports > bound || reports < hours*60 {
		t.Errorf("%d reports, expected %d to %d", reports, hours*60, bound)
	}
	if late > 0 {
		t.Errorf("%d suspicions were not told at once", late)
	}
	if s.writes != before {
		t.Errorf("%d writes of the taints although the brake holds", s.writes-before)
	}
}

// brakes are shares that brake, of one size or another.
func brakes(r *rand.Rand) map[probes.Condition]decide.Share {
	return map[probes.Condition]decide.Share{probes.MemoryPressure: {Asked: 12, Bad: 8 + r.IntN(4)}}
}
