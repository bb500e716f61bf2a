package integration

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// What becomes of a pod that comes to a Node while its host is in trouble, by
// the pair that the Node then carries:
//
//	pressure: node.kubernetes.io/{memory,disk,pid}-pressure:NoSchedule, kept
//	network:  node.kubernetes.io/network-unavailable:NoSchedule, kept
//	stand-in: taintlet.dev/{memory,disk,pid}-pressure and network-unavailable:NoSchedule
//
// All is as the documentation says of such a taint, whoever wrote it:
// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/.
// One thing that it says needs the admission plugin PodTolerationRestriction,
// which is off by default: that all QoS classes but BestEffort tolerate
// memory-pressure (TestQoSClassesUnderPodTolerationRestriction).
//
// DaemonSet is its pod when the template changes while the Node is tainted. The
// controller gives it tolerations for the well-known keys only, and for
// network-unavailable only with hostNetwork; Pending means that it makes none.
var mapping = rows("alone", `
pod                    tolerates            pressure  network   stand-in
BestEffort             nothing              Pending   Pending   Pending
BestEffort             key                  placed    placed    placed
Burstable              nothing              Pending   Pending   Pending
Burstable              key                  placed    placed    placed
Guaranteed             nothing              Pending   Pending   Pending
Guaranteed             key                  placed    placed    placed
BestEffort             key:NoSchedule       placed    placed    placed
BestEffort             key:NoExecute        Pending   Pending   Pending
BestEffort             key=:NoSchedule      placed    placed    placed
BestEffort             key=other:NoSchedule Pending   Pending   Pending
BestEffort             other-key            Pending   Pending   Pending
BestEffort             everything           placed    placed    placed
nodeName-set           nothing              placed    placed    placed
DaemonSet              nothing              placed    Pending   Pending
DaemonSet              key                  placed    placed    placed
DaemonSet-hostNetwork  nothing              placed    placed    Pending
DaemonSet-hostNetwork  key                  placed    placed    placed
`)

// Several taints are a filter: each must be tolerated.
var mappingOfTwo = rows("two", `
pod                    tolerates            both
BestEffort             nothing              Pending
BestEffort             key                  Pending
BestEffort             dedicated            Pending
BestEffort             key,dedicated        placed
BestEffort             everything           placed
`)

