package integration

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/chart"
	"github.com/taintlet/taintlet/test/cluster"
)

// evicting makes PIDPressure evict, and all of it quick.
const evicting = `
pid: {period: 250ms, debounce: {clearAfter: 0s, criticalAfter: 0s}}
writeBudget: {burst: 100, interval: 1s}
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
	oneSlot      = "eviction: {slots: 1, rest: 5s, interval: 0s}\n"
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
	values["rules"] = append(values["rules"].([]config.Rule), config.Rule{
		Condition: probes.PIDPressure, Level: probes.Critical,
		Taint: config.Taint{Key: corev1.TaintNodePIDPressure, Effect: corev1.TaintEffectNoExecute},
	})
	chart.InstallRules(t.Context(), t, c, namespace, map[string]any{"config": values, "evict": map[string]any{"slots": slots}})
	return &fleet{t, c, namespace, lesser}
}

func (f *fleet) createSlot(i int) {
	f.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(taints.SlotPrefix, i)}}
	if _, err := f.c.Client().CoordinationV1().Leases(f.namespace).Create(f.t.Context(), lease, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// start starts an agent that shares the fleet's slots, and returns when it has
// seen that all is well.
func (f *fleet) start(node string, host *fakeHost, config string) *agent {
	f.t.Helper()
	a := f.startAs(identityIn(f.t, f.c, f.namespace, node), node, host, config)
	waitNode(f.t, f.c, node, cluster.HasCondition("HostPIDPressure", corev1.ConditionFalse))
	return a
}

func (f *fleet) startAs(as *rest.Config, node string, host *fakeHost, config string) *agent {
	f.t.Helper()
	return startAgentAs(f.t, as, node, host, config, "--namespace="+f.namespace)
}

// slot is the first of the Leases.
func (f *fleet) slot() *coordinationv1.Lease {
	f.t.Helper()
	lease, err := f.c.Client().CoordinationV1().Leases(f.namespace).Get(f.t.Context(), taints.SlotPrefix+"0", metav1.GetOptions{})
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
	_, err := f.c.Client().CoordinationV1().Leases(f.namespace).Patch(f.t.Context(), fmt.Sprint(taints.SlotPrefix, i),
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
	host     *fakeHost
	agent    *agent
	versions *history
}

func (f *fleet) member(name, config string) *member {
	f.t.Helper()
	m := &member{Node: f.c.Register(f.t, name), host: newFakeHost(f.t)}
	m.versions = follow(f.t, f.c, name)
	m.agent = f.start(name, m.host, config)
	return m
}

// upToNow returns every version that the Node has had so far.
func (m *member) upToNow(c *cluster.Cluster) []version {
	m.host.t.Helper()
	now := c.GetNode(m.host.t, m.Name)
	last := m.versions.wait(0, func(node *corev1.Node) bool { return node.ResourceVersion == now.ResourceVersion })
	return m.versions.since(0)[:last+1]
}

// isCriticalOften waits until the agent has had many more reasons to evict.
func (m *member) isCriticalOften() {
	m.host.t.Helper()
	const often, series = 20, `taintlet_probe_looks_total{condition="PIDPressure",level="Critical"}`
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for first := m.agent.metric(series); m.agent.metric(series) < first+often; {
		select {
		case <-tick.C:
		case <-deadline:
			m.host.t.Fatal("the agent does not sample")
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

func olderThan(t *testing.T, a, b string) bool {
	t.Helper()
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		t.Fatal(err)
	}
	return order < 0
}

// boundPod is a pod that is already on the Node, as if scheduled there.
func boundPod(t *testing.T, c *cluster.Cluster, name, node string, change func(*corev1.Pod)) string {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
	change(pod)
	pods := c.Client().CoreV1().Pods("default")
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		now := int64(0) // there is no kubelet to wait for
		if err := pods.Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return name
}

// isDeleted is as far as a deletion gets without a kubelet.
func isDeleted(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

func staysSoFar(t *testing.T, c *cluster.Cluster, names ...string) {
	t.Helper()
	for _, name := range names {
		pod, err := c.Client().CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if isDeleted(pod) {
			t.Errorf("pod %s was deleted", name)
		}
	}
}

func tolerating(tolerations ...corev1.Toleration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Tolerations = tolerations }
}

// mirror makes a pod the mirror of a static one. The kubelet gives every static
// pod that it reads from a file a toleration of all NoExecute taints
// (applyDefaults in pkg/kubelet/config/common.go of Kubernetes).
func mirror(tolerations ...corev1.Toleration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		tolerating(tolerations...)(pod)
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "1", "kubernetes.io/config.source": "file"}
	}
}

// toleratedFor is for how long one of the pods tolerates the taint. It is much
// longer than an agent takes to see that all is well again.
const toleratedFor = 10 * time.Second

// NoExecute deletes what does not tolerate it, and nothing else; what tolerates
// it for a time goes when that is over, unless the condition is over before.
func TestEvictionDeletesWhatDoesNotTolerateIt(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "evicting", 1)
	c, m := f.c, f.member("evicting", evicting+oneSlot)
	seconds := int64(toleratedFor.Seconds())
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists}
	noExecute := corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	key := corev1.Toleration{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	forSeconds, lesserOnly := key, key
	forSeconds.TolerationSeconds = &seconds
	lesserOnly.Effect = corev1.TaintEffectNoSchedule // as the pods of DaemonSets have it

	evicted := []string{
		boundPod(t, c, "evicting-plain", m.Name, tolerating()),
		boundPod(t, c, "evicting-lesser", m.Name, tolerating(lesserOnly)),
		// The eviction controller makes no difference between a mirror and any
		// other pod. A kubelet would make the mirror anew; the static pod runs on.
		boundPod(t, c, "evicting-mirror", m.Name, mirror()),
	}
	stay := []string{
		boundPod(t, c, "evicting-tolerating", m.Name, tolerating(key)),
		boundPod(t, c, "evicting-agent", m.Name, tolerating(everything)),
		boundPod(t, c, "evicting-static", m.Name, mirror(noExecute)),
	}
	later := boundPod(t, c, "evicting-later", m.Name, tolerating(forSeconds))

	m.host.tasks(criticalTasks)
	waitNode(t, c, m.Name, evicts)
	began := time.Now()
	for _, name := range evicted {
		waitPod(t, c, name, isDeleted)
	}
	m.host.tasks(calmTasks)
	waitNode(t, c, m.Name, cluster.Not(evicts))
	if took := time.Since(began); took > toleratedFor-time.Second {
		t.Fatalf("recovery took %s, as long as the pod tolerates the taint: nothing was tested", took)
	}
	// That a pod stays can only be waited for.
	time.Sleep(time.Until(began.Add(toleratedFor + 2*time.Second)))
	staysSoFar(t, c, append(stay, later)...)

	m.host.tasks(criticalTasks)
	waitPod(t, c, later, isDeleted)
	staysSoFar(t, c, stay...)
}

// One patch steps up, one steps down, the Event is written before the first,
// and no version of the Node in between is untainted.
func TestEvictionIsOnePatchAfterItsEvent(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "one-patch", 1)
	// With pauses between the steps: without, two of them may go in one patch.
	steps := strings.Replace(evicting, "clearAfter: 0s, criticalAfter: 0s", "clearAfter: 2s, maxClearAfter: 2s, criticalAfter: 1s", 1)
	m := f.member("one-patch", steps+oneSlot)
	const rounds = 3
	var upAt []string
	at := 0
	for range rounds {
		m.host.tasks(criticalTasks)
		degraded := m.versions.wait(at, tainted(f.lesser))
		up := m.versions.wait(degraded, evicts)
		f.isOneStep(m.versions.since(degraded)[:up-degraded+1])
		upAt = append(upAt, m.versions.since(up)[0].ResourceVersion)
		m.host.tasks(calmTasks)
		down := m.versions.wait(up, cluster.Not(evicts))
		f.isOneStep(m.versions.since(up)[:down-up+1])
		at = m.versions.wait(down, untainted(f.lesser))
	}
	list, err := f.c.Client().CoreV1().Events("default").List(t.Context(), byName("involvedObject.name", m.Name))
	if err != nil {
		t.Fatal(err)
	}
	announced := slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return e.Reason != "HostPIDPressureCritical" })
	slices.SortFunc(announced, func(a, b corev1.Event) int {
		return cmp.Compare(atoi(t, a.ResourceVersion), atoi(t, b.ResourceVersion))
	})
	if len(announced) != rounds {
		t.Fatalf("%d Events for %d evictions", len(announced), rounds)
	}
	for i, event := range announced {
		if !olderThan(t, event.ResourceVersion, upAt[i]) || i > 0 && !olderThan(t, upAt[i-1], event.ResourceVersion) {
			t.Errorf("eviction %d: the Event has resource version %s, the taint %s", i, event.ResourceVersion, upAt[i])
		}
		if !strings.Contains(event.Message, corev1.TaintNodePIDPressure+":NoExecute (direct)") || event.Type != corev1.EventTypeWarning {
			t.Errorf("the Event says %s: %s", event.Type, event.Message)
		}
	}
}

// isOneStep checks that only the last of the versions changed taints, that it
// changed none but NoExecute, and that it says so in the record.
func (f *fleet) isOneStep(versions []version) {
	f.t.Helper()
	last := len(versions) - 1
	for i, v := range versions {
		if !tainted(f.lesser)(v.Node) {
			f.t.Errorf("version %s is without NoSchedule: %v", v.ResourceVersion, taintsOf(v.Node))
		}
		if i > 0 && i < last && !taints.Equal(v.Spec.Taints, versions[i-1].Spec.Taints) {
			f.t.Errorf("version %s changed taints on the way: %v", v.ResourceVersion, taintsOf(v.Node))
		}
		if owned := recordOf(v.Node).Owned; slices.Contains(owned, corev1.TaintNodePIDPressure+":NoExecute") != evicts(v.Node) {
			f.t.Errorf("version %s has the taints %v, and by its record %v are ours", v.ResourceVersion, taintsOf(v.Node), owned)
		}
	}
}

// hour is what stands for an hour where all durations are divided by 60.
const hour = time.Minute

// flapping is the default configuration, sixty times as fast.
const flapping = `
pid: {period: 250ms, debounce: {clearAfter: 2s, maxClearAfter: 60s, penaltyHalfLife: 60s, criticalAfter: 1s}}
writeBudget: {burst: 6, interval: 10s}
eviction: {slots: 1, rest: 10s, interval: 60s}
` + evictingRules

// Input that flaps around the thresholds for an hour evicts once, and the next
// eviction comes when the hour is over.
func TestFlappingEvictsOnceAnHour(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "flapping", 1)
	m := f.member("flapping", flapping)
	m.host.tasks(criticalTasks)
	first := m.agent.criticalAt(0)
	dice, bursts := rand.New(rand.NewPCG(7, 7)), 0 //nolint:gosec // the same story each time
	for time.Since(first) < hour-2*time.Second {
		m.host.tasks([]int{calmTasks, 30000}[dice.IntN(2)]) // well, or no more than Degraded
		time.Sleep(time.Duration(100+dice.IntN(900)) * time.Millisecond)
		m.host.tasks(criticalTasks)
		time.Sleep(time.Duration(1500+dice.IntN(1500)) * time.Millisecond)
		bursts++
	}
	versions := m.upToNow(f.c)
	if count := additions(versions); count != 1 {
		t.Errorf("%d evictions in an hour of %d bursts", count, bursts)
	}
	if apart := m.agent.criticalAt(1).Sub(first); apart < hour {
		t.Errorf("the second eviction came %s after the first", apart)
	}
	m.versions.wait(len(versions)-1, evicts)
	if count := additions(m.upToNow(f.c)); count != 2 {
		t.Errorf("%d evictions, want 2", count)
	}
}

// criticalAt is when the agent decided to evict for the i-th time, by its log.
func (a *agent) criticalAt(i int) time.Time {
	a.t.Helper()
	var at []time.Time
	a.waitLines(fmt.Sprintf("eviction %d", i), func(lines []string) bool {
		at = nil
		for _, line := range lines {
			if match := decidedCritical.FindStringSubmatch(line); match != nil {
				when, err := time.Parse(time.RFC3339, match[1])
				if err != nil {
					a.t.Fatal(err)
				}
				at = append(at, when)
			}
		}
		return len(at) > i
	})
	return at[i]
}

var decidedCritical = regexp.MustCompile(`^time=(\S+) .*msg="condition changed" .*to=Critical`)

// A pod that a quick end of NoExecute and its return catch in the middle of its
// termination is deleted all the same, and a StatefulSet's pod comes back when
// the host is well. (Up to Kubernetes 1.32 it could be left on the Node.)
func TestStatefulSetIsNotStranded(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Options{Args: map[string][]string{cluster.ControllerManager: {"--controllers=statefulset-controller"}}})
	// Without the policy, as on every release.
	f := newFleetOn(t, c, "taintlet.dev/pid-pressure", "taintlet-system", 1)
	m := f.member("stateful", evicting+oneSlot)
	endPods(t, c, m.Name, 1500*time.Millisecond)
	pods := createStatefulSet(t, c, "data", 3)
	placed := func(pod *corev1.Pod) bool { return cluster.Scheduled(pod) && !isDeleted(pod) }
	for round := range 4 {
		for _, name := range pods {
			waitPod(t, c, name, placed)
		}
		m.host.tasks(criticalTasks)
		waitNode(t, c, m.Name, evicts)
		for range round { // while the pods terminate
			m.host.tasks(calmTasks)
			waitNode(t, c, m.Name, cluster.Not(evicts))
			m.host.tasks(criticalTasks)
			waitNode(t, c, m.Name, evicts)
		}
		for _, name := range pods { // the new one waits: its Node is tainted
			waitPod(t, c, name, func(pod *corev1.Pod) bool { return !cluster.Scheduled(pod) })
		}
		m.host.tasks(calmTasks)
		waitNode(t, c, m.Name, untainted(f.lesser))
	}
	for _, name := range pods {
		waitPod(t, c, name, placed)
	}
}

// createStatefulSet returns the names of its pods.
func createStatefulSet(t *testing.T, c *cluster.Cluster, name string, replicas int32) []string {
	t.Helper()
	labels := map[string]string{"app": name}
	if _, err := c.Client().AppsV1().StatefulSets("default").Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas:            &replicas,
			Selector:            &metav1.LabelSelector{MatchLabels: labels},
			PodManagementPolicy: appsv1.ParallelPodManagement,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
			},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var pods []string
	for i := range replicas {
		pods = append(pods, fmt.Sprintf("%s-%d", name, i))
	}
	return pods
}

// A person who removes the NoExecute taint once is heeded until the condition
// has been OK, by an agent that starts anew too. NoSchedule stays.
func TestRemovedNoExecuteIsAVeto(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "veto", 1)
	m := f.member("veto", evicting+oneSlot)
	m.host.tasks(criticalTasks)
	up := m.versions.wait(0, evicts)
	f.c.RunKubectl(t, "taint", "nodes", m.Name, corev1.TaintNodePIDPressure+":NoExecute-")
	vetoed := m.versions.wait(up, cluster.Not(evicts))
	f.c.WaitAgentEvent(t, m.Name, "TaintVetoed", "field manager kubectl-taint removed "+corev1.TaintNodePIDPressure+":NoExecute")
	m.isCriticalOften()
	m.agent.kill()
	m.agent = f.startAs(identityIn(t, f.c, f.namespace, m.Name), m.Name, m.host, evicting+oneSlot)
	m.agent.waitLog("admission policy looked up")
	m.isCriticalOften()
	versions := m.upToNow(f.c)
	for _, v := range versions[vetoed:] {
		if evicts(v.Node) || !tainted(f.lesser)(v.Node) {
			t.Fatalf("after the veto version %s has the taints %v", v.ResourceVersion, taintsOf(v.Node))
		}
	}
	m.host.tasks(calmTasks)
	recovered := m.versions.wait(len(versions)-1, untainted(f.lesser))
	m.host.tasks(criticalTasks) // a new episode
	m.versions.wait(recovered, evicts)
}

// Whatever people do to the Leases: a holder that has lost its slot
// steps down, nobody evicts without a slot, never do two Nodes evict by the one
// slot, and no agent crashes.
func TestLeasesGarbledAndDeletedByHand(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "garbled", 1)
	one, two := f.member("garbled-one", evicting+oneSlot), f.member("garbled-two", evicting+oneSlot)
	one.host.tasks(criticalTasks)
	up := one.versions.wait(0, evicts)
	two.host.tasks(criticalTasks)
	f.c.WaitAgentEvent(t, two.Name, "EvictionWaitsForSlot", "all eviction slots are taken")

	// What does not change the holder changes nothing.
	if err := f.edit(0, map[string]any{"leaseDurationSeconds": -5}); !apierrors.IsInvalid(err) {
		t.Errorf("the API server takes a negative duration: %v", err)
	}
	f.mustEdit(0, map[string]any{"renewTime": "9999-12-31T23:59:59.999999Z", "leaseDurationSeconds": 1})
	f.waitSlot(func(lease *coordinationv1.Lease) bool { return lease.Spec.RenewTime.Year() < 9999 })
	if count := additions(one.upToNow(f.c)[up:]); f.holder() != one.Name || count != 1 {
		t.Errorf("the slot is held by %q, NoExecute came %d times", f.holder(), count)
	}

	// Nobody's name: the holder steps down. Then the slot is as one whose holder's
	// Node is gone: free after the cooldown.
	f.mustEdit(0, map[string]any{"holderIdentity": "?? \t nobody"})
	down := one.versions.wait(up, cluster.Not(evicts))
	lease := f.waitSlot(func(lease *coordinationv1.Lease) bool {
		return lease.Spec.HolderIdentity != nil && strings.HasPrefix(*lease.Spec.HolderIdentity, f.namespace)
	})
	holder, from := one, down
	if *lease.Spec.HolderIdentity == two.Name {
		holder, from = two, 0
	}
	up = holder.versions.wait(from, evicts)

	// No Lease, no eviction.
	if err := f.c.Client().CoordinationV1().Leases(f.namespace).Delete(t.Context(), lease.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	holder.versions.wait(up, cluster.Not(evicts))
	one.isCriticalOften()
	two.isCriticalOften()
	for _, m := range []*member{one, two} {
		if now := f.c.GetNode(t, m.Name); evicts(now) || !tainted(f.lesser)(now) {
			t.Errorf("without any Lease node %s has the taints %v", m.Name, taintsOf(now))
		}
	}
	f.createSlot(0)
	f.waitSlot(func(lease *coordinationv1.Lease) bool { return lease.Spec.HolderIdentity != nil })
	takeTurns(t, one.upToNow(f.c), two.upToNow(f.c))
}

// waitSlot waits until the first Lease is as wanted, and returns it.
func (f *fleet) waitSlot(holds func(*coordinationv1.Lease) bool) *coordinationv1.Lease {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	watcher, err := f.c.Client().CoordinationV1().Leases(f.namespace).Watch(ctx, byName("metadata.name", taints.SlotPrefix+"0"))
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

// takeTurns checks that never two Nodes carried NoExecute at once: resource
// versions of one cluster are in the order of the writes.
func takeTurns(t *testing.T, histories ...[]version) {
	t.Helper()
	all := slices.Concat(histories...)
	slices.SortFunc(all, func(a, b version) int { return cmp.Compare(atoi(t, a.ResourceVersion), atoi(t, b.ResourceVersion)) })
	now := map[string]bool{}
	for _, v := range all {
		delete(now, v.Name)
		if evicts(v.Node) {
			now[v.Name] = true
		}
		if len(now) > 1 {
			t.Errorf("at resource version %s these Nodes evict at the same time: %v", v.ResourceVersion, now)
		}
	}
}

// While the API server is away from a holder, its taint stays and nobody gets
// its slot; when it is back, the slot is still its own.
func TestSlotIsKeptThroughAnOutage(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "outage", 1)
	m := &member{Node: f.c.Register(t, "outage"), host: newFakeHost(t)}
	m.versions = follow(t, f.c, m.Name)
	reserved := newGate(t, strings.TrimPrefix(f.c.URL(), "https://"))
	as := identityIn(t, f.c, f.namespace, m.Name)
	as.Host = "https://" + reserved.address
	// A gate is shut at the end of the test that opened it.
	reachable := func(name string, do func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			(&gate{t: t, address: reserved.address, target: reserved.target}).open()
			do(t)
		})
	}
	reachable("before", func(t *testing.T) {
		// One eviction an hour: a taint that goes does not come back.
		m.agent = f.startAs(as, m.Name, m.host, evicting+strings.Replace(oneSlot, "0s", "1h", 1))
		waitNode(t, f.c, m.Name, cluster.HasCondition("HostPIDPressure", corev1.ConditionFalse))
		m.host.tasks(criticalTasks)
		m.versions.wait(0, evicts)
	})
	m.agent.waitLog("cannot renew the eviction slot; trying again")
	stranger := slotsOf(t, f.c, "stranger", f.namespace)
	for begin := time.Now(); time.Since(begin) < 2*slotCooldown; time.Sleep(slotCooldown / 10) {
		if acquire(t, stranger) {
			t.Fatal("somebody else got the slot of a Node that evicts")
		}
	}
	last := f.slot()
	reachable("after", func(t *testing.T) {
		lease := f.waitSlot(func(lease *coordinationv1.Lease) bool { return lease.Spec.RenewTime.After(last.Spec.RenewTime.Time) })
		if *lease.Spec.HolderIdentity != m.Name {
			t.Errorf("the slot is held by %q", *lease.Spec.HolderIdentity)
		}
		m.isCriticalOften()
	})
	versions := m.upToNow(f.c)
	if now := versions[len(versions)-1]; additions(versions) != 1 || !evicts(now.Node) {
		t.Errorf("NoExecute came %d times, the Node has %v", additions(versions), taintsOf(now.Node))
	}
}

// slotsOf returns a fleet's slots as another Node sees them.
func slotsOf(t *testing.T, c *cluster.Cluster, node, namespace string) *taints.Slots {
	t.Helper()
	client, err := taints.NewClient(c.Admin(), node)
	if err != nil {
		t.Fatal(err)
	}
	return client.Slots(namespace)
}

func acquire(t *testing.T, slots *taints.Slots) bool {
	t.Helper()
	held, err := slots.Acquire(t.Context(), 1, slotCooldown, config.Default().Evicts)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// An agent that starts anew goes on with the slot that its Node holds, also when
// one that it would have come to first has become free.
func TestRestartFindsItsOwnSlot(t *testing.T) {
	t.Parallel()
	const slots = 3
	f := newFleet(t, "restarted-slots", slots)
	get := func(node string) bool {
		held, err := slotsOf(t, f.c, node, f.namespace).Acquire(t.Context(), slots, slotCooldown, config.Default().Evicts)
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	for i := range slots { // whoever comes to a slot first, the others are free
		name := fmt.Sprint("holder-", i)
		if err := f.edit(i, map[string]any{"holderIdentity": name}); err != nil {
			t.Fatal(err)
		}
		if !get(name) {
			t.Errorf("%s does not get a slot", name)
		}
		for other := range slots {
			lease, err := f.c.Client().CoordinationV1().Leases(f.namespace).Get(t.Context(), fmt.Sprint(taints.SlotPrefix, other), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if held := lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == name; held != (other == i) {
				t.Errorf("%s holds slot %d: %t", name, other, held)
			}
		}
		if err := f.edit(i, map[string]any{"holderIdentity": nil}); err != nil {
			t.Fatal(err)
		}
	}
}

// The clock of the host that wrote a Lease does not matter. A slot whose Lease
// moves is kept, and so is one whose holder's Node evicts; any other is free
// when the asking host has seen it unmoved for the cooldown.
func TestSlotIsKeptByAnyClock(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"past": -time.Hour, "future": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holder := "clock-" + name
			f := newFleet(t, holder, 1)
			c, asking := f.c, slotsOf(t, f.c, "asking", f.namespace)
			c.Register(t, holder)
			renew := func() {
				f.mustEdit(0, map[string]any{"holderIdentity": holder, "renewTime": metav1.NewMicroTime(time.Now().Add(off))})
			}
			renew()
			for begin := time.Now(); time.Since(begin) < 2*slotCooldown; time.Sleep(slotCooldown / 10) {
				if acquire(t, asking) {
					t.Fatal("got a slot whose Lease moves")
				}
				renew()
			}
			c.SetTaints(t, holder, corev1.Taint{Key: corev1.TaintNodePIDPressure, Effect: corev1.TaintEffectNoExecute})
			for begin := time.Now(); time.Since(begin) < 2*slotCooldown; time.Sleep(slotCooldown / 10) {
				if acquire(t, asking) {
					t.Fatal("got a slot whose Node evicts")
				}
			}
			c.SetTaints(t, holder)
			if !acquire(t, asking) {
				t.Fatal("a slot that does not move, of a Node that does not evict, is not free")
			}

			// From now on somebody else asks, who has yet to see that it does not move.
			renew()
			second := slotsOf(t, c, "second", f.namespace)
			begin := time.Now()
			for !acquire(t, second) {
				time.Sleep(slotCooldown / 10)
			}
			if took := time.Since(begin); took < slotCooldown {
				t.Errorf("got the slot after %s", took)
			}
		})
	}
}

// Nodes of the control plane do not evict unless the configuration says so.
func TestControlPlaneEvictsOnlyIfAsked(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "control-plane", 1)
	m := f.member("control-plane", evicting+oneSlot)
	f.c.RunKubectl(t, "label", "nodes", m.Name, "node-role.kubernetes.io/control-plane=")
	m.host.tasks(criticalTasks)
	m.versions.wait(0, tainted(f.lesser))
	m.isCriticalOften()
	if count := additions(m.upToNow(f.c)); count > 0 || f.holder() != "" {
		t.Errorf("a Node of the control plane evicted %d times; the slot is held by %q", count, f.holder())
	}
	m.agent.reconfigure(evicting + strings.Replace(oneSlot, "{", "{controlPlane: true, ", 1))
	m.versions.wait(0, evicts)
}

// As many slots as the configuration allows can be searched.
func TestOneOfAHundredSlotsIsGot(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "hundred", 100)
	m := f.member("hundred", evicting+"eviction: {slots: 100, rest: 60s, interval: 0s}\n")
	m.host.tasks(criticalTasks)
	m.versions.wait(0, evicts)
}

// A name that no Node can have is that of a Node that is gone.
func TestSlotOfANameThatIsNoNodesIsFree(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "no-node", 2)
	asking := slotsOf(t, f.c, "asking", f.namespace)
	for i := range 2 {
		f.mustEdit(i, map[string]any{"holderIdentity": "no/node%"})
	}
	for begin := time.Now(); ; time.Sleep(slotCooldown / 10) {
		held, err := asking.Acquire(t.Context(), 2, slotCooldown, config.Default().Evicts)
		if held {
			return
		}
		if time.Since(begin) > 3*slotCooldown {
			t.Fatalf("slots whose holder is no Node are not to be had: %v", err)
		}
	}
}

// Somebody who writes the Lease, but leaves the holder, costs nobody the slot.
func TestForeignWriteOfALeaseCostsNoSlot(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "annotated", 1)
	m := f.member("annotated", evicting+oneSlot)
	m.host.tasks(criticalTasks)
	m.versions.wait(0, evicts)
	for i, begin := 0, time.Now(); time.Since(begin) < slotCooldown; i++ {
		f.mustEdit(0, map[string]any{"leaseTransitions": i})
	}
	m.isCriticalOften()
	versions := m.upToNow(f.c)
	if now := versions[len(versions)-1]; additions(versions) != 1 || !evicts(now.Node) {
		t.Errorf("NoExecute came %d times, the Node has %v", additions(versions), taintsOf(now.Node))
	}
}

// Nobody is told of a wait for a slot that is free.
func TestFreeSlotIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "free", 1)
	m := f.member("free", evicting+oneSlot)
	for range 2 {
		m.host.tasks(criticalTasks)
		waitNode(t, f.c, m.Name, evicts)
		m.host.tasks(calmTasks)
		waitNode(t, f.c, m.Name, untainted(f.lesser))
		f.waitSlot(func(lease *coordinationv1.Lease) bool { return lease.Spec.HolderIdentity == nil })
	}
	if count := events(t, f.c, m.Name, "EvictionWaitsForSlot"); count > 0 {
		t.Errorf("people were told %d times that the free slot is taken", count)
	}
}
