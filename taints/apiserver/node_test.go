package apiserver

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/taints"
)

// Everything that is read of a Node arrives, and its taints go back as they came.
func TestNodeOf(t *testing.T) {
	at := func(minute int) metav1.Time { return metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)) }
	added, began := at(1), at(2)
	entry := func(manager, subresource string, minute int) metav1.ManagedFieldsEntry {
		when := at(minute)
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &when}
	}
	ofTaints := entry("kubectl-taint", "", 9)
	ofTaints.FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{"f:taints":{}}}`)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "host", UID: "uid", ResourceVersion: "7", DeletionTimestamp: &began,
			Labels: map[string]string{"label": "x"}, Annotations: map[string]string{"annotation": "y"},
			ManagedFields: []metav1.ManagedFieldsEntry{
				entry("kubelet", "status", 9), ofTaints, entry("taintlet", "", 3), entry("taintlet", "", 5), entry("taintlet", "status", 4),
			},
		},
		Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{
			{Key: "a", Value: "1", Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}, {Key: "b", Effect: corev1.TaintEffectNoSchedule},
		}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: "Ready", Status: corev1.ConditionTrue, Reason: "r", Message: "m", LastHeartbeatTime: at(6), LastTransitionTime: at(2)}},
			NodeInfo:   corev1.NodeSystemInfo{OperatingSystem: "linux", KernelVersion: "6.8"},
		},
	}
	want := &taints.Node{
		Name: "host", UID: "uid", ResourceVersion: "7", IsDeleted: true, IsUnschedulable: true,
		Labels: node.Labels, Annotations: node.Annotations,
		Taints:     []taints.Taint{{Key: "a", Value: "1", Effect: taints.NoExecute, TimeAdded: added.Time}, {Key: "b", Effect: taints.NoSchedule}},
		Conditions: []taints.NodeCondition{{Type: "Ready", Status: taints.ConditionTrue, Reason: "r", Message: "m", LastHeartbeatTime: at(6).Time, LastTransitionTime: at(2).Time}},
		LastWriter: "kubectl-taint", SpecWrittenAt: at(5).Time, StatusWrittenAt: at(4).Time, OS: "linux", Kernel: "6.8",
	}
	got := NodeOf(node)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%+v, want\n%+v", got, want)
	}
	ours, err := json.Marshal(got.Taints)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := json.Marshal(node.Spec.Taints)
	if err != nil || string(ours) != string(theirs) {
		t.Errorf("written %s, and the API has %s, %v", ours, theirs, err)
	}
	if NodeOf(nil) != nil {
		t.Error("no Node is one")
	}
}