// toleration is what the table's words stand for, for the key of the pair.
func toleration(word, key string) corev1.Toleration {
	return map[string]corev1.Toleration{
		"key":                  {Key: key, Operator: corev1.TolerationOpExists}, // with any effect
		"key:NoSchedule":       {Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		"key:NoExecute":        {Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		"key=:NoSchedule":      {Key: key, Operator: corev1.TolerationOpEqual, Effect: corev1.TaintEffectNoSchedule},
		"key=other:NoSchedule": {Key: key, Operator: corev1.TolerationOpEqual, Value: "other", Effect: corev1.TaintEffectNoSchedule},
		"other-key":            {Key: key + "-2", Operator: corev1.TolerationOpExists},
		"dedicated":            {Key: dedicated.Key, Operator: corev1.TolerationOpEqual, Value: dedicated.Value},
		"everything":           {Operator: corev1.TolerationOpExists},
	}[word]
}

// row is a line of a table.
type row struct {
	table, pod, tolerates string
	want                  map[string]string // column: placed or Pending
}

func rows(table, text string) []row {
	var header []string
	var list []row
	for line := range strings.Lines(strings.TrimSpace(text)) {
		fields := strings.Fields(line)
		if header == nil {
			header = fields
			continue
		}
		r := row{table, fields[0], fields[1], map[string]string{}}
		for i, outcome := range fields[2:] {
			r.want[header[i+2]] = outcome
		}
		list = append(list, r)
	}
	return list
}

func (r row) tolerations(key string) []corev1.Toleration {
	var list []corev1.Toleration
	for word := range strings.SplitSeq(r.tolerates, ",") {
		if word != "nothing" {
			list = append(list, toleration(word, key))
		}
	}
	return list
}

func (r row) isDaemonSet() bool { return strings.HasPrefix(r.pod, "DaemonSet") }

func TestMappingOfTaintsToPods(t *testing.T) {
	t.Parallel()
	for name, trouble := range troubles() {
		column := "pressure"
		if trouble.key == corev1.TaintNodeNetworkUnavailable {
			column = "network"
		}
		t.Run(name+" kept", func(t *testing.T) {
			t.Parallel()
			s := &site{t: t, c: keeping.require(t), name: "map-" + name, key: trouble.key, column: column}
			s.try(trouble)
		})
		t.Run(name+" stand-in", func(t *testing.T) {
			t.Parallel()
			_, word, _ := strings.Cut(trouble.key, "/")
			s := &site{t: t, c: plain.require(t), name: "map-" + name, key: "taintlet.dev/" + word, column: "stand-in"}
			s.try(trouble)
		})
	}
}

// site is a Node on which the table is tried.
type site struct {
	t      *testing.T
	c      *cluster.Cluster
	name   string // of the Node; those of its pods begin with it
	key    string // of the pair that the agent sets
	column string // of the table
}

// try tries both tables from trouble to recovery.
func (s *site) try(trouble trouble) {
	s.t.Helper()
	config, host := trouble.config(s.t), fixtures.NewHost(s.t)
	s.open(host, config, trouble.condition)
	trouble.begin(host)
	s.createPods()
	s.check()
	s.checkTwo()
	trouble.end(host)
	s.heal()
}

// open starts an agent on a Node, and the DaemonSets while the host is well.
func (s *site) open(host *fixtures.Host, config, condition string) {
	s.t.Helper()
	s.c.Register(s.t, s.name)
	startAgent(s.t, s.c, s.name, host, config)
	waitNode(s.t, s.c, s.name, cluster.HasCondition(condition, corev1.ConditionFalse))
	endPods(s.t, s.c, s.name, 0)
	for _, r := range mapping {
		if r.isDaemonSet() {
			s.createDaemonSet(s.podName(r), s.pod(r).Spec)
		}
	}
	s.each(mapping, func(r row) error {
		if !r.isDaemonSet() {
			return nil
		}
		return s.daemonPodPlaced(r, 1)
	})
}

// createPods creates the pods that no controller does, when everybody knows of
// the taint.
func (s *site) createPods() {
	s.t.Helper()
	waitNode(s.t, s.c, s.name, cluster.HasTaint(s.key, corev1.TaintEffectNoSchedule))
	schedulerKnows(s.t, s.c, s.name)
	if s.column != "pressure" { // that one tells a DaemonSet nothing
		s.daemonSetControllerKnows()
	}
	for _, r := range mapping {
		if !r.isDaemonSet() {
			s.c.CreatePod(s.t, s.pod(r))
		}
	}
}

// check compares the table with what becomes of the pods.
func (s *site) check() {
	s.t.Helper()
	s.each(mapping, func(r row) error {
		if r.isDaemonSet() {
			return s.roll(r, r.want[s.column])
		}
		return s.podIs(r, r.want[s.column])
	})
}

// checkTwo puts a taint of somebody else's beside ours.
func (s *site) checkTwo() {
	s.t.Helper()
	addTaint(s.t, s.c, s.name, dedicated)
	schedulerKnows(s.t, s.c, s.name, toleration("key", s.key))
	for _, r := range mappingOfTwo {
		s.c.CreatePod(s.t, s.pod(r))
	}
	s.each(mappingOfTwo, func(r row) error { return s.podIs(r, r.want["both"]) })
	ours := corev1.Taint{Key: s.key, Effect: corev1.TaintEffectNoSchedule}
	wantTaints(s.t, waitNode(s.t, s.c, s.name, func(*corev1.Node) bool { return true }), ours, dedicated)
}

// heal waits until the agent has taken its taint away, and no other, and
// then takes the other away: nothing else kept any pod from the Node.
func (s *site) heal() {
	s.t.Helper()
	healed := waitNode(s.t, s.c, s.name, cluster.Not(cluster.HasTaint(s.key, corev1.TaintEffectNoSchedule)))
	wantTaints(s.t, healed, dedicated)
	s.each(mappingOfTwo, func(r row) error {
		if r.tolerates != "dedicated" {
			return nil
		}
		return s.podIs(r, "placed")
	})
	s.c.SetTaints(s.t, s.name)
	s.each(slices.Concat(mapping, mappingOfTwo), func(r row) error {
		if r.isDaemonSet() {
			return nil
		}
		return s.podIs(r, "placed")
	})
}

// each does the same for all rows at the same time and reports all that fails.
func (s *site) each(table []row, do func(row) error) {
	s.t.Helper()
	var group sync.WaitGroup
	for _, r := range table {
		group.Go(func() {
			if err := do(r); err != nil {
				s.t.Errorf("%s, %s that tolerates %s: %v", s.key, r.pod, r.tolerates, err)
			}
		})
	}
	group.Wait()
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// podName names a row's pod or DaemonSet.
func (s *site) podName(r row) string {
	words := strings.NewReplacer(":", "-", "=", "-is-", ",", "-and-").Replace(s.name + "-" + r.table + "-" + r.pod + "-" + r.tolerates)
	return strings.ToLower(words)
}

func (s *site) pod(r row) *corev1.Pod {
	pod := cluster.NewPod(s.podName(r), s.name, r.tolerations(s.key)...)
	pod.Spec.Containers[0].Resources = resourcesOf(r.pod)
	switch r.pod {
	case "nodeName-set": // bypasses the scheduler
		pod.Spec.NodeName = s.name
	case "DaemonSet-hostNetwork":
		pod.Spec.HostNetwork = true
	}
	return pod
}

// resourcesOf puts a pod's one container into the QoS class.
func resourcesOf(class string) corev1.ResourceRequirements {
	little := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi")}
	switch class {
	case "Burstable":
		return corev1.ResourceRequirements{Requests: little}
	case "Guaranteed":
		return corev1.ResourceRequirements{Limits: little}
	default:
		return corev1.ResourceRequirements{}
	}
}

// podIs waits until the pod is placed, or Pending since the scheduler refused
// it for a taint.
func (s *site) podIs(r row, want string) error {
	pod, err := s.c.WaitPod(s.t.Context(), "default", s.podName(r), func(pod *corev1.Pod) bool {
		if want == "placed" {
			return s.placed(pod)
		}
		return refusedForTaint(pod)
	})
	if err != nil {
		return fmt.Errorf("not %s: %w", want, err)
	}
	isClass := slices.Contains([]string{"BestEffort", "Burstable", "Guaranteed"}, r.pod)
	if class := string(pod.Status.QOSClass); isClass && class != r.pod {
		return fmt.Errorf("the QoS class is %s", class)
	}
	return nil
}

func (s *site) placed(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == s.name && pod.DeletionTimestamp == nil
}

// The labels of a DaemonSet's pods: its name, and the generation of its spec.
const (
	ofDaemonSet  = "daemon-set"
	ofGeneration = "generation"
)

func (s *site) createDaemonSet(name string, spec corev1.PodSpec) {
	s.t.Helper()
	sets := s.c.Client().AppsV1().DaemonSets("default")
	if _, err := sets.Create(s.t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{ofDaemonSet: name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{ofDaemonSet: name, ofGeneration: "1"}},
				Spec:       spec,
			},
		},
	}, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := sets.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			s.t.Error(err)
		}
		now := int64(0)
		if err := s.c.Client().CoreV1().Pods("default").DeleteCollection(context.Background(),
			metav1.DeleteOptions{GracePeriodSeconds: &now}, podsOf(name)); err != nil {
			s.t.Error(err)
		}
	})
}

