package taints

import (
	"bytes"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// FieldManager is the name under which the API server remembers our writes.
const FieldManager = "taintlet"

// LastWriter returns the field manager, other than taintlet, that wrote the
// Node's taints last; empty when it is not known. spec.taints is one atomic
// list with one owner. The API server keeps no owner of a list that is gone, so
// it is never known who removed the last taint.
func LastWriter(node *corev1.Node) string {
	for _, entry := range node.ManagedFields {
		if entry.Subresource == "" && entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:taints"`)) {
			if entry.Manager == FieldManager {
				return ""
			}
			return entry.Manager
		}
	}
	return ""
}

// WrittenAt returns when taintlet most recently wrote the Node, by the API
// server's clock; zero when that is not known.
func WrittenAt(node *corev1.Node) time.Time {
	return latest(StatusWrittenAt(node), writtenAt(node, ""))
}

// StatusWrittenAt is WrittenAt for our conditions alone.
func StatusWrittenAt(node *corev1.Node) time.Time { return writtenAt(node, "status") }

func writtenAt(node *corev1.Node, subresource string) time.Time {
	var last time.Time
	for _, entry := range node.ManagedFields {
		if entry.Manager == FieldManager && entry.Subresource == subresource && entry.Time != nil {
			last = latest(last, entry.Time.Time)
		}
	}
	return last
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
