package apiserver

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/taints"
)

// Whoever measures how long a condition has lasted (Karpenter does) must not
// begin anew with each message: aws/eks-node-monitoring-agent#39.
func TestLastTransitionTimeMovesWithTheStatusOnly(t *testing.T) {
	const kind = "HostMemoryPressure"
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := since.Add(time.Hour)
	node := &taints.Node{Conditions: []taints.NodeCondition{{
		Type: kind, Status: taints.ConditionTrue, Reason: "MemoryLow", Message: "available 4 %",
		LastHeartbeatTime: since, LastTransitionTime: since,
	}}}
	for _, test := range []struct {
		name string
		next taints.NodeCondition
		want time.Time
	}{
		{"heartbeat", node.Conditions[0], since},
		{"other message", taints.NodeCondition{Type: kind, Status: taints.ConditionTrue, Reason: "MemoryLow", Message: "available 3 %"}, since},
		{"other reason", taints.NodeCondition{Type: kind, Status: taints.ConditionTrue, Reason: "MemoryStalled", Message: "stalled"}, since},
		{"other status", taints.NodeCondition{Type: kind, Status: taints.ConditionFalse, Reason: "MemorySufficient", Message: "enough"}, now},
		{"other status, written a moment ago", taints.NodeCondition{Type: kind, Status: taints.ConditionFalse, Reason: "MemorySufficient", LastTransitionTime: now.Add(-time.Second)}, now.Add(-time.Second)},
		{"other type", taints.NodeCondition{Type: "HostDiskPressure", Status: taints.ConditionTrue, Reason: "SpaceLow", Message: "full"}, now},
	} {
		t.Run(test.name, func(t *testing.T) {
			patch := statusPatch(node, taints.Desired{Conditions: []taints.NodeCondition{test.next}}, now)
			if len(patch) != 1 {
				t.Fatalf("%d conditions in the patch", len(patch))
			}
			got, ok := patch[0].(corev1.NodeCondition)
			if !ok || !got.LastTransitionTime.Time.Equal(test.want) || !got.LastHeartbeatTime.Time.Equal(now) {
				t.Errorf("transition %v, want %v; heartbeat %v, want %v", got.LastTransitionTime, test.want, got.LastHeartbeatTime, now)
			}
		})
	}
}

// No message of a condition is longer than the admission policies let pass.
func TestMessagesOfConditionsAreCut(t *testing.T) {
	desired := taints.Desired{Conditions: []taints.NodeCondition{{Type: "HostDiskPressure", Message: strings.Repeat("x", 5000)}}}
	patch := statusPatch(&taints.Node{}, desired, time.Now())
	if got := len(patch[0].(corev1.NodeCondition).Message); got != 2000 {
		t.Errorf("a condition's message of %d bytes is written", got)
	}
}
