package node

import (
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/taintlet/taintlet/taints"
)

// IsNewer reports whether version a of a Node is newer than b. What cannot be
// compared counts as newer: the watch is then trusted.
func IsNewer(a, b *taints.Node) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err != nil || order > 0
}

// isRestored reports whether an answer of the API server is older than one
// before about the same Node: etcd was restored from a backup. Answers to writes, and to
// the reads between them, are never from a cache.
func isRestored(before, answer *taints.Node) bool {
	if before == nil || answer == nil || before.UID != answer.UID {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(before.ResourceVersion, answer.ResourceVersion)
	return err == nil && order > 0
}
