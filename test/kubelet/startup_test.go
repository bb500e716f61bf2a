package kubelet_test

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/kubelet"
)

// Of the checks of the network, those that need others than this host and the API server
// are off. No rule asks for a taint, so only the start-up taint keeps a pod off.
const (
	startingKey    = "startup-taint.cluster-autoscaler.kubernetes.io/taintlet"
	startingConfig = bed.ConfigHeader + `
startup: {taint: ` + startingKey + `}
network: {disabledClasses: [local, pods, dns, peers]}
rules: []
`
	healthyDisk = "disk: {paths: [/var/lib/kubelet], period: 500ms, availablePercent: 1, inodesPercent: 1, debounce: {clearAfter: 1s}}\n"
	fullDisk    = "disk: {paths: [/var/lib/kubelet], period: 500ms, availablePercent: 99.9, debounce: {clearFactor: 1.0001, clearAfter: 1s}}\n"
)

// A real kubelet registers its Node with the start-up taint. A pod stays Pending before
// the agent runs, and while a condition is Degraded. It lands and runs after the first
// verdict without one.
func TestPodsWaitForTheFirstVerdict(t *testing.T) {
	requireKubelet(t)
	c := cluster.New(t, cluster.Options{})
	k, err := kubelet.Start(t.Context(), c, kubelet.Options{NodeName: nodeName, Pods: true, RegisterWithTaints: startingKey + "=:NoSchedule", Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(k.Tail(20))
		}
		if err := k.Stop(); err != nil {
			t.Error(err)
		}
	})
	pod := cluster.NewPod("early", nodeName)
	pod.Spec.AutomountServiceAccountToken, pod.Spec.HostNetwork = new(bool), true
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].ImagePullPolicy = "localhost/taintlet-test/pause:1", corev1.PullNever
	name := c.CreatePod(t, pod)
	waitPod := func(holds func(*corev1.Pod) bool) {
		t.Helper()
		if _, err := c.WaitPod(t.Context(), "default", name, holds); err != nil {
			t.Fatal(err)
		}
	}
	waitPod(cluster.Unschedulable)
	configFile := startAgent(t, c, k, startingConfig+fullDisk)
	degraded, err := c.WaitNode(t.Context(), nodeName, cluster.HasCondition("HostDiskPressure", corev1.ConditionTrue))
	if err != nil {
		t.Fatal(err)
	}
	const waits = "; the start-up taint " + startingKey + " has waited for this condition since "
	if message := cluster.Condition(degraded, "HostDiskPressure").Message; !strings.Contains(message, waits) {
		t.Errorf("the condition says %q", message)
	}
	if node := c.GetNode(t, nodeName); !cluster.HasTaint(startingKey, corev1.TaintEffectNoSchedule)(node) {
		t.Fatalf("freed while a condition is Degraded: %v", node.Spec.Taints)
	}
	waitPod(cluster.Unschedulable)
	write(t, configFile, startingConfig+healthyDisk)
	mended := time.Now()
	waitPod(cluster.Scheduled)
	t.Logf("the pod landed %.0f s after the configuration changed", time.Since(mended).Seconds())
	c.WaitAgentEvent(t, nodeName, "StartupTaintRemoved", "no condition is Degraded")
	waitPod(func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
}
