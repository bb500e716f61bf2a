package integration

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// The policy is installed and removed while Nodes are tainted, in a cluster of
// its own. Whenever the agent finds out by itself, at a start or with a
// heartbeat, stand-in and well-known pair change places in one patch. When the
// controller finds out first, that costs one write and a gap.
func TestPolicyComesAndGoesWhileTainted(t *testing.T) {
	t.Parallel()
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	c, host := newCluster(t, cluster.Options{WithoutScheduler: true}), fixtures.NewHost(t)
	grantAgents(t.Context(), t, c)
	host.Memory(2)
	names := []string{"running-1", "running-2", "restarted"}
	agents, versions, nodes := map[string]*bed.Agent{}, map[string]*history{}, map[string]*cluster.Node{}
	for _, name := range names {
		nodes[name] = c.Register(t, name)
		if name == "running-2" {
			c.SetTaints(t, name, dedicated) // so that the API server knows who wrote the list last
		}
		versions[name] = follow(t, c, name)
		agents[name] = startAgent(t, c, name, host, quick+"heartbeat: 1m\n")
	}
	for _, name := range names {
		versions[name].wait(0, tainted(memoryStandIn))
	}

	if err := c.InstallKeep(t.Context()); err != nil {
		t.Fatal(err)
	}
	restart := func(name string) {
		agents[name].Kill()
		agents[name] = startAgent(t, c, name, host, quick+"heartbeat: 1m\n")
	}
	restart("restarted")
	kept := map[string]int{}
	for _, name := range names {
		kept[name] = versions[name].wait(0, tainted(memoryKey))
		changesPlaces(t, versions[name].since(kept[name]-1), memoryStandIn, memoryKey)
		staysThroughUpdates(t, c, nodes[name], memoryKey, time.Second)
	}

	agents["restarted"].Kill()
	if err := c.Client().AdmissionregistrationV1().MutatingAdmissionPolicyBindings().Delete(t.Context(), "taintlet-keep", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	restart("restarted")
	back := versions["restarted"].wait(kept["restarted"], tainted(memoryStandIn))
	changesPlaces(t, versions["restarted"].since(back-1), memoryKey, memoryStandIn)

	for _, name := range names[:2] {
		updateUntil(t, c, nodes[name], untainted(memoryKey))
		back := versions[name].wait(kept[name], tainted(memoryStandIn))
		all := versions[name].since(kept[name])
		lost := gone(all, memoryKey)
		if len(lost) != 1 {
			t.Fatalf("%d writes lost; taints were\n%s", len(lost), show(all))
		}
		t.Logf("%s: without any taint of ours for %s", name, versions[name].since(back)[0].at.Sub(lost[0].at))
		agents[name].WaitMetric(`taintlet_notices_total{kind="TaintLost"} 1`)
	}
	agents["running-2"].WaitMetric(`taintlet_taints_lost_total{condition="MemoryPressure",field_manager="kube-controller-manager"} 1`)
}

// changesPlaces checks that the first of the versions has one of the taints
// and all others have the other one: no version in between has both or none.
func changesPlaces(t *testing.T, all []version, from, to string) {
	t.Helper()
	for i, v := range all {
		if tainted(from)(v.Node) != (i == 0) || tainted(to)(v.Node) != (i > 0) {
			t.Fatalf("%s and %s did not change places in one patch; taints were\n%s", from, to, show(all))
		}
	}
}

// updateUntil updates the Node's status, each of which makes the controller
// check its taints, until it holds.
func updateUntil(t *testing.T, c *cluster.Cluster, node *cluster.Node, holds func(*corev1.Node) bool) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(bed.Patience); time.Now().Before(deadline); <-tick.C {
		if err := node.Heartbeat(t.Context()); err != nil {
			t.Fatal(err)
		}
		if holds(c.GetNode(t, node.Name)) {
			return
		}
	}
	t.Fatal("no update of the Node did it")
}

// The policy is installed after the agents, before a host becomes bad: the first taint is
// the well-known one, without a stand-in before it. Nothing waits for a heartbeat.
func TestPolicyInstalledAfterTheAgents(t *testing.T) {
	t.Parallel()
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	c, host := newCluster(t, cluster.Options{WithoutScheduler: true}), fixtures.NewHost(t)
	grantAgents(t.Context(), t, c)
	node := c.Register(t, "late")
	versions := follow(t, c, "late")
	startAgent(t, c, "late", host, quick+"heartbeat: 1h\n")
	versions.wait(0, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
	if err := c.InstallKeep(t.Context()); err != nil {
		t.Fatal(err)
	}
	host.Memory(2)
	kept := versions.wait(0, tainted(memoryKey))
	for _, v := range versions.since(0)[:kept+1] {
		if tainted(memoryStandIn)(v.Node) {
			t.Fatalf("a stand-in was set first; taints were\n%s", show(versions.since(0)))
		}
	}
	staysThroughUpdates(t, c, node, memoryKey, time.Second)
	c.WaitAgentEvent(t, "late", "HostMemoryPressureDegraded", memoryKey+":NoSchedule (kept)")
}
