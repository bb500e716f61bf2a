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
// its effect shows: a dry run in the controller's name that would take a held
// taint off a Node.
func (c *Cluster) InstallKeep(ctx context.Context) error {
	module, err := findModule()
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, filepath.Join(module, "..", "..", "deploy", "keep.yaml")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	config := c.Admin()
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:kube-controller-manager", Groups: []string{"system:masters"}}
	controller, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	const name = "probe-of-keep"
	nodes := c.admin.CoreV1().Nodes()
	if _, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{"taintlet.dev/held": corev1.TaintNodeMemoryPressure},
	}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("install keep.yaml: %w", err)
	}
	defer nodes.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}) //nolint:errcheck // a Node more harms no test
	for {
		// Until the policy is obeyed the real controller deletes the taint.
		taint := `{"spec":{"taints":[{"key":"` + corev1.TaintNodeMemoryPressure + `","effect":"NoSchedule"}]}}`
		if _, err := nodes.Patch(ctx, name, types.MergePatchType, []byte(taint), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("install keep.yaml: %w", err)
		}
		after, err := controller.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"taints":[]}}`),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return fmt.Errorf("install keep.yaml: %w", err)
		}
		if HasTaint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)(after) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("install keep.yaml: the policy has no effect: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
