package integration

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/test/fixtures"
	corev1 "k8s.io/api/core/v1"
)

// A kubelet may write annotations on its Node, but no taint. Whatever it writes
// into the record or the held annotation, others' taints stay: under a running
// agent, under one that starts, and in a cleanup.
func TestForgedAnnotationsMoveNoForeignTaint(t *testing.T) {
	t.Parallel()
	c := keeping.require(t)
	node, host := c.Register(t, "forged"), fixtures.NewHost(t)
	c.SetTaints(t, node.Name, dedicated,
		corev1.Taint{Key: "example.com/maintenance", Value: "tonight", Effect: corev1.TaintEffectNoSchedule},
		corev1.Taint{Key: "example.com/gpu", Effect: corev1.TaintEffectNoExecute})
	c.RunKubectl(t, "cordon", node.Name) // for which the controller adds a taint
	foreign := taintsOf(waitNode(t, c, node.Name, tainted(corev1.TaintNodeUnschedulable)))
	versions := follow(t, c, node.Name)
	owned := []string{"dedicated:NoSchedule", "example.com/maintenance:NoSchedule", "example.com/gpu:NoExecute", corev1.TaintNodeUnschedulable + ":NoSchedule"}
	forge := func(node *corev1.Node) {
		t.Helper()
		annotateAsKubelet(t, c, node.Name, "taintlet.dev/record", forgedRecord(t, node, owned))
		// Without our own key the controller would remove our taint, as it should.
		annotateAsKubelet(t, c, node.Name, "taintlet.dev/held", "dedicated,example.com/maintenance,"+corev1.TaintNodeUnschedulable+","+memoryKey)
	}
	held := func(node *corev1.Node) bool { return node.Annotations["taintlet.dev/held"] == memoryKey }
	correct := func(node *corev1.Node) bool { return held(node) && !slices.Contains(recordOf(node).Owned, owned[0]) }

	a := startAgent(t, c, node.Name, host, quick)
	host.Memory(2)
	at := versions.wait(0, tainted(memoryKey))
	forge(versions.since(at)[0].Node)
	at = versions.wait(at+1, correct) // by the running agent
	host.Memory(50)
	at = versions.wait(at, untainted(memoryKey))

	host.Memory(2)
	at = versions.wait(at, tainted(memoryKey))
	a.Kill()
	forge(versions.since(at)[0].Node)
	a = startAgent(t, c, node.Name, host, quick)
	at = versions.wait(at+1, writtenBy(a.Instance()))
	at = versions.wait(at, held) // one that starts goes on naming what may have been its own
	host.Memory(50)
	at = versions.wait(at, untainted(memoryKey))

	host.Memory(2)
	at = versions.wait(at, tainted(memoryKey))
	a.Kill()
	forge(versions.since(at)[0].Node)
	code, out := cleanup(t, c, node.Name)
	for _, pair := range owned {
		if code != 1 || !strings.Contains(out, pair) || strings.Contains(out, "removed taint "+pair) {
			t.Errorf("cleanup, exit code %d, does not say that %s stays:\n%s", code, pair, out)
		}
	}
	versions.wait(at, untainted(memoryKey))
	for _, v := range versions.since(0) {
		if now := taintsOf(v.Node, memoryKey); !slices.Equal(now, foreign) {
			t.Fatalf("foreign taints are %v, were %v; taints were\n%s", now, foreign, show(versions.since(0)))
		}
	}
}

// A whole record is forged on a Node that never had one. An agent that starts
// cannot tell that from a rule that was dropped: it removes nothing, and goes on
// naming what it found, so that a cleanup does not pass over it in silence.
func TestRecordForgedOutOfNothing(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	node, host := c.Register(t, "forged-anew"), fixtures.NewHost(t)
	c.SetTaints(t, node.Name, dedicated)
	annotateAsKubelet(t, c, node.Name, "taintlet.dev/record",
		`{"version":1,"revision":7,"boot":"x","at":1,"instance":{"name":"kubelet","term":9,"startedAt":1},"owned":["dedicated:NoSchedule"],"conditions":{}}`)
	versions := follow(t, c, node.Name)
	a := startAgent(t, c, node.Name, host, quick)
	at := versions.wait(0, writtenBy(a.Instance()))
	host.Memory(2)
	at = versions.wait(at, tainted(memoryStandIn))
	host.Memory(50)
	at = versions.wait(at, untainted(memoryStandIn))
	for _, v := range versions.since(0) {
		if now := taintsOf(v.Node, memoryStandIn); !slices.Equal(now, []string{"dedicated=group:NoSchedule"}) {
			t.Fatalf("the foreign taint did not stay; taints were\n%s", show(versions.since(0)))
		}
	}
	if owned := recordOf(versions.since(at)[0].Node).Owned; !slices.Equal(owned, []string{"dedicated:NoSchedule"}) {
		t.Errorf("the record names %v", owned)
	}
}

// forgedRecord is the Node's record with these pairs as taintlet's own beside
// those that are.
func forgedRecord(t *testing.T, node *corev1.Node, owned []string) string {
	t.Helper()
	var forged map[string]any
	if err := json.Unmarshal([]byte(node.Annotations["taintlet.dev/record"]), &forged); err != nil {
		t.Fatal(err)
	}
	forged["owned"] = append(slices.Clone(owned), recordOf(node).Owned...)
	return string(marshal(t, forged))
}
