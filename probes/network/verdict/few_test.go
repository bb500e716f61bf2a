package verdict

import (
	"testing"
	"time"
)

// What docs/network.md says of clusters of two nodes, and of one broken pair of nodes,
// under "What it cannot see".
func TestFewNodesAndOneBrokenPair(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		peers   int
		want    string
		changes []change
	}{
		{"two nodes, DNS fails on one", 1, "DNSUnreachable", []change{class(DNS, Failed, "")}},
		{"two nodes, a daemon fails on one", 1, "NodeDaemonFails", []change{class(Local, Failed, "")}},
		{"two nodes, the only DNS pod elsewhere is not reached", 1, "NotProven", []change{onlyPod(0, 0)}},
		{"two nodes, one cut off", 1, "NetworkHealthy", []change{reachOnly(0)}},
		{"two nodes, one loses packets", 1, "NetworkHealthy", []change{retransmits(1)}},
		{"a pair of thirteen nodes", 12, "NetworkHealthy", []change{reachOnly(11)}},
		{"a pair of six nodes", 5, "NetworkHealthy", []change{reachOnly(4)}},
		{"a pair of five nodes", 4, "SomePeersUnreachable", []change{reachOnly(3)}},
		{"a pair of three nodes", 2, "SomePeersUnreachable", []change{reachOnly(1)}},
		{"a pair of thirteen nodes, with the only DNS pod elsewhere", 12, "PodsUnreachable", []change{onlyPod(12, 0), reachOnly(11)}},
	} {
		s := newScript()
		s.size = test.peers
		s.play(5)
		if o := s.play(int(5*time.Minute/testPeriod), append(test.changes, s.standing(0, 0))...); o.Reason != test.want {
			t.Errorf("%s: %s: %s", test.name, o.Reason, o.Message)
		}
	}
}
