package neighbours

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// removeAll is a policy that evicts for every taint.
const removeAll = `
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
  - name: default
    plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
    pluginConfig: [{name: RemovePodsViolatingNodeTaints, args: {}}]
`

// descheduler is the real one, in rounds of a second.
type descheduler struct {
	process *process.Process
	output  process.Lines
}

// startDescheduler starts it as the administrator, for the length of the test.
func startDescheduler(t *testing.T, c *cluster.Cluster, policy string) *descheduler {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	ports, err := cluster.FreePorts("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	d := &descheduler{}
	command := exec.Command(build(t, "descheduler", "descheduler"), "--kubeconfig="+cluster.Kubeconfig(t, c.Admin()), //nolint:gosec // it lives until it is ended
		"--policy-config-file="+path, "--descheduling-interval=1s", "--v=1",
		"--bind-address=127.0.0.1", "--secure-port="+ports[0], "--cert-dir="+t.TempDir())
	d.process = bed.StartProgram(t, "the descheduler", command, &d.output)
	return d
}

var evictedPod = regexp.MustCompile(`"Evicted pod" pod="default/(\S+)" .*strategy="RemovePodsViolatingNodeTaints" node="(\S+)"`)

// evicted waits until the descheduler has evicted the pod named NODE-plain, and for two whole
// rounds after that round. It returns what follows NODE- in the names of the pods that it has
// evicted from the Node until then.
func (d *descheduler) evicted(t *testing.T, node string) (names []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*bed.Patience)
	defer cancel()
	err := d.process.WaitLines(ctx, &d.output, func(lines []string) bool {
		rounds := 0
		names = nil
		for _, line := range lines {
			match := evictedPod.FindStringSubmatch(line)
			if match != nil && match[2] == node {
				names = append(names, strings.TrimPrefix(match[1], node+"-"))
			}
			if slices.Contains(names, "plain") && strings.Contains(line, "Number of evictions/requests") {
				rounds++
			}
		}
		return rounds == 3
	})
	if err != nil {
		t.Fatalf("pod %s-plain is not evicted: %v", node, err)
	}
	slices.Sort(names)
	return names
}

// settle waits for two whole rounds after the present one.
func (d *descheduler) settle(t *testing.T) {
	t.Helper()
	const end = "Number of evictions/requests"
	ctx, cancel := context.WithTimeout(t.Context(), 2*bed.Patience)
	defer cancel()
	want := strings.Count(d.output.String(), end) + 3
	if err := d.process.WaitLines(ctx, &d.output, func(lines []string) bool {
		rounds := 0
		for _, line := range lines {
			rounds += strings.Count(line, end)
		}
		return rounds >= want
	}); err != nil {
		t.Fatal(err)
	}
}

// evictions counts the pods that it has evicted from the Nodes until now.
func (d *descheduler) evictions(nodes ...string) (count int) {
	for _, match := range evictedPod.FindAllStringSubmatch(d.output.String(), -1) {
		if slices.Contains(nodes, match[2]) {
			count++
		}
	}
	return count
}

// createPods creates pods of each kind on a Node and waits until they run there: one without
// tolerations, one that tolerates the well-known key, one that tolerates all, one that no
// controller owns, and one of a DaemonSet.
func createPods(t *testing.T, c *cluster.Cluster, node, wellKnown string) {
	t.Helper()
	owner, err := c.Client().CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tolerations := range map[string][]corev1.Toleration{
		"plain": nil, "alone": nil,
		"tolerating": {{Key: wellKnown, Operator: corev1.TolerationOpExists}},
		"hardened":   {{Operator: corev1.TolerationOpExists}},
	} {
		pod := cluster.NewPod(node+"-"+name, node, tolerations...)
		if name != "alone" {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
		}
		createPod(t, c, pod)
	}
	labels := map[string]string{"daemon-of": node}
	template := cluster.NewPod("", node).Spec
	daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: node + "-daemon"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template},
	}}
	if _, err := c.Client().AppsV1().DaemonSets(metav1.NamespaceDefault).Create(t.Context(), daemons, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, "the pod of the DaemonSet on "+node, func() error {
		pods, err := c.Client().CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{LabelSelector: "daemon-of=" + node, FieldSelector: "spec.nodeName=" + node})
		if err == nil && len(pods.Items) != 1 {
			err = fmt.Errorf("%d pods", len(pods.Items))
		}
		return err
	})
}

