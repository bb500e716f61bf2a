package taints

import (
	"bytes"

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
