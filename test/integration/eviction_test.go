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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

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
const toleratedFor = time.Minute

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

	m.host.Tasks(criticalTasks)
	waitNode(t, c, m.Name, evicts)
	began := time.Now()
	for _, name := range evicted {
		waitPod(t, c, name, isDeleted)
	}
	m.host.Tasks(calmTasks)
	waitNode(t, c, m.Name, cluster.Not(evicts))
	if took := time.Since(began); took > toleratedFor-time.Second {
		t.Fatalf("recovery took %s, as long as the pod tolerates the taint: nothing was tested", took)
	}
	// That a pod stays can only be waited for.
	time.Sleep(time.Until(began.Add(toleratedFor + 2*time.Second)))
	staysSoFar(t, c, append(stay, later)...)

	m.host.Tasks(criticalTasks)
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
		m.host.Tasks(criticalTasks)
		degraded := m.versions.wait(at, tainted(f.lesser))
		up := m.versions.wait(degraded, evicts)
		f.isOneStep(m.versions.since(degraded)[:up-degraded+1])
		upAt = append(upAt, m.versions.since(up)[0].ResourceVersion)
		m.host.Tasks(calmTasks)
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
		if !strings.Contains(event.Message, corev1.TaintNodePIDPressure+":NoExecute") || !strings.HasSuffix(event.Message, "; this cannot be undone") || event.Type != corev1.EventTypeWarning {
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
		if i > 0 && i < last && !taints.Equal(apiserver.NodeOf(v.Node).Taints, apiserver.NodeOf(versions[i-1].Node).Taints) {
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
pid: {period: 250ms, debounce: {clearAfter: 2s, maxClearAfter: 60s, criticalAfter: 1s}}
writeBudget: {interval: 10s}
eviction: {slots: 1, cooldown: 10s, interval: 60s}
` + evictingRules

// Input that flaps around the thresholds for an hour evicts once, and the next
// eviction comes when the hour is over.
func TestFlappingEvictsOnceAnHour(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "flapping", 1)
	m := f.member("flapping", flapping)
	m.host.Tasks(criticalTasks)
	first := criticalAt(m.agent, 0)
	// A host that is well again before the write goes out has no eviction.
	m.versions.wait(0, evicts)
	dice, bursts := rand.New(rand.NewPCG(7, 7)), 0 //nolint:gosec // the same story each time
	for time.Since(first) < hour {
		m.host.Tasks([]int{calmTasks, 30000}[dice.IntN(2)]) // well, or no more than Degraded
		time.Sleep(time.Duration(100+dice.IntN(900)) * time.Millisecond)
		m.host.Tasks(criticalTasks)
		time.Sleep(time.Duration(1500+dice.IntN(1500)) * time.Millisecond)
		bursts++
	}
	second := criticalAt(m.agent, 1)
	if apart := second.Sub(first); apart < hour {
		t.Errorf("the second eviction came %s after the first", apart)
	}
	m.versions.wait(0, func(*corev1.Node) bool { return additions(m.versions.since(0)) > 1 })
	versions := m.upToNow(f.c)
	before := slices.DeleteFunc(slices.Clone(versions), func(v version) bool { return !v.at.Before(second) })
	if count := additions(before); count != 1 {
		t.Errorf("%d evictions in an hour of %d bursts", count, bursts)
	}
	if count := additions(versions); count != 2 {
		t.Errorf("%d evictions, want 2", count)
	}
}

// criticalAt is when the agent decided to evict for the i-th time, by its log.
func criticalAt(a *bed.Agent, i int) time.Time {
	a.T.Helper()
	var at []time.Time
	a.WaitLines(fmt.Sprintf("eviction %d", i), func(lines []string) bool {
		at = nil
		for _, line := range lines {
			if match := decidedCritical.FindStringSubmatch(line); match != nil {
				when, err := time.Parse(time.RFC3339, match[1])
				if err != nil {
					a.T.Fatal(err)
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
		m.host.Tasks(criticalTasks)
		waitNode(t, c, m.Name, evicts)
		for range round { // while the pods terminate
			m.host.Tasks(calmTasks)
			waitNode(t, c, m.Name, cluster.Not(evicts))
			m.host.Tasks(criticalTasks)
			waitNode(t, c, m.Name, evicts)
		}
		for _, name := range pods { // the new one waits: its Node is tainted
			waitPod(t, c, name, func(pod *corev1.Pod) bool { return !cluster.Scheduled(pod) })
		}
		m.host.Tasks(calmTasks)
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
	m.host.Tasks(criticalTasks)
	up := m.versions.wait(0, evicts)
	f.c.RunKubectl(t, "taint", "nodes", m.Name, corev1.TaintNodePIDPressure+":NoExecute-")
	vetoed := m.versions.wait(up, cluster.Not(evicts))
	f.c.WaitAgentEvent(t, m.Name, "TaintVetoed", "field manager kubectl-taint removed "+corev1.TaintNodePIDPressure+":NoExecute")
	m.isCriticalOften()
	m.agent.Kill()
	m.agent = f.startAs(identityIn(t, f.c, f.namespace, m.Name), m.Name, m.host, evicting+oneSlot)
	m.agent.WaitLog("admission policy looked up")
	m.isCriticalOften()
	versions := m.upToNow(f.c)
	for _, v := range versions[vetoed:] {
		if evicts(v.Node) || !tainted(f.lesser)(v.Node) {
			t.Fatalf("after the veto version %s has the taints %v", v.ResourceVersion, taintsOf(v.Node))
		}
	}
	m.host.Tasks(calmTasks)
	recovered := m.versions.wait(len(versions)-1, untainted(f.lesser))
	m.host.Tasks(criticalTasks) // a new episode
	m.versions.wait(recovered, evicts)
}

// Nodes of the control plane do not evict unless the configuration says so.
func TestControlPlaneEvictsOnlyIfAsked(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "control-plane", 1)
	m := f.member("control-plane", evicting+oneSlot)
	f.c.RunKubectl(t, "label", "nodes", m.Name, "node-role.kubernetes.io/control-plane=")
	m.host.Tasks(criticalTasks)
	m.versions.wait(0, tainted(f.lesser))
	m.isCriticalOften()
	if count := additions(m.upToNow(f.c)); count > 0 || f.holder() != "" {
		t.Errorf("a Node of the control plane evicted %d times; the slot is held by %q", count, f.holder())
	}
	m.agent.Reconfigure(evicting + strings.Replace(oneSlot, "{", "{controlPlane: true, ", 1))
	m.versions.wait(0, evicts)
}
