package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// keepPolicy is the name of the policy of deploy/keep.yaml and of its binding.
const keepPolicy = "taintlet-keep"

// InstallKeep applies deploy/keep.yaml and returns when the API server obeys
// it. The API server hears of a policy by a watch of its own, whose end only
// its effect shows.
func (c *Cluster) InstallKeep(ctx context.Context) error {
	module, err := findModule()
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, filepath.Join(module, "..", "..", "deploy", "keep.yaml")); err != nil {
		return err
	}
	return c.WaitKeep(ctx, true)
}

// tryKeep is what kubectl taintlet check sends as the node-lifecycle-controller, as a dry
// run: the policy answers with the taint. The taint of somebody else goes the way that
// others' taints go in the controller's writes.
const tryKeep = `{"metadata":{"annotations":{"taintlet.dev/held":"node.kubernetes.io/memory-pressure"}},
	"spec":{"taints":[{"key":"taintlet.dev/check","effect":"NoExecute","timeAdded":"2026-01-02T03:04:05Z"}]}}`

// WaitKeep waits until the policy keeps taints, or until it does not.
func (c *Cluster) WaitKeep(ctx context.Context, wanted bool) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	controller, err := c.as("system:serviceaccount:kube-system:node-controller")
	if err != nil {
		return err
	}
	const name = "probe-of-keep"
	nodes := c.admin.CoreV1().Nodes()
	if _, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("wait for keep.yaml: %w", err)
	}
	defer nodes.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}) //nolint:errcheck // a Node more harms no test
	// An admission plugin taints new Nodes, and the answer must not need that.
	if _, err := nodes.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("wait for keep.yaml: %w", err)
	}
	for {
		after, err := controller.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(tryKeep), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return fmt.Errorf("wait for keep.yaml: %w", err)
		}
		if HasTaint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)(after) == wanted {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for keep.yaml: that it keeps taints is %t, want %t: %w", !wanted, wanted, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// as returns a client for the administrator under another name: the policy reads the
// name, and the group may write Nodes, which not all of the users may.
func (c *Cluster) as(user string) (kubernetes.Interface, error) {
	config := c.Admin()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	return kubernetes.NewForConfig(config)
}
