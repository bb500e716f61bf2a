package security

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// forgedNode is a Node whose kubelet forges annotations, with a host and an agent that
// is started and killed.
type forgedNode struct {
	*observer

	t    *testing.T
	c    *cluster.Cluster
	name string
	host *fixtures.Host
	args []string
}

func newForgedNode(t *testing.T, c *cluster.Cluster, name string) *forgedNode {
	t.Helper()
	c.Register(t, name)
	host := fixtures.NewHost(t)
	return &forgedNode{t: t, c: c, name: name, host: host, args: agentFlags(t, c, name, host, configuration)}
}

func (n *forgedNode) start() *bed.Agent {
	n.t.Helper()
	return bed.StartAgent(n.t, program.Path(n.t), n.args...)
}

// cleanup runs taintlet cleanup node with the agent's rights.
func (n *forgedNode) cleanup() (code int, said string) {
	n.t.Helper()
	command := exec.CommandContext(n.t.Context(), program.Path(n.t), "cleanup", "node", n.name, //nolint:gosec // our own binary
		"--kubeconfig="+cluster.Kubeconfig(n.t, bed.AgentOf(n.t, n.c, n.name)))
	out, err := command.CombinedOutput()
	if command.ProcessState == nil {
		n.t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(out)
}

func (n *forgedNode) waitFor(what string, holds func(*corev1.Node) bool) *corev1.Node {
	n.t.Helper()
	n.wait(n.t, what, holds)
	if n.t.Failed() {
		n.t.FailNow()
	}
	node, _, _ := n.newest()
	return node
}

// annotateAsKubelet writes annotations with the identity of the Node's own kubelet,
// which may do that and may not change a taint. It returns the Node as it then is.
func (n *forgedNode) annotateAsKubelet(annotations map[string]string) *corev1.Node {
	n.t.Helper()
	patch := marshal(n.t, map[string]any{"metadata": map[string]any{"annotations": annotations}})
	node, err := kubelet(n.t, n.c, n.name).CoreV1().Nodes().Patch(n.t.Context(), n.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return node
}

// after restricts a condition to versions of the Node that are newer.
func after(t *testing.T, node *corev1.Node, holds func(*corev1.Node) bool) func(*corev1.Node) bool {
	t.Helper()
	return func(now *corev1.Node) bool {
		order, err := resourceversion.CompareResourceVersion(now.ResourceVersion, node.ResourceVersion)
		if err != nil {
			t.Fatal(err)
		}
		return order > 0 && holds(now)
	}
}

func ownedBy(node *corev1.Node) []string {
	var record struct{ Owned []string }
	if err := json.Unmarshal([]byte(node.Annotations[taints.RecordAnnotation]), &record); err != nil {
		return nil
	}
	return record.Owned
}

// A kubelet may write annotations on its Node, but no taint. Whatever it writes
// into the record or the held annotation, others' taints stay: under a running
// agent, under one that starts, and in a cleanup.
func TestForgedAnnotationsMoveNoForeignTaint(t *testing.T) {
	cluster.SkipUnlessRequired(t)
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	c := attackable.Require(t)
	n := newForgedNode(t, c, "forged")
	c.SetTaints(t, n.name, corev1.Taint{Key: "dedicated", Value: "group", Effect: corev1.TaintEffectNoSchedule},
		corev1.Taint{Key: "example.com/maintenance", Value: "tonight", Effect: corev1.TaintEffectNoSchedule},
		corev1.Taint{Key: "example.com/gpu", Effect: corev1.TaintEffectNoExecute})
	c.RunKubectl(t, "cordon", n.name) // for which the controller adds a taint
	if _, err := c.WaitNode(t.Context(), n.name, cluster.HasTaint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)); err != nil {
		t.Fatal(err)
	}
	n.observer = observe(t, c, n.name)
	n.guard(true)
	owned := []string{"dedicated:NoSchedule", "example.com/maintenance:NoSchedule", "example.com/gpu:NoExecute", corev1.TaintNodeUnschedulable + ":NoSchedule"}
	const memoryKey = corev1.TaintNodeMemoryPressure
	isHeld := func(node *corev1.Node) bool { return node.Annotations[taints.HeldAnnotation] == memoryKey }
	forge := func() *corev1.Node {
		t.Helper()
		node := n.waitFor("a record and a held taint", func(node *corev1.Node) bool { return isTainted(node) && isHeld(node) && ownedBy(node) != nil })
		return n.annotateAsKubelet(map[string]string{
			taints.RecordAnnotation: forgedRecord(t, node, owned),
			// Without our own key the controller would remove our taint, as it should.
			taints.HeldAnnotation: "dedicated,example.com/maintenance," + corev1.TaintNodeUnschedulable + "," + memoryKey,
		})
	}

	a := n.start()
	n.host.Memory(2)
	forged := forge()
	n.waitFor("the record and the held annotation corrected by the running agent", after(t, forged, func(node *corev1.Node) bool {
		return isHeld(node) && !slices.Contains(ownedBy(node), owned[0])
	}))
	n.host.Memory(50)
	n.waitFor("recovered", cluster.Not(isTainted))

	n.host.Memory(2)
	n.waitFor("its taint again", isTainted)
	a.Kill()
	forge()
	a = n.start()
	// One that starts goes on naming what may have been its own.
	n.waitFor("the record of the agent that started", func(node *corev1.Node) bool { return isHeld(node) && isRecordOf(node, a) })
	n.host.Memory(50)
	n.waitFor("recovered", cluster.Not(isTainted))
	if code, body := a.Get("/readyz"); code != http.StatusOK { // as when a write was refused
		t.Errorf("/readyz = %d %s", code, body)
	}

	n.host.Memory(2)
	n.waitFor("its taint a third time", isTainted)
	a.Kill()
	forge()
	code, out := n.cleanup()
	for _, pair := range owned {
		if code != 1 || !strings.Contains(out, pair) || strings.Contains(out, "removed taint "+pair) {
			t.Errorf("cleanup, exit code %d, does not say that %s stays:\n%s", code, pair, out)
		}
	}
	n.waitFor("no taint of ours", cluster.Not(isTainted))
	for _, change := range n.foreignChanges() {
		t.Errorf("something foreign changed: %s", change)
	}
}

// A whole record is forged on a Node that never had one. An agent that starts
// cannot tell that from a rule that was dropped: it removes nothing, and goes on
// naming what it found, so that a cleanup does not pass over it in silence.
func TestRecordForgedOutOfNothing(t *testing.T) {
	c := denying.Require(t)
	n := newForgedNode(t, c, "forged-anew")
	c.SetTaints(t, n.name, corev1.Taint{Key: "dedicated", Value: "group", Effect: corev1.TaintEffectNoSchedule})
	n.annotateAsKubelet(map[string]string{taints.RecordAnnotation: `{"version":1,"revision":7,"boot":"x","at":1,"instance":{"name":"kubelet","term":9,"startedAt":1},"owned":["dedicated:NoSchedule"],"conditions":{}}`})
	n.observer = observe(t, c, n.name)
	n.guard(true)
	a := n.start()
	n.waitFor("the agent's record", func(node *corev1.Node) bool { return isRecordOf(node, a) })
	n.host.Memory(2)
	n.waitFor("a stand-in", cluster.HasTaint("taintlet.dev/memory-pressure", corev1.TaintEffectNoSchedule))
	n.host.Memory(50)
	node := n.waitFor("recovered", cluster.Not(isTainted))
	for _, change := range n.foreignChanges() {
		t.Errorf("something foreign changed: %s", change)
	}
	if owned := ownedBy(node); !slices.Equal(owned, []string{"dedicated:NoSchedule"}) {
		t.Errorf("the record names %v", owned)
	}
	if code, body := a.Get("/readyz"); code != http.StatusOK { // as when a write was refused
		t.Errorf("/readyz = %d %s", code, body)
	}
}

// isRecordOf says whether the Node's record is by that agent.
func isRecordOf(node *corev1.Node, a *bed.Agent) bool {
	var record struct{ Instance struct{ Name string } }
	return json.Unmarshal([]byte(node.Annotations[taints.RecordAnnotation]), &record) == nil && record.Instance.Name == a.Instance()
}

// forgedRecord is the Node's record with these pairs as taintlet's own beside
// those that are.
func forgedRecord(t *testing.T, node *corev1.Node, owned []string) string {
	t.Helper()
	var forged map[string]any
	if err := json.Unmarshal([]byte(node.Annotations[taints.RecordAnnotation]), &forged); err != nil {
		t.Fatal(err)
	}
	forged["owned"] = append(slices.Clone(owned), ownedBy(node)...)
	return marshal(t, forged)
}
