package neighbours

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

const poolLabel = "karpenter.sh/nodepool"

// startingTaint is the start-up taint that the installation lets agents remove.
const startingTaint = "example.com/starting"

// startupTaints tells a NodePool of the start-up taint.
const startupTaints = "[{key: " + startingTaint + ", effect: NoSchedule}]"

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
	program string
	process *process.Process
	output  *process.Lines
	metrics string // the URL of the metrics
	// kubelets are the Nodes whose kubelets the test stands in for.
	kubelets map[string]*cluster.Node
}

// startKarpenter starts it as the administrator, with repair, for the length of the test. The
// list of its provider lacks HostRepairNeeded.
func startKarpenter(t *testing.T, c *cluster.Cluster) *karpenter {
	t.Helper()
	folder, flags := karpenterSource(t)
	for _, pattern := range []string{"pkg/apis/crds/*.yaml", "kwok/apis/crds/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("Karpenter has no %s: %v", pattern, err)
		}
		for _, file := range files {
			if err := c.Apply(t.Context(), file); err != nil {
				t.Fatal(err)
			}
		}
	}
	classes := bed.ManifestFile(t, "apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: default}\n")
	cluster.Eventually(t, "the kinds of Karpenter", func() error { return c.Apply(t.Context(), classes) })
	client, err := dynamic.NewForConfig(c.Admin())
	if err != nil {
		t.Fatal(err)
	}
	k := &karpenter{cluster: c, kubelets: map[string]*cluster.Node{}, program: build(t, "karpenter", "karpenter", flags...),
		claims: client.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"})}
	t.Cleanup(func() {
		for _, node := range k.kubelets {
			_ = node.Stop() // Karpenter may have deleted the Node
		}
	})
	k.start(t, 0, "")
	return k
}

// start starts the program with a clock that is ahead, and returns when it looks for Nodes to
// repair. An action is that for HostRepairNeeded.
func (k *karpenter) start(t *testing.T, ahead time.Duration, action string) {
	t.Helper()
	ports, err := cluster.FreePorts("127.0.0.1", 2)
	if err != nil {
		t.Fatal(err)
	}
	k.output, k.metrics = &process.Lines{}, "http://127.0.0.1:"+ports[0]+"/metrics"
	command := exec.Command(k.program, "--disable-leader-election=true", "--feature-gates=NodeRepair=true", //nolint:gosec // it lives until it is ended
		"--metrics-port="+ports[0], "--health-probe-port="+ports[1])
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(t, k.cluster.Admin()), "SYSTEM_NAMESPACE=kube-system", "TAINTLET_CLOCK_AHEAD="+ahead.String(), "TAINTLET_REPAIR="+action)
	command.Stdout = k.output
	k.process = bed.StartProgram(t, "Karpenter", command, k.output)
	ctx, cancel := context.WithTimeout(t.Context(), bed.Patience)
	defer cancel()
	if err := k.process.WaitLines(ctx, k.output, func(lines []string) bool {
		return slices.ContainsFunc(lines, func(line string) bool {
			return strings.Contains(line, "Starting workers") && strings.Contains(line, `"controller":"disruption"`)
		})
	}); err != nil {
		t.Fatalf("Karpenter does not start: %v\n%s", err, k.output)
	}
}

// restart starts the program anew with a clock that is ahead.
func (k *karpenter) restart(t *testing.T, ahead time.Duration, action string) {
	t.Helper()
	if err := k.process.Kill(); err != nil {
		t.Fatal(err)
	}
	k.start(t, ahead, action)
}

// list returns the NodeClaims of a NodePool.
func (k *karpenter) list(ctx context.Context, pool string) ([]unstructured.Unstructured, error) {
	found, err := k.claims.List(ctx, metav1.ListOptions{LabelSelector: poolLabel + "=" + pool})
	if err != nil {
		return nil, err
	}
	return found.Items, nil
}

