package fleet

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints"
)

// An agent tells its peers that its Node is under maintenance, and only then.
func TestMaintenanceIsTold(t *testing.T) {
	f := Alone()
	if page := string(f.Page()); strings.Contains(page, "maintenance") {
		t.Error(page)
	}
	f.SetDecided(nil, true, nil)
	f.Consult(t.Context(), &verdict.Verdict{Own: verdict.Answer{Lossy: -1, Reach: -1}}) // of another round
	if page := string(f.Page()); !strings.Contains(page, `"maintenance":true`) {
		t.Error(page)
	}
	f.SetDecided(nil, false, nil)
	if page := string(f.Page()); strings.Contains(page, "maintenance") {
		t.Error(page)
	}
}

// What the own Node says at the start of an agent tells whether the one before suspected its host.
func TestSuspicionIsRestored(t *testing.T) {
	for _, test := range []struct {
		status taints.ConditionStatus
		reason string
		want   bool
	}{
		{taints.ConditionUnknown, verdict.ReasonPeersUnreachable, true}, {taints.ConditionUnknown, verdict.ReasonManySuspect, true},
		{taints.ConditionUnknown, "HostSlow", false}, {taints.ConditionFalse, verdict.ReasonPeersUnreachable, false},
	} {
		f := Alone()
		own := &taints.Node{Conditions: []taints.NodeCondition{{Type: decide.ConditionType(verdict.Condition), Status: test.status, Reason: test.reason}}}
		f.SetNode(own, true)
		f.SetNode(&taints.Node{}, false) // it is this agent's
		if got := f.Surroundings().Suspected; got != test.want {
			t.Errorf("%s %s: %t", test.status, test.reason, got)
		}
	}
	f := Alone()
	f.SetNode(&taints.Node{}, true)
	if f.Surroundings().Suspected {
		t.Error("a Node that says nothing")
	}
}

// The Lease of a Node under maintenance is read although the Node does not count: otherwise Nodes without
// power would count for it.
func TestNodesUnderMaintenance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{agents: 9, conditions: map[string]taints.NodeCondition{
			"node-1": {Type: "DrainInProgress", Status: taints.ConditionTrue},
			"node-2": {Type: "DrainInProgress", Status: taints.ConditionFalse},
			"node-3": {Type: "Drained", Status: taints.ConditionTrue},
		}}
		f := newFleet(s)
		f.SetDecided(nil, false, []string{"MaintenanceInProgress", "DrainInProgress"})
		runFor(t, f, func() {
			s.leases = map[string]time.Time{"node-1": time.Now()}
			all := []string{"node-1", "node-2", "node-3"} // two have no Lease
			got, err := f.Standings(t.Context(), all, all)
			want := []verdict.Standing{{Node: "node-1", Renewed: s.leases["node-1"], Excuse: "is under maintenance"}, {Node: "node-2"}, {Node: "node-3"}}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%+v, %v, want %+v", got, err, want)
			}
		})
	})
}
