package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// PreferNoSchedule of a well-known key: no controller reconciles that, so it is
// written as asked. The scheduler avoids the Node while there is another one.
func TestPreferNoScheduleIsAvoidedNotForbidden(t *testing.T) {
	t.Parallel()
	c, host := plain.require(t), fixtures.NewHost(t)
	sick, well := c.Register(t, "prefer-sick"), c.Register(t, "prefer-well")
	startAgent(t, c, sick.Name, host, quick+`
rules:
- {condition: MemoryPressure, level: Degraded, taint: {key: node.kubernetes.io/memory-pressure, value: low, effect: PreferNoSchedule}}
`)
	waitNode(t, c, sick.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
	host.Memory(2)
	tainted := waitNode(t, c, sick.Name, cluster.HasTaint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectPreferNoSchedule))
	ours := corev1.Taint{Key: corev1.TaintNodeMemoryPressure, Value: "low", Effect: corev1.TaintEffectPreferNoSchedule}
	wantTaints(t, tainted, ours)
	c.WaitAgentEvent(t, sick.Name, "HostMemoryPressureDegraded", corev1.TaintNodeMemoryPressure+"=low:PreferNoSchedule")

	isAvoided(t, c, sick.Name, well.Name)

	host.Memory(50)
	wantTaints(t, waitNode(t, c, sick.Name, cluster.Not(cluster.HasTaint(ours.Key, ours.Effect))), dedicated)
}

// isAvoided checks that pods which may run on both Nodes come to the one without a taint, and
// that a pod which may run on the other one only comes there. It adds a taint that can be
// refused, which tells when the scheduler knows of both.
func isAvoided(t *testing.T, c *cluster.Cluster, avoided, well string) {
	t.Helper()
	addTaint(t, c, avoided, dedicated)
	schedulerKnows(t, c, avoided)
	tolerated := toleration("dedicated", "")
	for i := range 5 {
		either := cluster.NewPod(fmt.Sprintf("%s-either-%d", avoided, i), "", tolerated)
		either.Spec.NodeSelector = nil
		either.Spec.Affinity = onlyOn(avoided, well)
		waitPod(t, c, c.CreatePod(t, either), func(pod *corev1.Pod) bool {
			if cluster.Scheduled(pod) && pod.Spec.NodeName != well {
				t.Errorf("pod %s is on %s although %s has no taint", pod.Name, pod.Spec.NodeName, well)
			}
			return cluster.Scheduled(pod)
		})
	}
	waitPod(t, c, c.CreatePod(t, cluster.NewPod(avoided+"-only", avoided, tolerated)), cluster.Scheduled)
}

// A key and a value of the operator's own, beside foreign taints that differ
// from it in one part each. MemoryPressure is switched off, and so has no taint.
func TestCustomKeyAndValue(t *testing.T) {
	t.Parallel()
	c, host := plain.require(t), fixtures.NewHost(t)
	node := c.Register(t, "custom")
	foreign := []corev1.Taint{
		{Key: "example.com/pids", Value: "theirs", Effect: corev1.TaintEffectPreferNoSchedule},
		{Key: "example.com/pids-2", Value: "short", Effect: corev1.TaintEffectNoSchedule},
		{Key: "gpu", Effect: corev1.TaintEffectPreferNoSchedule},
	}
	c.SetTaints(t, node.Name, foreign...)
	startAgent(t, c, node.Name, host, quick+`
rules:
- {condition: PIDPressure, level: Degraded, taint: {key: example.com/pids, value: short, effect: NoSchedule}}
- {condition: MemoryPressure, level: Degraded, taint: {effect: None}}
`)
	waitNode(t, c, node.Name, cluster.HasCondition("HostPIDPressure", corev1.ConditionFalse))
	host.Memory(2)
	waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue))
	host.Tasks(30000)
	ours := corev1.Taint{Key: "example.com/pids", Value: "short", Effect: corev1.TaintEffectNoSchedule}
	tainted := waitNode(t, c, node.Name, cluster.HasTaint(ours.Key, ours.Effect))
	wantTaints(t, tainted, append(slices.Clone(foreign), ours)...)
	c.WaitAgentEvent(t, node.Name, "HostPIDPressureDegraded", "example.com/pids=short:NoSchedule")

	second := corev1.Toleration{Key: "example.com/pids-2", Operator: corev1.TolerationOpExists}
	schedulerKnows(t, c, node.Name, second)
	equal := func(value string) corev1.Toleration {
		return corev1.Toleration{Key: ours.Key, Operator: corev1.TolerationOpEqual, Value: value, Effect: ours.Effect}
	}
	waitPod(t, c, c.CreatePod(t, cluster.NewPod("custom-same-value", node.Name, second, equal("short"))), cluster.Scheduled)
	other := c.CreatePod(t, cluster.NewPod("custom-other-value", node.Name, second, equal("theirs")))
	waitPod(t, c, other, refusedForTaint)

	host.Tasks(100)
	wantTaints(t, waitNode(t, c, node.Name, cluster.Not(cluster.HasTaint(ours.Key, ours.Effect))), foreign...)
	waitPod(t, c, other, cluster.Scheduled)
}

