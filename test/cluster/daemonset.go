package cluster

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
)

// WaitDaemonSet watches a DaemonSet until the condition holds, and returns it
// as it then is. It waits for two minutes at most; the error shows the
// DaemonSet as last seen.
func (c *Cluster) WaitDaemonSet(ctx context.Context, namespace, name string, holds func(*appsv1.DaemonSet) bool) (*appsv1.DaemonSet, error) {
	sets := c.admin.AppsV1().DaemonSets(namespace)
	return wait(ctx, "daemonset "+namespace+"/"+name, which(named(name), sets.List, sets.Watch), holds)
}
