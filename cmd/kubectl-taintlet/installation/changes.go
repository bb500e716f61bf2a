package installation

import (
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fieldsOf are the fields that an entry of managed fields names, by the first part of their
// paths.
func fieldsOf(entry metav1.ManagedFieldsEntry) (fields map[string]json.RawMessage) {
	_ = json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) // what is no object has no fields
	return fields
}

// WritesSpec reports whether the entry's manager wrote the specification.
func WritesSpec(entry metav1.ManagedFieldsEntry) bool {
	_, writes := fieldsOf(entry)["f:spec"]
	return writes
}

// ChangedByHand returns the program, other than the one that installed the object, that
// wrote its specification, and when; empty: none. Kubernetes calls it a field manager.
func ChangedByHand(managed []metav1.ManagedFieldsEntry) (manager string, at time.Time) {
	installer := ""
	for _, entry := range managed {
		if strings.Contains(string(fieldsOf(entry)["f:metadata"]), `"f:app.kubernetes.io/name"`) {
			installer = entry.Manager
		}
	}
	if installer == "" {
		return "", time.Time{} // managedFields were removed: nobody can tell
	}
	for _, entry := range managed {
		if WritesSpec(entry) && entry.Subresource == "" && entry.Manager != installer && entry.Time != nil && entry.Time.After(at) {
			manager, at = entry.Manager, entry.Time.Time
		}
	}
	return manager, at
}
