package apiserver

import (
	"bytes"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/taints"
)

// fieldManager is the name under which the API server remembers our writes.
const fieldManager = "taintlet"

// NodeOf converts a Node of the API; nil for nil. Both share maps, which must not be changed.
func NodeOf(node *corev1.Node) *taints.Node {
	if node == nil {
		return nil
	}
	n := &taints.Node{
		Name: node.Name, UID: string(node.UID), ResourceVersion: node.ResourceVersion,
		Labels: node.Labels, Annotations: node.Annotations,
		IsDeleted: node.DeletionTimestamp != nil, IsUnschedulable: node.Spec.Unschedulable,
		LastWriter: lastWriter(node), SpecWrittenAt: writtenAt(node, ""), StatusWrittenAt: writtenAt(node, "status"),
		OS: node.Status.NodeInfo.OperatingSystem, Kernel: node.Status.NodeInfo.KernelVersion,
	}
	for _, t := range node.Spec.Taints {
		taint := taints.Taint{Key: t.Key, Value: t.Value, Effect: taints.Effect(t.Effect)}
		if t.TimeAdded != nil {
			taint.TimeAdded = t.TimeAdded.UTC()
		}
		n.Taints = append(n.Taints, taint)
	}
	for _, c := range node.Status.Conditions {
		n.Conditions = append(n.Conditions, taints.NodeCondition{
			Type: string(c.Type), Status: taints.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			LastHeartbeatTime: c.LastHeartbeatTime.Time, LastTransitionTime: c.LastTransitionTime.Time,
		})
	}
	return n
}

// lastWriter returns taints.Node's LastWriter. spec.taints is one atomic list with
// one owner. The API server keeps no owner of a list that is gone, so it is never
// known who removed the last taint.
func lastWriter(node *corev1.Node) string {
	for _, entry := range node.ManagedFields {
		if entry.Subresource == "" && entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:taints"`)) {
			if entry.Manager == fieldManager {
				return ""
			}
			return entry.Manager
		}
	}
	return ""
}

func writtenAt(node *corev1.Node, subresource string) time.Time {
	var last time.Time
	for _, entry := range node.ManagedFields {
		if entry.Manager == fieldManager && entry.Subresource == subresource && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}
