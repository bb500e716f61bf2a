package bed

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/taintlet/taintlet/test/cluster"
)

// Installation is one control plane with the chart in it, with two eviction slots and
// the cleanup of stale Nodes, for all tests of a package. The first test that requires it
// installs it.
type Installation struct {
	Shared cluster.Shared
	// Keep says that the policy is installed that keeps taints, where this release of
	// Kubernetes can have it.
	Keep bool
	// Values are more arguments of helm.
	Values []string

	once sync.Once
}

// Require returns the control plane, with the policies in force. Without
// TAINTLET_REQUIRE=controlplane the test is skipped.
func (i *Installation) Require(t *testing.T) *cluster.Cluster {
	t.Helper()
	cluster.SkipUnlessRequired(t)
	keep := i.Keep && cluster.HasMutatingAdmissionPolicy(t)
	c := i.Shared.Require(t)
	i.once.Do(func() {
		args := []string{"--set", "namespace.create=true,evict.slots=2,cleanup.afterUninstall=false,cleanup.stale=true,config.startup.taint=example.com/starting"}
		if keep {
			args = append(args, KeepServed)
		}
		manifest := Render(t, append(args, i.Values...)...)
		manifest = strings.Replace(manifest, "concurrencyPolicy: Forbid", "suspend: true", 1) // or the tests have a pod more in the 17th minute
		ctx := context.WithoutCancel(t.Context())
		Apply(ctx, t, c, manifest)
		WaitInForce(ctx, t, c, Namespace, "taintlet-nodes", "taintlet-events", "taintlet-leases")
	})
	return c
}