// kept returns the Nodes of a NodePool whose NodeClaims Karpenter does not delete.
func (k *karpenter) kept(t *testing.T, pool string) (nodes []string) {
	t.Helper()
	claims, err := k.list(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, claim := range claims {
		if name, _, _ := unstructured.NestedString(claim.Object, "status", "nodeName"); claim.GetDeletionTimestamp() == nil {
			nodes = append(nodes, name)
		}
	}
	return nodes
}

// conditionOf is status and reason of a NodeClaim's condition.
func conditionOf(claim unstructured.Unstructured, kind string) (status, reason string) {
	conditions, _, _ := unstructured.NestedSlice(claim.Object, "status", "conditions")
	for _, entry := range conditions {
		if condition, _ := entry.(map[string]any); condition["type"] == kind {
			status, _ = condition["status"].(string)
			reason, _ = condition["reason"].(string)
		}
	}
	return status, reason
}

// ask creates a pod that asks for a Node of the pool which it shares with no other such pod.
func (k *karpenter) ask(t *testing.T, pool, name string) {
	t.Helper()
	pod := cluster.NewPod(pool+"-"+name, "")
	pod.Labels = map[string]string{"asks-for": pool}
	pod.Spec.NodeSelector = map[string]string{poolLabel: pool}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	pod.Spec.Affinity = alone(pod.Labels)
	if _, err := k.cluster.Client().CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// alone lets a Node have one pod with these labels.
func alone(labels map[string]string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: corev1.LabelHostname,
	}}}}
}

// provision makes Karpenter start Nodes of a new NodePool, and stands in for their kubelets.
func (k *karpenter) provision(t *testing.T, name, startupTaints string, count int) []*cluster.Node {
	t.Helper()
	bed.Apply(t.Context(), t, k.cluster, fmt.Sprintf(pool, name, startupTaints))
	for i := range count {
		k.ask(t, name, fmt.Sprint(i))
	}
	return k.adopt(t, name, count)
}

// adopt waits until the NodePool has that many Nodes and stands in for the kubelets of those
// that have none yet. It returns these.
func (k *karpenter) adopt(t *testing.T, name string, count int) (nodes []*cluster.Node) {
	t.Helper()
	var found *corev1.NodeList
	cluster.Eventually(t, "the Nodes of NodePool "+name, func() (err error) {
		found, err = k.cluster.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: poolLabel + "=" + name})
		if err == nil && len(found.Items) != count {
			err = fmt.Errorf("%d of %d", len(found.Items), count)
		}
		return err
	})
	for _, item := range found.Items {
		if k.kubelets[item.Name] != nil {
			continue
		}
		node, err := k.cluster.AdoptNode(t.Context(), item.Name)
		if err != nil {
			t.Fatal(err)
		}
		k.kubelets[item.Name] = node
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
			if status, reason := conditionOf(claim, "Initialized"); status != "True" {
				return fmt.Errorf("%s is %s, %s", claim.GetName(), status, reason)
			}
		}
		return err
	})
}

// waitStartupTaint waits until Karpenter waits for the start-up taint of the only Node.
func (k *karpenter) waitStartupTaint(t *testing.T, pool string) {
	t.Helper()
	cluster.Eventually(t, "Karpenter to wait for the taint", func() error {
		claims, err := k.list(t.Context(), pool)
		if err != nil || len(claims) != 1 {
			return fmt.Errorf("%d NodeClaims: %w", len(claims), err)
		}
		if status, reason := conditionOf(claims[0], "Initialized"); status != "Unknown" || reason != "StartupTaintsExist" {
			return fmt.Errorf("Initialized is %s, %s", status, reason)
		}
		return nil
	})
}

// While the start-up taint stays, Karpenter does not take the Node for started, and starts no
// second one for the pod that waits. When the agent has removed the taint, the pod gets the
// Node.
func TestKarpenterWaitsForTheFirstVerdict(t *testing.T) {
	requireNeighbours(t)
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	c := provisioned.Require(t)
	k := startKarpenter(t, c)
	c.RunKubectl(t, "apply", "--dry-run=server", "--validate=strict", "-f", bed.ManifestFile(t, example(t, "apiVersion: karpenter.sh/")))
	node := k.provision(t, "starting", startupTaints, 1)[0]
	waitNode(t, c, node.Name, cluster.HasTaint(startingTaint, corev1.TaintEffectNoSchedule))
	k.waitStartupTaint(t, "starting")
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
