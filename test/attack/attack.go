// Package attack tries what somebody with a stolen token, or a hostile neighbour,
// would try against the manifests as shipped.
package attack

import (
	"testing"

	"k8s.io/client-go/kubernetes"
)

// attack is one row of the table.
type attack struct {
	name string
	// run tries it and counts: attempts, and how many were denied. A failure of
	// the defence is reported through t.
	run func(t *testing.T, c *scene) (attempts, denied int)
}

// scene is a control plane with the shipped manifests, one agent process under
// attack, and clients.
type scene struct {
	admin   kubernetes.Interface // an administrator
	agent   kubernetes.Interface // with the attacked agent's own token, bound to its Node
	cleanup kubernetes.Interface // with the token of taintlet-cleanup-stale
	node    string               // the attacked agent's Node
	other   string               // another Node
}