// The admission plugin gives all pods but BestEffort ones a toleration for
// memory-pressure: that taint is then for BestEffort pods alone, ours too.
func TestQoSClassesUnderPodTolerationRestriction(t *testing.T) {
	t.Parallel()
	c, host := unusual.require(t), fixtures.NewHost(t)
	node := readyForPods(t, c, "classes")
	if !cluster.HasMutatingAdmissionPolicy(t) {
		t.Skip("a well-known taint needs the policy of deploy/keep.yaml")
	}
	if err := c.InstallKeep(t.Context()); err != nil {
		t.Fatal(err)
	}
	startAgent(t, c, node, host, quick)
	host.Memory(2)
	waitNode(t, c, node, cluster.HasTaint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule))
	schedulerKnows(t, c, node)
	for class, outcome := range map[string]func(*corev1.Pod) bool{
		"BestEffort": refusedForTaint, "Burstable": cluster.Scheduled, "Guaranteed": cluster.Scheduled,
	} {
		pod := cluster.NewPod("class-"+strings.ToLower(class), node)
		pod.Spec.Containers[0].Resources = resourcesOf(class)
		waitPod(t, c, c.CreatePod(t, pod), outcome)
	}
}

// comparing returns a control plane whose tolerations can compare numbers.
func comparing(t *testing.T) *cluster.Cluster {
	t.Helper()
	const gate = "TaintTolerationComparisonOperators"
	cluster.SkipUnlessRequired(t)
	cluster.SkipBefore(t, "1.35", "feature gate "+gate)
	c := newCluster(t, cluster.Options{WithoutControllerManager: true, Args: map[string][]string{
		cluster.APIServer: {"--feature-gates=" + gate + "=true"},
		cluster.Scheduler: {"--feature-gates=" + gate + "=true"},
	}})
	grantAgents(t.Context(), t, c)
	return c
}

// A value that is a number can be compared with (alpha since Kubernetes 1.35).
func TestValueIsComparedAsANumber(t *testing.T) {
	t.Parallel()
	c := comparing(t)
	host := fixtures.NewHost(t)
	node := readyForPods(t, c, "number")
	startAgent(t, c, node, host, quick+`
rules:
- {condition: MemoryPressure, level: Degraded, taint: {key: example.com/trouble, value: "7", effect: NoSchedule}}
`)
	host.Memory(2)
	waitNode(t, c, node, cluster.HasTaint("example.com/trouble", corev1.TaintEffectNoSchedule))
	schedulerKnows(t, c, node)
	for _, r := range []struct {
		operator corev1.TolerationOperator
		value    string
		outcome  func(*corev1.Pod) bool
	}{
		{corev1.TolerationOpGt, "5", cluster.Scheduled}, // the taint's value is greater
		{corev1.TolerationOpGt, "7", refusedForTaint},
		{corev1.TolerationOpGt, "10", refusedForTaint}, // as text it would be
		{corev1.TolerationOpLt, "10", cluster.Scheduled},
	} {
		pod := cluster.NewPod("number-"+strings.ToLower(string(r.operator))+"-"+r.value, node,
			corev1.Toleration{Key: "example.com/trouble", Operator: r.operator, Value: r.value})
		waitPod(t, c, c.CreatePod(t, pod), r.outcome)
	}
}

