package neighbours

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
	"github.com/taintlet/taintlet/test/process"
)

// veto is Karpenter's annotation that keeps a Node from repair.
const veto = "karpenter.sh/do-not-repair"

// repaired is for tests that have Nodes repaired.
var repaired = bed.Installation{Keep: true}

// needRepair lets the Nodes lose their networks, until each needs a repair for that.
func needRepair(t *testing.T, c *cluster.Cluster, nodes ...*cluster.Node) (hosts []*fixtures.Host) {
	t.Helper()
	lost := troubles()[3]
	for _, node := range nodes {
		host := startAgentWith(t, c, node.Name, quick)
		waitNode(t, c, node.Name, cluster.HasCondition("HostNetworkUnavailable", corev1.ConditionFalse))
		lost.begin(host)
		hosts = append(hosts, host)
	}
	for _, node := range nodes {
		waitNode(t, c, node.Name, cluster.HasTaint(lost.wellKnown, corev1.TaintEffectNoSchedule))
		waitNode(t, c, node.Name, cluster.HasCondition(decide.RepairType, corev1.ConditionTrue))
	}
	return hosts
}

// annotate sets the veto on a Node, or removes it.
func annotate(t *testing.T, c *cluster.Cluster, node *cluster.Node, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: %s}}}`, veto, value)
	if err := bed.PatchNode(t.Context(), c.Client(), node.Name, types.MergePatchType, patch); err != nil {
		t.Fatal(err)
	}
}

// waitEvent waits for an Event of a Node.
func waitEvent(t *testing.T, c *cluster.Cluster, node *cluster.Node, reason, text string) {
	t.Helper()
	cluster.Eventually(t, reason+" of "+node.Name, func() error {
		events, err := c.Client().CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Node,involvedObject.name=" + node.Name})
		if err != nil {
			return err
		}
		var seen []string
		for _, event := range events.Items {
			if event.Reason == reason && strings.Contains(event.Message, text) {
				return nil
			}
			seen = append(seen, event.Reason+": "+event.Message)
		}
		return fmt.Errorf("only %q", seen)
	})
}

// metric is the value of one of Karpenter's time series.
func (k *karpenter) metric(t *testing.T, series string) float64 {
	t.Helper()
	page, err := process.Get(t.Context(), http.DefaultClient, k.metrics)
	if err != nil {
		t.Fatal(err)
	}
	return bed.Metric(string(page), series)
}

// settle waits until Karpenter has looked for Nodes to repair twice more. It has then done so
// once with what is there now.
func (k *karpenter) settle(t *testing.T) {
	t.Helper()
	const rounds = `karpenter_voluntary_disruption_decision_evaluation_duration_seconds_count{consolidation_type="",reason="unhealthy"}`
	want := k.metric(t, rounds) + 2
	cluster.Eventually(t, "two rounds of repair", func() error {
		if got := k.metric(t, rounds); got < want {
			return fmt.Errorf("%v of %v", got, want)
		}
		return nil
	})
}

// disrupted returns the Nodes of a NodePool that Karpenter repairs.
func (k *karpenter) disrupted(t *testing.T, pool string) (nodes []string) {
	t.Helper()
	claims, err := k.list(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, claim := range claims {
		name, _, _ := unstructured.NestedString(claim.Object, "status", "nodeName")
		switch status, reason := conditionOf(claim, "DisruptionReason"); {
		case status == "True" && reason == "Unhealthy":
			nodes = append(nodes, name)
		case status == "True" || claim.GetDeletionTimestamp() != nil:
			t.Errorf("%s of %s: DisruptionReason %s, %s", claim.GetName(), pool, status, reason)
		}
	}
	return nodes
}

// waitRepair waits until Karpenter repairs one of the Nodes or has done so, and returns that.
func (k *karpenter) waitRepair(t *testing.T, pool string, of ...string) (name string) {
	t.Helper()
	cluster.Eventually(t, "the repair of one of "+strings.Join(of, ", "), func() error {
		begun, kept := k.disrupted(t, pool), k.kept(t, pool)
		for _, name = range of {
			if slices.Contains(begun, name) || !slices.Contains(kept, name) {
				return nil
			}
		}
		return fmt.Errorf("Karpenter repairs %v and keeps %v", begun, kept)
	})
	return name
}

// If its provider lists HostRepairNeeded, Karpenter repairs a Node that needs a repair as a
// voluntary disruption: none with its veto, none while more than 20 % of the NodePool are
// unhealthy, and one in ten at a time by the default budget, each after its replacement has
// started.
func TestKarpenterRepairsWithinItsBudget(t *testing.T) {
	requireNeighbours(t)
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	const pool, count = "repaired", 9 // 10 while one starts
	c := repaired.Require(t)
	k := startKarpenter(t, c)
	nodes := k.provision(t, pool, "[]", count)
	k.waitInitialized(t, pool)
	hosts := needRepair(t, c, nodes[:3]...)
	for _, node := range nodes[:2] {
		annotate(t, c, node, `"true"`)
	}

	k.restart(t, 0, "ReplaceNode")
	waitEvent(t, c, nodes[2], "NodeRepairBlocked", `more than 20% of nodes in nodepool "repaired" are unhealthy`)
	troubles()[3].end(hosts[2])
	waitNode(t, c, nodes[2].Name, cluster.HasCondition(decide.RepairType, corev1.ConditionFalse))
	var needy []string
	for _, node := range nodes[:2] {
		waitEvent(t, c, node, "DisruptionBlocked", `repair is blocked through the "`+veto+`" annotation`)
		needy = append(needy, node.Name)
	}
	k.settle(t)
	if got := k.disrupted(t, pool); len(got) > 0 {
		t.Errorf("Karpenter repairs %v", got)
	}

	for _, node := range nodes[:2] {
		annotate(t, c, node, "null")
	}
	first := k.waitRepair(t, pool, needy...)
	k.settle(t)
	if nodes, kept := k.disrupted(t, pool), k.kept(t, pool); !slices.Equal(nodes, []string{first}) || !slices.Contains(kept, first) {
		t.Errorf("before the replacement has started, Karpenter repairs %v and keeps %v", nodes, kept)
	}
	if got := k.metric(t, `karpenter_nodepools_allowed_disruptions{nodepool="repaired",reason="unhealthy"}`); got != 1 {
		t.Errorf("the budget allows %v repairs", got)
	}
	k.adopt(t, pool, count+1)
	k.waitRepair(t, pool, slices.DeleteFunc(needy, func(name string) bool { return name == first })...)
	if kept := k.kept(t, pool); slices.Contains(kept, first) {
		t.Errorf("Karpenter keeps %v", kept)
	}
}

// If the provider's action is a reboot, Karpenter reboots the Node, keeps its NodeClaim, and
// takes it for started again although it has the taint of the fault.
func TestKarpenterReboots(t *testing.T) {
	requireNeighbours(t)
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	const pool = "rebooted"
	c := repaired.Require(t)
	k := startKarpenter(t, c)
	node := k.provision(t, pool, "[]", 1)[0]
	k.waitInitialized(t, pool)
	needRepair(t, c, node)
	k.restart(t, 0, "RebootNode")
	cluster.Eventually(t, "the reboot of "+node.Name, func() error {
		claims, err := k.list(t.Context(), pool)
		if err != nil {
			return err
		}
		if len(claims) != 1 {
			return fmt.Errorf("%d NodeClaims", len(claims))
		}
		if status, reason := conditionOf(claims[0], "Rebooting"); status != "False" || reason != "RebootSucceeded" {
			return fmt.Errorf("Rebooting is %s, %s", status, reason)
		}
		return nil
	})
	k.waitInitialized(t, pool)
	rebooted := c.GetNode(t, node.Name)
	if boot := rebooted.Status.NodeInfo.BootID; !strings.HasPrefix(boot, "kwok-") {
		t.Errorf("the boot of %s is %q", node.Name, boot)
	}
	if lost := troubles()[3]; !cluster.HasTaint(lost.wellKnown, corev1.TaintEffectNoSchedule)(rebooted) {
		t.Errorf("%s has the taints %v", node.Name, rebooted.Spec.Taints)
	}
}
