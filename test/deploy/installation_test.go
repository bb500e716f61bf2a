package deploy

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// patience is how long an event is waited for: far above what a busy machine
// needs.
const patience = 2 * time.Minute

// installation is a control plane with the chart in it.
type installation struct {
	cluster cluster.Shared
	once    sync.Once
}

// require returns the control plane, with the policies in force.
func (i *installation) require(t *testing.T) *cluster.Cluster {
	t.Helper()
	manifest := bed.Render(t, "--set", "namespace.create=true,keep=false,evict.slots=2,cleanup.afterUninstall=false,cleanup.stale=true")
	manifest = strings.Replace(manifest, "concurrencyPolicy: Forbid", "suspend: true", 1) // or the tests have a pod more in the 17th minute
	i.cluster.Options.AuditLog = true
	c := i.cluster.Require(t)
	i.once.Do(func() {
		ctx := context.WithoutCancel(t.Context())
		bed.Apply(ctx, t, c, manifest)
		bed.WaitInForce(ctx, t, c, namespace, "taintlet-nodes", "taintlet-events", "taintlet-leases")
	})
	return c
}

func client(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
