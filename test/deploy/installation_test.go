package deploy

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/chart"
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
	manifest := chart.Render(t, "--set", "namespace.create=true,keep=false,evict.slots=2,cleanup.afterUninstall=false,cleanup.stale=true")
	manifest = strings.Replace(manifest, "concurrencyPolicy: Forbid", "suspend: true", 1) // or the tests have a pod more in the 17th minute
	i.cluster.Options.AuditLog = true
	c := i.cluster.Require(t)
	i.once.Do(func() {
		ctx := context.WithoutCancel(t.Context())
		chart.Apply(ctx, t, c, manifest)
		chart.WaitInForce(ctx, t, c, namespace, "taintlet-nodes", "taintlet-events", "taintlet-leases")
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

// agentOf is the agent of a node as it is: with the token of the DaemonSet's
// pod, which the real controller has made for the node.
func agentOf(t *testing.T, c *cluster.Cluster, node string) *rest.Config {
	t.Helper()
	return c.WithToken(chart.TokenOfPod(t, c, podOn(t, c, node)))
}

// podOn waits for the DaemonSet's pod on the node.
func podOn(t *testing.T, c *cluster.Cluster, node string) *corev1.Pod {
	t.Helper()
	var pods *corev1.PodList
	cluster.Eventually(t, "the DaemonSet's pod on "+node, func() (err error) {
		pods, err = c.Client().CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		if err == nil && len(pods.Items) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	return &pods.Items[0]
}