// createPod creates a pod and waits until it has its Node. It ends at once, because no kubelet
// confirms the end.
func createPod(t *testing.T, c *cluster.Cluster, pod *corev1.Pod) {
	t.Helper()
	now := int64(0)
	pod.Spec.TerminationGracePeriodSeconds = &now
	pods := c.Client().CoreV1().Pods(metav1.NamespaceDefault)
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pods.Delete(context.Background(), pod.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	if _, err := c.WaitPod(t.Context(), metav1.NamespaceDefault, pod.Name, cluster.Scheduled); err != nil {
		t.Fatal(err)
	}
}

// For a taint that taintlet keeps, the descheduler evicts the same pods as for the taint that
// Kubernetes sets for the kubelet. For a stand-in it evicts the pods that tolerate the
// well-known key as well, and no others.
func TestDeschedulerBesideTaintlet(t *testing.T) {
	requireNeighbours(t)
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	for _, by := range []struct {
		name    string
		on      *bed.Installation
		key     func(trouble) string
		evicted string
	}{
		{"kubelet", &plain, func(of trouble) string { return of.wellKnown }, "plain"},
		{"kept", &keeping, func(of trouble) string { return of.wellKnown }, "plain"},
		{"stand-in", &plain, func(of trouble) string { return of.standIn }, "plain tolerating"},
	} {
		t.Run(by.name, func(t *testing.T) {
			c := by.on.Require(t)
			d := startDescheduler(t, c, removeAll)
			c.Register(t, by.name+"-other") // it does nothing in a cluster of one Node
			for _, of := range troubles() {
				t.Run(of.name, func(t *testing.T) {
					node := c.Register(t, by.name+"-"+of.name)
					createPods(t, c, node.Name, of.wellKnown)
					if by.name == "kubelet" {
						if err := node.SetCondition(t.Context(), of.kubelets, corev1.ConditionTrue); err != nil {
							t.Fatal(err)
						}
					} else {
						of.begin(startAgent(t, c, node.Name))
					}
					waitNode(t, c, node.Name, cluster.HasTaint(by.key(of), corev1.TaintEffectNoSchedule))
					tainted := time.Now()
					evicted := strings.Join(d.evicted(t, node.Name), " ")
					t.Logf("%s: evicted %s within %s, with the two rounds after it", by.key(of), evicted, time.Since(tainted).Round(time.Second))
					if evicted != by.evicted {
						t.Errorf("evicted %s, not %s", evicted, by.evicted)
					}
				})
			}
		})
	}
}

// With the policy of docs/neighbours.md, the descheduler evicts no pod for a taint of taintlet,
// and still evicts for others.
func TestDeschedulerExcludesTaints(t *testing.T) {
	requireNeighbours(t)
	c := plain.Require(t)
	d := startDescheduler(t, c, example(t, "apiVersion: descheduler/"))
	of := troubles()[0]
	kubelets, ours, others := c.Register(t, "excluded-kubelet"), c.Register(t, "excluded-ours"), c.Register(t, "excluded-not")
	for _, node := range []string{kubelets.Name, ours.Name, others.Name} {
		createPods(t, c, node, of.wellKnown)
	}
	if err := kubelets.SetCondition(t.Context(), of.kubelets, corev1.ConditionTrue); err != nil {
		t.Fatal(err)
	}
	of.begin(startAgent(t, c, ours.Name))
	waitNode(t, c, kubelets.Name, cluster.HasTaint(of.wellKnown, corev1.TaintEffectNoSchedule))
	waitNode(t, c, ours.Name, cluster.HasTaint(of.standIn, corev1.TaintEffectNoSchedule))
	// The descheduler's watch tells of this one last.
	c.SetTaints(t, others.Name, corev1.Taint{Key: "example.com/other", Effect: corev1.TaintEffectNoSchedule})
	d.evicted(t, others.Name)
	for _, match := range evictedPod.FindAllStringSubmatch(d.output.String(), -1) {
		if match[2] != others.Name {
			t.Errorf("evicted %s", match[1])
		}
	}
}
