package decide_test

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// An agent is judged by the API server's clock where that is known: that of its host
// may be days off.
func TestLastSignIsTheAPIServers(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	heartbeat, noted := now.Add(-48*time.Hour), now.Add(-time.Minute)
	node := &taints.Node{Conditions: []taints.NodeCondition{
		{Type: decide.ConditionType(probes.MemoryPressure), LastHeartbeatTime: heartbeat},
	}}
	if got := decide.LastSign(node, config.Default().Policy()); !got.Equal(heartbeat) {
		t.Errorf("%s, want the heartbeat of %s", got, heartbeat)
	}
	node.StatusWrittenAt, node.SpecWrittenAt = noted, noted.Add(-time.Minute)
	if got := decide.LastSign(node, config.Default().Policy()); !got.Equal(noted) {
		t.Errorf("%s, want what the API server noted, %s", got, noted)
	}
}