func podsOf(daemonSet string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: ofDaemonSet + "=" + daemonSet}
}

// daemonSetControllerKnows waits until the controller wants no pod of a new
// DaemonSet on the Node.
func (s *site) daemonSetControllerKnows() {
	s.t.Helper()
	for range canaries {
		name := s.name + "-canary-" + rand.String(5)
		s.createDaemonSet(name, cluster.NewPod(name, s.name).Spec)
		canary, err := s.c.WaitDaemonSet(s.t.Context(), "default", name, func(set *appsv1.DaemonSet) bool {
			return set.Status.ObservedGeneration == 1
		})
		if err != nil {
			s.t.Fatal(err)
		}
		if canary.Status.DesiredNumberScheduled == 0 {
			return
		}
	}
	s.t.Fatalf("each new DaemonSet wants a pod on node %s", s.name)
}

// roll changes the template, so that the controller deletes the old pod. Where
// it makes no new one, a toleration in the template is the cure.
func (s *site) roll(r row, want string) error {
	if err := s.changeTemplate(r, 2, r.tolerations(s.key)...); err != nil {
		return err
	}
	if want == "placed" {
		return s.daemonPodPlaced(r, 2)
	}
	// It has dealt with the new template, the old pod is gone, none is wanted.
	if err := s.waitDaemonSet(r, func(status appsv1.DaemonSetStatus) bool {
		return status.ObservedGeneration == 2 && status.DesiredNumberScheduled == 0 && status.NumberMisscheduled == 0
	}); err != nil {
		return err
	}
	if pods, err := s.daemonPods(r); err != nil || len(pods) != 0 {
		return fmt.Errorf("%d pods after the template changed, want none (error: %w)", len(pods), err)
	}
	if err := s.changeTemplate(r, 3, toleration("key", s.key)); err != nil {
		return err
	}
	return s.daemonPodPlaced(r, 3)
}

