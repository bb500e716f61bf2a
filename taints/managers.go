package taints

import (
	"bytes"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// fieldManager is the name under which the API server remembers our writes.
const fieldManager = "taintlet"

// LastWriter returns the field manager, other than taintlet, that wrote the
// Node's taints last; empty when it is not known. spec.taints is one atomic
// list with one owner. The API server keeps no owner of a list that is gone, so
// it is never known who removed the last taint.
func LastWriter(node *corev1.Node) string {
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

// WrittenAt returns when taintlet most recently wrote the Node, by the API
// server's clock; zero when that is not known.
func WrittenAt(node *corev1.Node) time.Time {
	var last time.Time
	for _, entry := range node.ManagedFields {
		if entry.Manager == fieldManager && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}