// The severity is the value of a taint: a pod that tolerates values below 70 comes at 50,
// and not at 75. A restarted agent keeps the value, and the policies of the chart let it change.
func TestSeverityIsTheValue(t *testing.T) {
	t.Parallel()
	const key = "example.com/trouble"
	c := comparing(t)
	host := fixtures.NewHost(t)
	node := readyForPods(t, c, "severity")
	file := quick + `
rules:
- {condition: MemoryPressure, level: Degraded, taint: {key: example.com/trouble, value: "50", effect: NoSchedule}}
- {condition: MemoryPressure, level: Degraded, severity: 75, taint: {key: example.com/trouble, value: "75", effect: NoSchedule}}
`
	a := startAgent(t, c, node, host, file)
	waitNode(t, c, node, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
	hasValue := func(value string) func(*corev1.Node) bool {
		return func(node *corev1.Node) bool {
			return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key && t.Value == value })
		}
	}
	below := corev1.Toleration{Key: key, Operator: corev1.TolerationOpLt, Value: "70", Effect: corev1.TaintEffectNoSchedule}
	host.Memory(4) // severity 60
	waitNode(t, c, node, hasValue("50"))
	c.WaitAgentEvent(t, node, "HostMemoryPressureDegraded", key+"=50:NoSchedule")
	schedulerKnows(t, c, node)
	waitPod(t, c, c.CreatePod(t, cluster.NewPod("at-50", node, below)), cluster.Scheduled)

	host.Memory(2) // severity 80
	waitNode(t, c, node, hasValue("75"))
	equal := corev1.Toleration{Key: key, Operator: corev1.TolerationOpEqual, Value: "75", Effect: corev1.TaintEffectNoSchedule}
	waitPod(t, c, c.CreatePod(t, cluster.NewPod("tells-75", node, equal)), cluster.Scheduled) // the scheduler knows
	late := c.CreatePod(t, cluster.NewPod("at-75", node, below))
	waitPod(t, c, late, refusedForTaint)
	a.Kill()
	a = startAgent(t, c, node, host, file)
	a.WaitMetric(`taintlet_condition_level{condition="MemoryPressure",level="Degraded"} 1`)
	if now := c.GetNode(t, node); !hasValue("75")(now) {
		t.Errorf("after a restart: %v", now.Spec.Taints)
	}
	host.Memory(4)
	waitNode(t, c, node, hasValue("50"))
	waitPod(t, c, late, cluster.Scheduled)
}

// With the gate off, as by default, the API server refuses tolerations that compare.
func TestComparisonsAreRefusedByDefault(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	for _, operator := range []corev1.TolerationOperator{corev1.TolerationOpLt, corev1.TolerationOpGt} {
		pod := cluster.NewPod("compares", "nowhere", corev1.Toleration{Key: "example.com/trouble", Operator: operator, Value: "70", Effect: corev1.TaintEffectNoSchedule})
		_, err := c.Client().CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), pod, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.tolerations[0].operator: Unsupported value: \""+string(operator)+"\"") {
			t.Errorf("%s: %v", operator, err)
		}
	}
}

// readyForPods registers a node and does what else a controller manager would
// do before pods can come to it.
func readyForPods(t *testing.T, c *cluster.Cluster, name string) string {
	t.Helper()
	c.Register(t, name)
	c.SetTaints(t, name) // a new Node has one until it is ready
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err := c.Client().CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	return name
}

// The prefix of own keys is the operator's choice: an autoscaler may know one that it passes
// over. Stand-ins have it, and with own keys each default rule, whether the control plane keeps
// well-known ones or not.
func TestKeyPrefix(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		plane *controlPlane
		keys  string
	}{"stand-in": {plain, ""}, "own-key": {keeping, "keys: Own\n"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, host := test.plane.require(t), fixtures.NewHost(t)
			node := c.Register(t, name)
			startAgent(t, c, node.Name, host, quick+test.keys+"keyPrefix: status-taint.cluster-autoscaler.kubernetes.io\n")
			waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
			host.Memory(2)
			ours := corev1.Taint{Key: "status-taint.cluster-autoscaler.kubernetes.io/memory-pressure", Effect: corev1.TaintEffectNoSchedule}
			wantTaints(t, waitNode(t, c, node.Name, cluster.HasTaint(ours.Key, ours.Effect)), ours)
			c.WaitAgentEvent(t, node.Name, "HostMemoryPressureDegraded", ours.Key+":NoSchedule")
			host.Memory(50)
			wantTaints(t, waitNode(t, c, node.Name, cluster.Not(cluster.HasTaint(ours.Key, ours.Effect))))
		})
	}
}

func onlyOn(nodes ...string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: nodes},
			}}},
		},
	}}
}
