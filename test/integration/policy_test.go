package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/check"
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
		lost := gone(all)
		if len(lost) != 1 {
			t.Fatalf("%d writes lost; taints were\n%s", len(lost), show(all))
		}
		t.Logf("%s: without any taint of ours for %s", name, versions[name].since(back)[0].at.Sub(lost[0].at))
		waitLosses(agents[name], 1)
	}
	agents["running-2"].WaitMetric(`taintlet_taints_lost_total{condition="MemoryPressure",field_manager="kube-controller-manager"} 1`)
}

// For a minute the controller works on the Node as fast as it can: each time it removes a
// taint that nobody keeps, it has judged all others too.
func TestKeptPairStaysForAMinute(t *testing.T) {
	t.Parallel()
	c, host := keeping.require(t), fixtures.NewHost(t)
	const name = "kept-for-a-minute"
	c.Register(t, name)
	stamp := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c.SetTaints(t, name,
		corev1.Taint{Key: "example.com/first", Value: "one", Effect: corev1.TaintEffectNoExecute, TimeAdded: &stamp},
		corev1.Taint{Key: memoryKey, Value: "two", Effect: corev1.TaintEffectPreferNoSchedule},
		dedicated)
	versions := follow(t, c, name)
	a := startAgent(t, c, name, host, quick)
	host.Memory(2)
	kept := versions.wait(0, tainted(memoryKey))
	want, rounds := versions.since(kept)[0].Spec.Taints, 0
	canary := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	from := kept
	for end := time.Now().Add(time.Minute); time.Now().Before(end); rounds++ {
		c.SetTaints(t, name, append(slices.Clone(want), canary)...)
		from = versions.wait(from, tainted(canary.Key))
		from = versions.wait(from, untainted(canary.Key))
	}
	for _, v := range versions.since(kept) {
		got := slices.DeleteFunc(slices.Clone(v.Spec.Taints), func(taint corev1.Taint) bool { return taint.Key == canary.Key })
		if !apiequality.Semantic.DeepEqual(got, want) {
			t.Fatalf("version %s has the taints\n%v, want\n%v", v.ResourceVersion, got, want)
		}
	}
	if rounds < 20 {
		t.Errorf("the controller wrote %d times in a minute", rounds)
	}
	if lost := a.Losses(); lost != 0 {
		t.Errorf("the agent lost its taint %d times", lost)
	}
}

// waitLosses waits until the agent has counted that many taints that others removed.
func waitLosses(a *bed.Agent, count int) {
	a.T.Helper()
	cluster.Eventually(a.T, "losses", func() error {
		if now := a.Losses(); now != count {
			return fmt.Errorf("%d taints lost, not %d", now, count)
		}
		return nil
	})
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
	a := startAgent(t, c, "late", host, quick+"heartbeat: 1h\n")
	versions.wait(0, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
	a.WaitLog("admission policy looked up.*present=false")
	answered := time.Now()
	if err := c.InstallKeep(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(answered.Add(time.Second))) // an answer holds that long
	host.Memory(2)
	kept := versions.wait(0, tainted(memoryKey))
	for _, v := range versions.since(0)[:kept+1] {
		if tainted(memoryStandIn)(v.Node) {
			t.Fatalf("a stand-in was set first; taints were\n%s", show(versions.since(0)))
		}
	}
	staysThroughUpdates(t, c, node, memoryKey, time.Second)
	c.WaitAgentEvent(t, "late", "HostMemoryPressureDegraded", memoryKey+":NoSchedule")
}

// Kubernetes 1.34 and 1.35 have the policy's kind as v1beta1 where an administrator has
// switched it on. The chart and the agent find it there.
func TestKeptOnAnOlderKubernetes(t *testing.T) {
	t.Parallel()
	cluster.SkipBefore(t, "1.34", "MutatingAdmissionPolicy admissionregistration.k8s.io/v1beta1")
	if cluster.HasMutatingAdmissionPolicy(t) {
		t.Skip("this Kubernetes has v1")
	}
	c, host := newCluster(t, cluster.Options{WithoutScheduler: true, Args: map[string][]string{cluster.APIServer: {
		"--feature-gates=MutatingAdmissionPolicy=true", "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
	}}}), fixtures.NewHost(t)
	grantAgents(t.Context(), t, c)
	bed.Apply(t.Context(), t, c, bed.Render(t, "--show-only=templates/keep.yaml", "--api-versions=admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy"))
	if err := c.WaitKeep(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	c.Register(t, "without") // an agent, for check to try the policy on
	node := c.Register(t, "older")
	versions := follow(t, c, "older")
	startAgent(t, c, "older", host, quick)
	host.Memory(2)
	versions.wait(0, tainted(memoryKey))
	staysThroughUpdates(t, c, node, memoryKey, 5*time.Second)
	c.WaitAgentEvent(t, "older", "HostMemoryPressureDegraded", memoryKey+":NoSchedule")
	checks(t, c, check.OK, `^the policy taintlet-keep works: `)
}
