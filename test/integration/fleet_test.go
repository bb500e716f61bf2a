package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// evicting makes PIDPressure evict, and all of it quick.
const evicting = `
pid: {period: 250ms, debounce: {clearAfter: 0s, criticalAfter: 0s}}
writeBudget: {interval: 1s}
` + evictingRules

const evictingRules = `
rules:
- {condition: PIDPressure, level: Degraded, taint: {key: node.kubernetes.io/pid-pressure, effect: NoSchedule}}
- {condition: PIDPressure, level: Critical, taint: {key: node.kubernetes.io/pid-pressure, effect: NoExecute}}
`

// oneSlot bounds evictions by one slot and by nothing else. Its cooldown is
// slotCooldown: shorter, and the renewals alone would be more requests than the
// client of an agent makes.
const (
	oneSlot      = "eviction: {slots: 1, cooldown: 5s, interval: 0s}\n"
	slotCooldown = 5 * time.Second
)

// Tasks of a fakeHost that are nothing, and more than pid.criticalUsedPercent.
const (
	calmTasks     = 100
	criticalTasks = 32000
)

// evicts is about the pair of Critical. That of Degraded is fleet.lesser.
var evicts = cluster.HasTaint(corev1.TaintNodePIDPressure, corev1.TaintEffectNoExecute)

// fleet is what agents share that bound one another: the namespace and the
// Leases of their slots.
type fleet struct {
	t         *testing.T
	c         *cluster.Cluster
	namespace string
	// lesser is the key of Degraded's taint, as it is in this cluster.
	lesser string
}

// newFleet does what whoever installs the chart with slots does, in a namespace
// of the fleet's own.
func newFleet(t *testing.T, namespace string, slots int) *fleet {
	t.Helper()
	c, key := pressured(t, corev1.TaintNodePIDPressure)
	return newFleetOn(t, c, key, namespace, slots)
}

func newFleetOn(t *testing.T, c *cluster.Cluster, lesser, namespace string, slots int) *fleet {
	t.Helper()
	createNamespace(t, c, namespace)
	t.Cleanup(func() {
		if err := c.Client().CoreV1().Namespaces().Delete(context.Background(), namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	values := allRules()
	values["rules"] = append(values["rules"].([]decide.Rule), decide.Rule{
		Condition: probes.PIDPressure, Level: probes.Critical,
		Taint: decide.Taint{Key: corev1.TaintNodePIDPressure, Effect: taints.NoExecute},
	})
	bed.InstallRules(t.Context(), t, c, bed.ChartFolder, namespace, map[string]any{"config": values, "evict": map[string]any{"slots": slots}})
	return &fleet{t, c, namespace, lesser}
}

func (f *fleet) createSlot(i int) {
	f.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(apiserver.SlotPrefix, i)}}
	if _, err := f.c.Client().CoordinationV1().Leases(f.namespace).Create(f.t.Context(), lease, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// start starts an agent that shares the fleet's slots, and returns when it has
// seen that all is well.
func (f *fleet) start(node string, host *fixtures.Host, config string) *bed.Agent {
	f.t.Helper()
	a := f.startAs(identityIn(f.t, f.c, f.namespace, node), node, host, config)
	waitNode(f.t, f.c, node, cluster.HasCondition("HostPIDPressure", corev1.ConditionFalse))
	return a
}

func (f *fleet) startAs(as *rest.Config, node string, host *fixtures.Host, config string) *bed.Agent {
	f.t.Helper()
	return startAgentAs(f.t, as, node, host, config, "--namespace="+f.namespace)
}

// slot is the first of the Leases.
func (f *fleet) slot() *coordinationv1.Lease {
	f.t.Helper()
	lease, err := f.c.Client().CoordinationV1().Leases(f.namespace).Get(f.t.Context(), apiserver.SlotPrefix+"0", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return lease
}

func (f *fleet) holder() string {
	f.t.Helper()
	if holder := f.slot().Spec.HolderIdentity; holder != nil {
		return *holder
	}
	return ""
}

// edit changes the spec of a slot by hand.
func (f *fleet) edit(i int, spec map[string]any) error {
	_, err := f.c.Client().CoordinationV1().Leases(f.namespace).Patch(f.t.Context(), fmt.Sprint(apiserver.SlotPrefix, i),
		types.MergePatchType, marshal(f.t, map[string]any{"spec": spec}), metav1.PatchOptions{})
	return err
}

func (f *fleet) mustEdit(i int, spec map[string]any) {
	f.t.Helper()
	if err := f.edit(i, spec); err != nil {
		f.t.Fatal(err)
	}
}

// member is a Node of a fleet with its agent.
type member struct {
	*cluster.Node
	host     *fixtures.Host
	agent    *bed.Agent
	versions *history
}

func (f *fleet) member(name, config string) *member {
	f.t.Helper()
	m := &member{Node: f.c.Register(f.t, name), host: fixtures.NewHost(f.t)}
	m.versions = follow(f.t, f.c, name)
	m.agent = f.start(name, m.host, config)
	return m
}

// upToNow returns every version that the Node has had so far.
func (m *member) upToNow(c *cluster.Cluster) []version {
	m.host.T.Helper()
	now := c.GetNode(m.host.T, m.Name)
	last := m.versions.wait(0, func(node *corev1.Node) bool { return node.ResourceVersion == now.ResourceVersion })
	return m.versions.since(0)[:last+1]
}

// isCriticalOften waits until the agent has had many more reasons to evict.
func (m *member) isCriticalOften() {
	m.host.T.Helper()
	const often, series = 20, `taintlet_probe_samples_total{condition="PIDPressure",level="Critical"}`
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(bed.Patience)
	for first := m.agent.Metric(series); m.agent.Metric(series) < first+often; {
		select {
		case <-tick.C:
		case <-deadline:
			m.host.T.Fatal("the agent does not sample")
		}
	}
}

// additions counts how often a NoExecute pair of ours came onto the Node.
func additions(versions []version) int {
	count := 0
	for i, node := range versions {
		if evicts(node.Node) && (i == 0 || !evicts(versions[i-1].Node)) {
			count++
		}
	}
	return count
}

// waitSlot waits until the first Lease is as wanted, and returns it.
func (f *fleet) waitSlot(holds func(*coordinationv1.Lease) bool) *coordinationv1.Lease {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), bed.Patience)
	defer cancel()
	watcher, err := f.c.Client().CoordinationV1().Leases(f.namespace).Watch(ctx, byName("metadata.name", apiserver.SlotPrefix+"0"))
	if err != nil {
		f.t.Fatal(err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if lease, ok := event.Object.(*coordinationv1.Lease); ok && event.Type != watch.Deleted && holds(lease) {
			return lease
		}
	}
	f.t.Fatalf("the slot does not become as it should: held by %q", f.holder())
	return nil
}