func (s *site) changeTemplate(r row, generation int, tolerations ...corev1.Toleration) error {
	patch := marshal(s.t, map[string]any{"spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"labels": map[string]string{ofGeneration: strconv.Itoa(generation)}},
		"spec":     map[string]any{"tolerations": tolerations},
	}}})
	_, err := s.c.Client().AppsV1().DaemonSets("default").Patch(s.t.Context(), s.podName(r), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// daemonPodPlaced waits until the one pod of the DaemonSet is of this
// generation, and placed.
func (s *site) daemonPodPlaced(r row, generation int) error {
	if err := s.waitDaemonSet(r, func(status appsv1.DaemonSetStatus) bool {
		return status.ObservedGeneration == int64(generation) && status.UpdatedNumberScheduled == 1
	}); err != nil {
		return err
	}
	pods, err := s.daemonPods(r)
	if err != nil || len(pods) != 1 {
		return fmt.Errorf("%d pods, want one (error: %w)", len(pods), err)
	}
	_, err = s.c.WaitPod(s.t.Context(), "default", pods[0].Name, func(pod *corev1.Pod) bool {
		return s.placed(pod) && pod.Labels[ofGeneration] == strconv.Itoa(generation)
	})
	return err
}

func (s *site) waitDaemonSet(r row, holds func(appsv1.DaemonSetStatus) bool) error {
	_, err := s.c.WaitDaemonSet(s.t.Context(), "default", s.podName(r),
		func(set *appsv1.DaemonSet) bool { return holds(set.Status) })
	return err
}

func (s *site) daemonPods(r row) ([]corev1.Pod, error) {
	list, err := s.c.Client().CoreV1().Pods("default").List(s.t.Context(), podsOf(s.podName(r)))
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// resumeWithin is how soon after the taint's removal the pods that it kept
// waiting are scheduled.
const resumeWithin = 2 * time.Second

// Both the Node without the taint and the scheduled pods are timed as one
// goroutine hears of them, so that a slow test delays both. A machine that was
// busy with other things gets two more chances.
func TestSchedulingResumesSoonAfterRecovery(t *testing.T) {
	t.Parallel()
	for key, p := range map[string]*controlPlane{
		corev1.TaintNodeMemoryPressure: keeping,
		"taintlet.dev/memory-pressure": plain,
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			c, host := p.require(t), fixtures.NewHost(t)
			node := c.Register(t, "resume")
			startAgent(t, c, node.Name, host, quick)
			waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
			var took []time.Duration
			for round := range 3 {
				host.Memory(2)
				waitNode(t, c, node.Name, cluster.HasTaint(key, corev1.TaintEffectNoSchedule))
				schedulerKnows(t, c, node.Name)
				waiting := map[string]bool{}
				for i := range 5 {
					pod := cluster.NewPod(fmt.Sprintf("resume-%d-%d", round, i), node.Name)
					waiting[c.CreatePod(t, pod)] = true
					waitPod(t, c, pod.Name, refusedForTaint)
				}
				took = append(took, resumption(t, c, node.Name, key, waiting, func() { host.Memory(50) }))
				if took[round] <= resumeWithin {
					break
				}
			}
			t.Logf("5 pods were scheduled within %s of the removal of %s", took, key)
			if best := slices.Min(took); best > resumeWithin {
				t.Errorf("at best it took %s, want at most %s", best, resumeWithin)
			}
		})
	}
}

// resumption returns the time from the first version of the node without the
// taint to the last of the pods being scheduled.
func resumption(t *testing.T, c *cluster.Cluster, node, key string, waiting map[string]bool, heal func()) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bed.Patience)
	defer cancel()
	nodes := watchNode(ctx, t, c, node)
	pods, err := c.Client().CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	heal()
	var removed, scheduled time.Time
	for removed.IsZero() || len(waiting) > 0 {
		select {
		case <-ctx.Done():
			t.Fatalf("taint removed at %v, pods still waiting: %v", removed, waiting)
		case version := <-nodes:
			if removed.IsZero() && version != nil && !cluster.HasTaint(key, corev1.TaintEffectNoSchedule)(version) {
				removed = time.Now()
			}
		case event := <-pods.ResultChan():
			if pod, ok := event.Object.(*corev1.Pod); ok && waiting[pod.Name] && isScheduled(pod) {
				delete(waiting, pod.Name)
				scheduled = time.Now()
			}
		}
	}
	return scheduled.Sub(removed)
}

func isScheduled(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue
	})
}
