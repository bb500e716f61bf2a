package decide_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
)

// An agent is judged by the API server's clock where that is known: that of its host
// may be days off.
func TestLastSignIsTheAPIServers(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	heartbeat, noted := now.Add(-48*time.Hour), metav1.NewTime(now.Add(-time.Minute))
	node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: decide.ConditionType(probes.MemoryPressure), LastHeartbeatTime: metav1.NewTime(heartbeat)},
	}}}
	if got := decide.LastSign(node, config.Default().Policy()); !got.Equal(heartbeat) {
		t.Errorf("%s, want the heartbeat of %s", got, heartbeat)
	}
	node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Time: &metav1.Time{Time: now}}, {Manager: "taintlet", Subresource: "status", Time: &noted}}
	if got := decide.LastSign(node, config.Default().Policy()); !got.Equal(noted.Time) {
		t.Errorf("%s, want what the API server noted, %s", got, noted)
	}
}
