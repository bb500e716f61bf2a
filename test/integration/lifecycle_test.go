package integration

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// With deploy/keep.yaml the well-known taint is set, stays through Node updates
// that make the controller want it away, keeps pods without a toleration
// waiting, and goes with recovery.
func TestKeptTaintFromTroubleToRecovery(t *testing.T) {
	t.Parallel()
	c := keeping.require(t)
	for name, trouble := range troubles() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, host := trouble.config(t), fixtures.NewHost(t)
			node := c.Register(t, "kept-"+name)
			foreign := corev1.Taint{Key: "dedicated", Value: "group", Effect: corev1.TaintEffectPreferNoSchedule}
			c.SetTaints(t, node.Name, foreign)
			startAgent(t, c, node.Name, host, config)
			waitNode(t, c, node.Name, cluster.HasCondition(trouble.condition, corev1.ConditionFalse))

			trouble.begin(host)
			waitNode(t, c, node.Name, cluster.HasTaint(trouble.key, corev1.TaintEffectNoSchedule))
			waitNode(t, c, node.Name, cluster.HasCondition(trouble.condition, corev1.ConditionTrue))
			c.WaitAgentEvent(t, node.Name, trouble.condition+"Degraded", trouble.key+":NoSchedule")
			waiting := createPod(t, c, "waiting-"+name, node.Name, "")
			tolerating := createPod(t, c, "tolerating-"+name, node.Name, trouble.key)
			waitPod(t, c, waiting, cluster.Unschedulable)
			waitPod(t, c, tolerating, cluster.Scheduled)
			staysThroughUpdates(t, c, node, trouble.key, trouble.watched)

			trouble.end(host)
			healed := waitNode(t, c, node.Name, cluster.Not(cluster.HasTaint(trouble.key, corev1.TaintEffectNoSchedule)))
			if held, found := healed.Annotations["taintlet.dev/held"]; found {
				t.Errorf("taint gone, annotation held = %q still there", held)
			}
			if len(healed.Spec.Taints) != 1 || healed.Spec.Taints[0].Key != foreign.Key || healed.Spec.Taints[0].Value != foreign.Value {
				t.Errorf("foreign taint is not as it was: %v", healed.Spec.Taints)
			}
			waitPod(t, c, waiting, cluster.Scheduled)
			waitNode(t, c, node.Name, cluster.HasCondition(trouble.condition, corev1.ConditionFalse))
			c.WaitAgentEvent(t, node.Name, trouble.condition+"OK", "removes taint "+trouble.key+":NoSchedule")
		})
	}
}

// staysThroughUpdates updates the Node's status again and again, each of which
// makes the controller check its taints, and fails if any version of the
// Node lacks the taint.
func staysThroughUpdates(t *testing.T, c *cluster.Cluster, node *cluster.Node, key string, during time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	versions := watchNode(ctx, t, c, node.Name)
	beat := time.NewTicker(500 * time.Millisecond)
	defer beat.Stop()
	seen := 0
	for {
		select {
		case <-ctx.Done():
			if least := int(during / beatsPerVersion); seen < least {
				t.Errorf("only %d versions of the node in %s", seen, during)
			}
			return
		case <-beat.C:
			if err := node.Heartbeat(t.Context()); err != nil {
				t.Fatal(err)
			}
		case version, open := <-versions:
			if !open {
				continue
			}
			seen++
			if !cluster.HasTaint(key, corev1.TaintEffectNoSchedule)(version) {
				t.Fatalf("version %s of the node lacks %s", version.ResourceVersion, key)
			}
		}
	}
}

// beatsPerVersion: on a busy machine a few heartbeats may be late.
const beatsPerVersion = 2 * time.Second

// Without the policy the stand-in is set, and the well-known pair is never
// written: no version of the Node has it.
func TestStandInWithoutThePolicy(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	node, host := c.Register(t, "stand-in"), fixtures.NewHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	versions := watchNode(ctx, t, c, node.Name)
	a := startAgent(t, c, node.Name, host, quick)
	a.WaitLog("admission policy looked up.*present=false")
	host.Memory(2)
	waitNode(t, c, node.Name, cluster.HasTaint("taintlet.dev/memory-pressure", corev1.TaintEffectNoSchedule))
	waiting := createPod(t, c, "waiting-stand-in", node.Name, "")
	waitPod(t, c, waiting, cluster.Unschedulable)
	c.WaitAgentEvent(t, node.Name, "HostMemoryPressureDegraded", "taintlet.dev/memory-pressure:NoSchedule")
	host.Memory(50)
	waitNode(t, c, node.Name, cluster.Not(cluster.HasTaint("taintlet.dev/memory-pressure", corev1.TaintEffectNoSchedule)))
	waitPod(t, c, waiting, cluster.Scheduled)
	cancel()
	seen := 0
	for version := range versions {
		seen++
		if cluster.HasTaint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)(version) {
			t.Errorf("version %s has the well-known pair", version.ResourceVersion)
		}
	}
	if seen < 2 {
		t.Errorf("the watch saw %d versions", seen)
	}
}

// SIGKILL while tainted, then a new process: the taint never leaves the Node,
// and recovery still clears it.
func TestKilledWhileTainted(t *testing.T) {
	t.Parallel()
	c, key := pressured(t, corev1.TaintNodeMemoryPressure)
	node, host := c.Register(t, "killed"), fixtures.NewHost(t)
	first := startAgent(t, c, node.Name, host, quick)
	host.Memory(2)
	waitNode(t, c, node.Name, cluster.HasTaint(key, corev1.TaintEffectNoSchedule))
	first.Kill()
	left := waitNode(t, c, node.Name, cluster.HasTaint(key, corev1.TaintEffectNoSchedule))
	staysThroughUpdates(t, c, node, key, 5*time.Second)

	second := startAgent(t, c, node.Name, host, quick)
	second.WaitLog("admission policy looked up")
	staysThroughUpdates(t, c, node, key, 5*time.Second)
	now := waitNode(t, c, node.Name, func(*corev1.Node) bool { return true })
	if before, after := remembered(t, left), remembered(t, now); before != after {
		t.Errorf("the restart changed what is remembered\nbefore %s\nafter  %s", before, after)
	}
	host.Memory(50)
	waitNode(t, c, node.Name, cluster.Not(cluster.HasTaint(key, corev1.TaintEffectNoSchedule)))
	if code := second.Terminate(); code != 0 {
		t.Errorf("exit code after SIGTERM: %d", code)
	}
}

// remembered is the record without who wrote it and when.
func remembered(t *testing.T, node *corev1.Node) string {
	t.Helper()
	var record map[string]json.RawMessage
	if err := json.Unmarshal([]byte(node.Annotations["taintlet.dev/record"]), &record); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"revision", "at", "time", "instance"} {
		delete(record, field)
	}
	return string(marshal(t, record))
}

// SIGTERM leaves the taint: whoever stops the agent has not healed the host.
func TestTerminatedWhileTainted(t *testing.T) {
	t.Parallel()
	c, key := pressured(t, corev1.TaintNodeMemoryPressure)
	node, host := c.Register(t, "terminated"), fixtures.NewHost(t)
	a := startAgent(t, c, node.Name, host, quick)
	host.Memory(2)
	waitNode(t, c, node.Name, cluster.HasTaint(key, corev1.TaintEffectNoSchedule))
	if code := a.Terminate(); code != 0 {
		t.Errorf("exit code: %d", code)
	}
	staysThroughUpdates(t, c, node, key, 3*time.Second)
}
