package neighbours

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

const poolLabel = "karpenter.sh/nodepool"

// startingTaint is the start-up taint that the installation lets agents remove.
const startingTaint = "example.com/starting"

// pool is a NodePool whose Nodes Karpenter never consolidates.
const pool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:
  disruption: {consolidateAfter: Never}
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]
      startupTaints: %s
`

// karpenter is the real one with its provider kwok, which creates Nodes without hosts.
type karpenter struct {
	cluster *cluster.Cluster
	claims  dynamic.ResourceInterface
}

// startKarpenter starts it as the administrator, with repair, for the length of the test.
func startKarpenter(t *testing.T, c *cluster.Cluster) *karpenter {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-modfile=test/neighbours/karpenter/go.mod", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/karpenter")
	list.Dir = "../.."
	folder, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"pkg/apis/crds/*.yaml", "kwok/apis/crds/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(folder)), pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("Karpenter has no %s: %v", pattern, err)
		}
		for _, file := range files {
			if err := c.Apply(t.Context(), file); err != nil {
				t.Fatal(err)
			}
		}
	}
	classes := filepath.Join(t.TempDir(), "class.yaml")
	if err := os.WriteFile(classes, []byte("apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: default}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, "the kinds of Karpenter", func() error { return c.Apply(t.Context(), classes) })

	ports, err := cluster.FreePorts("127.0.0.1", 2)
	if err != nil {
		t.Fatal(err)
	}
	output := &process.Lines{}
	command := exec.Command(build(t, "karpenter", "kwok"), "--disable-leader-election=true", "--feature-gates=NodeRepair=true", //nolint:gosec // it lives until it is ended
		"--metrics-port="+ports[0], "--health-probe-port="+ports[1])
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(t, c.Admin()), "SYSTEM_NAMESPACE=kube-system")
	command.Stdout, command.Stderr = output, output
	running, err := process.Start("Karpenter", command, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log of Karpenter:\n%s", output)
		}
	})
	client, err := dynamic.NewForConfig(c.Admin())
	if err != nil {
		t.Fatal(err)
	}
	return &karpenter{cluster: c, claims: client.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"})}
}

// list returns the NodeClaims of a NodePool.
func (k *karpenter) list(ctx context.Context, pool string) ([]unstructured.Unstructured, error) {
	found, err := k.claims.List(ctx, metav1.ListOptions{LabelSelector: poolLabel + "=" + pool})
	if err != nil {
		return nil, err
	}
	return found.Items, nil
}

// initialized is status and reason of the NodeClaim's condition of that name.
func initialized(claim unstructured.Unstructured) (status, reason string) {
	conditions, _, _ := unstructured.NestedSlice(claim.Object, "status", "conditions")
	for _, entry := range conditions {
		if condition, _ := entry.(map[string]any); condition["type"] == "Initialized" {
			status, _ = condition["status"].(string)
			reason, _ = condition["reason"].(string)
		}
	}
	return status, reason
}

// ask creates a pod that asks for a Node of the pool which it shares with no other such pod.
func (k *karpenter) ask(t *testing.T, pool, name string) {
	t.Helper()
	labels := map[string]string{"asks-for": pool}
	pod := cluster.NewPod(pool+"-"+name, "")
	pod.Labels = labels
	pod.Spec.NodeSelector = map[string]string{poolLabel: pool}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: corev1.LabelHostname,
	}}}}
	if _, err := k.cluster.Client().CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// provision makes Karpenter start Nodes of a new NodePool, and stands in for their kubelets.
func (k *karpenter) provision(t *testing.T, name, startupTaints string, count int) (nodes []*cluster.Node) {
	t.Helper()
	bed.Apply(t.Context(), t, k.cluster, fmt.Sprintf(pool, name, startupTaints))
	for i := range count {
		k.ask(t, name, fmt.Sprint(i))
	}
	var found *corev1.NodeList
	cluster.Eventually(t, "the Nodes of NodePool "+name, func() (err error) {
		found, err = k.cluster.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: poolLabel + "=" + name})
		if err == nil && len(found.Items) != count {
			err = fmt.Errorf("%d of %d", len(found.Items), count)
		}
		return err
	})
	for _, item := range found.Items {
		node, err := k.cluster.AdoptNode(t.Context(), item.Name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = node.Stop() }) // Karpenter may have deleted the Node
		nodes = append(nodes, node)
	}
	return nodes
}

// waitInitialized waits until Karpenter takes all Nodes of the pool for started.
func (k *karpenter) waitInitialized(t *testing.T, pool string) {
	t.Helper()
	cluster.Eventually(t, "the start of the Nodes of "+pool, func() error {
		claims, err := k.list(t.Context(), pool)
		for _, claim := range claims {
			if status, reason := initialized(claim); status != "True" {
				return fmt.Errorf("%s is %s, %s", claim.GetName(), status, reason)
			}
		}
		return err
	})
}

// backdate makes every condition of the Node that is in trouble an hour old.
func backdate(t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	var old []map[string]any
	for _, condition := range c.GetNode(t, name).Status.Conditions {
		if (condition.Type == corev1.NodeReady) != (condition.Status == corev1.ConditionTrue) {
			old = append(old, map[string]any{"type": condition.Type, "status": condition.Status, "lastTransitionTime": metav1.NewTime(time.Now().Add(-time.Hour))})
		}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": old}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client().CoreV1().Nodes().PatchStatus(t.Context(), name, patch); err != nil {
		t.Fatal(err)
	}
}

// isOld fails the test unless the Node still is in a trouble that is an hour old.
func isOld(t *testing.T, node *corev1.Node) {
	t.Helper()
	count := 0
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady || condition.Status != corev1.ConditionTrue {
			continue
		}
		count++
		if age := time.Since(condition.LastTransitionTime.Time); age < time.Hour {
			t.Errorf("%s of %s is True for %s only", condition.Type, node.Name, age)
		}
	}
	if count == 0 {
		t.Errorf("%s is in no trouble", node.Name)
	}
}

// Karpenter replaces no Node for a taint or a condition of taintlet, HostRepairNeeded among
// them, however old they are, as it replaces none for a taint or a condition of the kubelet's
// pressure. It replaces the Node whose Ready is False. For a pod that finds only tainted
// Nodes it starts one Node, whoever asked for the taints.
func TestKarpenterBesideTaintlet(t *testing.T) {
	requireNeighbours(t)
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	c := provisioned.Require(t)
	k := startKarpenter(t, c)
	page := filepath.Join(t.TempDir(), "example.yaml")
	if err := os.WriteFile(page, []byte(example(t, "apiVersion: karpenter.sh/")), 0o600); err != nil {
		t.Fatal(err)
	}
	c.RunKubectl(t, "apply", "--dry-run=server", "--validate=strict", "-f", page)
	kubelets, ours := k.provision(t, "kubelets", "[]", len(troubles())), k.provision(t, "ours", "[]", len(troubles()))
	broken := k.provision(t, "broken", "[]", 1)[0]
	for _, pool := range []string{"kubelets", "ours", "broken"} {
		k.waitInitialized(t, pool)
	}

	for i, of := range troubles() {
		if err := kubelets[i].SetCondition(t.Context(), of.kubelets, corev1.ConditionTrue); err != nil {
			t.Fatal(err)
		}
		of.begin(startAgent(t, c, ours[i].Name))
		if of.kubelets == corev1.NodeNetworkUnavailable {
			waitNode(t, c, ours[i].Name, cluster.HasCondition(decide.RepairType, corev1.ConditionTrue))
		}
		// The agent writes its taint before its condition.
		waitNode(t, c, ours[i].Name, cluster.HasCondition("Host"+of.kubelets, corev1.ConditionTrue))
		for _, node := range []*cluster.Node{kubelets[i], ours[i]} {
			waitNode(t, c, node.Name, cluster.HasTaint(of.wellKnown, corev1.TaintEffectNoSchedule))
			backdate(t, c, node.Name)
		}
	}
	// Karpenter's watch tells of this one last.
	if err := broken.SetCondition(t.Context(), corev1.NodeReady, corev1.ConditionFalse); err != nil {
		t.Fatal(err)
	}
	backdate(t, c, broken.Name)
	cluster.Eventually(t, "the repair of the Node that is not Ready", func() error {
		claims, err := k.list(t.Context(), "broken")
		for _, claim := range claims {
			name, _, _ := unstructured.NestedString(claim.Object, "status", "nodeName")
			if name == broken.Name && claim.GetDeletionTimestamp() == nil {
				return fmt.Errorf("its NodeClaim %s stays", claim.GetName())
			}
		}
		return err
	})

	for _, node := range append(kubelets, ours...) {
		isOld(t, c.GetNode(t, node.Name))
	}
	for _, pool := range []string{"kubelets", "ours"} {
		k.ask(t, pool, "late")
	}
	for _, pool := range []string{"kubelets", "ours"} {
		want := len(troubles()) + 1
		cluster.Eventually(t, "a Node for the late pod of "+pool, func() error {
			claims, err := k.list(t.Context(), pool)
			if err == nil && len(claims) < want {
				err = fmt.Errorf("%d of %d NodeClaims", len(claims), want)
			}
			return err
		})
		claims, err := k.list(t.Context(), pool)
		if err != nil || len(claims) != want {
			t.Errorf("%s: %d NodeClaims, not %d: %v", pool, len(claims), want, err)
		}
		for _, claim := range claims {
			if claim.GetDeletionTimestamp() != nil {
				t.Errorf("%s: NodeClaim %s is deleted", pool, claim.GetName())
			}
		}
	}
}

// While the start-up taint stays, Karpenter does not take the Node for started, and starts no
// second one for the pod that waits. When the agent has removed the taint, the pod gets the
// Node.
func TestKarpenterWaitsForTheFirstVerdict(t *testing.T) {
	requireNeighbours(t)
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	c := provisioned.Require(t)
	k := startKarpenter(t, c)
	node := k.provision(t, "starting", "[{key: "+startingTaint+", effect: NoSchedule}]", 1)[0]
	waitNode(t, c, node.Name, cluster.HasTaint(startingTaint, corev1.TaintEffectNoSchedule))
	cluster.Eventually(t, "Karpenter to wait for the taint", func() error {
		claims, err := k.list(t.Context(), "starting")
		if err != nil || len(claims) != 1 {
			return fmt.Errorf("%d NodeClaims: %w", len(claims), err)
		}
		if status, reason := initialized(claims[0]); status != "Unknown" || reason != "StartupTaintsExist" {
			return fmt.Errorf("Initialized is %s, %s", status, reason)
		}
		return nil
	})
	if _, err := c.WaitPod(t.Context(), metav1.NamespaceDefault, "starting-0", cluster.Unschedulable); err != nil {
		t.Fatal(err)
	}
	// Neither a kubelet nor a peer is there to answer.
	startAgentWith(t, c, node.Name, "network: {period: 1s, disabledClasses: [self, local, pods, dns, peers]}\nstartup: {taint: "+startingTaint+"}")
	pod, err := c.WaitPod(t.Context(), metav1.NamespaceDefault, "starting-0", cluster.Scheduled)
	if err != nil {
		t.Fatal(err)
	}
	if pod.Spec.NodeName != node.Name {
		t.Errorf("the pod is on %s, not on %s", pod.Spec.NodeName, node.Name)
	}
	k.waitInitialized(t, "starting")
	if claims, err := k.list(t.Context(), "starting"); err != nil || len(claims) != 1 {
		t.Errorf("%d NodeClaims: %v", len(claims), err)
	}
}
