package integration

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/taintlet/taintlet/test/cluster"
)

// trouble is one way to make a fake host sick, and well again.
type trouble struct {
	condition string // our condition type
	key       string // of the well-known pair
	config    func(*testing.T) string
	begin     func(*fakeHost)
	end       func(*fakeHost)
	// watched is for how long the kept taint is watched through Node updates.
	watched time.Duration
}

func troubles() map[string]trouble {
	asQuick := func(*testing.T) string { return quick }
	return map[string]trouble{
		"memory": {
			condition: "HostMemoryPressure", key: corev1.TaintNodeMemoryPressure, config: asQuick,
			begin: func(h *fakeHost) { h.memory(2) }, end: func(h *fakeHost) { h.memory(50) }, watched: 30 * time.Second,
		},
		"disk": {
			condition: "HostDiskPressure", key: corev1.TaintNodeDiskPressure, config: diskAlmostFull,
			begin: fill, end: func(h *fakeHost) { h.empty() }, watched: 5 * time.Second,
		},
		"pid": {
			condition: "HostPIDPressure", key: corev1.TaintNodePIDPressure, config: asQuick,
			begin: func(h *fakeHost) { h.tasks(30000) }, end: func(h *fakeHost) { h.tasks(100) }, watched: 5 * time.Second,
		},
		"network": {
			condition: "HostNetworkUnavailable", key: corev1.TaintNodeNetworkUnavailable, config: asQuick,
			begin: func(h *fakeHost) { h.route(false) }, end: func(h *fakeHost) { h.route(true) }, watched: 5 * time.Second,
		},
	}
}

// The tmpfs of the hosts' root file systems is one for all of them: one test at
// a time may fill it.
var tmpfs sync.Mutex

// The sizes that cross the disk's threshold: ballast is a twentieth of what is
// free, the threshold lies a bit more than halfway down. Until the test ends, no
// other gets past here.
func diskAlmostFull(t *testing.T) string {
	t.Helper()
	tmpfs.Lock()
	t.Cleanup(tmpfs.Unlock)
	var fs syscall.Statfs_t
	if err := syscall.Statfs("/dev/shm", &fs); err != nil {
		t.Fatal(err)
	}
	percent := float64(fs.Bavail) / float64(fs.Blocks) * 100
	threshold := percent * 0.97
	return strings.Replace(quick, "disk: {", "disk: {availablePercent: "+format(threshold)+", clearFactor: 1.001, ", 1)
}

func fill(h *fakeHost) {
	h.t.Helper()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(h.root, &fs); err != nil {
		h.t.Fatal(err)
	}
	ballast, err := os.Create(filepath.Join(h.root, "ballast"))
	if err != nil {
		h.t.Fatal(err)
	}
	defer ballast.Close() //nolint:errcheck // nothing was written through it
	size := int64(fs.Bavail) * fs.Bsize / 20
	if err := syscall.Fallocate(int(ballast.Fd()), 0, 0, size); err != nil {
		h.t.Fatal(err)
	}
}

func (h *fakeHost) empty() {
	h.t.Helper()
	if err := os.Remove(filepath.Join(h.root, "ballast")); err != nil {
		h.t.Fatal(err)
	}
}

// With deploy/keep.yaml the well-known taint is set, stays through Node updates
// that make the controller want it away, keeps pods without a toleration
// waiting, and goes with recovery.
func TestKeptTaintFromTroubleToRecovery(t *testing.T) {
	t.Parallel()
	c := keeping.require(t)
	for name, trouble := range troubles() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, host := trouble.config(t), newFakeHost(t)
			node := c.Register(t, "kept-"+name)
			foreign := corev1.Taint{Key: "dedicated", Value: "group", Effect: corev1.TaintEffectPreferNoSchedule}
			c.SetTaints(t, node.Name, foreign)
			startAgent(t, c, node.Name, host, config)
			waitNode(t, c, node.Name, cluster.HasCondition(trouble.condition, corev1.ConditionFalse))

			trouble.begin(host)
			waitNode(t, c, node.Name, cluster.HasTaint(trouble.key, corev1.TaintEffectNoSchedule))
			waitNode(t, c, node.Name, cluster.HasCondition(trouble.condition, corev1.ConditionTrue))
			c.WaitAgentEvent(t, node.Name, trouble.condition+"Degraded", trouble.key+":NoSchedule (kept)")
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
			c.WaitAgentEvent(t, node.Name, trouble.condition+"OK", "no more taint "+trouble.key+":NoSchedule")
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
	node, host := c.Register(t, "stand-in"), newFakeHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	versions := watchNode(ctx, t, c, node.Name)
	a := startAgent(t, c, node.Name, host, quick)
	a.waitLog("admission policy looked up.*present=false")
	host.memory(2)
	waitNode(t, c, node.Name, cluster.HasTaint("taintlet.dev/memory-pressure", corev1.TaintEffectNoSchedule))
	waiting := createPod(t, c, "waiting-stand-in", node.Name, "")
	waitPod(t, c, waiting, cluster.Unschedulable)
	c.WaitAgentEvent(t, node.Name, "HostMemoryPressureDegraded", "taintlet.dev/memory-pressure:NoSchedule (stand-in)")
	host.memory(50)
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
	node, host := c.Register(t, "killed"), newFakeHost(t)
	first := startAgent(t, c, node.Name, host, quick)
	host.memory(2)
	tainted := waitNode(t, c, node.Name, cluster.HasTaint(key, corev1.TaintEffectNoSchedule))
	first.kill()
	staysThroughUpdates(t, c, node, key, 5*time.Second)

	second := startAgent(t, c, node.Name, host, quick)
	second.waitLog("admission policy looked up")
	staysThroughUpdates(t, c, node, key, 5*time.Second)
	now := waitNode(t, c, node.Name, func(*corev1.Node) bool { return true })
	if before, after := remembered(t, tainted), remembered(t, now); before != after {
		t.Errorf("the restart changed what is remembered\nbefore %s\nafter  %s", before, after)
	}
	host.memory(50)
	waitNode(t, c, node.Name, cluster.Not(cluster.HasTaint(key, corev1.TaintEffectNoSchedule)))
	if code := second.terminate(); code != 0 {
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
	node, host := c.Register(t, "terminated"), newFakeHost(t)
	a := startAgent(t, c, node.Name, host, quick)
	host.memory(2)
	waitNode(t, c, node.Name, cluster.HasTaint(key, corev1.TaintEffectNoSchedule))
	if code := a.terminate(); code != 0 {
		t.Errorf("exit code: %d", code)
	}
	staysThroughUpdates(t, c, node, key, 3*time.Second)
}

func waitNode(t *testing.T, c *cluster.Cluster, name string, holds func(*corev1.Node) bool) *corev1.Node {
	t.Helper()
	node, err := c.WaitNode(t.Context(), name, holds)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func waitPod(t *testing.T, c *cluster.Cluster, name string, holds func(*corev1.Pod) bool) {
	t.Helper()
	if _, err := c.WaitPod(t.Context(), "default", name, holds); err != nil {
		t.Fatal(err)
	}
}

// createPod makes a BestEffort pod that only the node can take; it tolerates
// the key, if any.
func createPod(t *testing.T, c *cluster.Cluster, name, node, key string) string {
	t.Helper()
	var tolerations []corev1.Toleration
	if key != "" {
		tolerations = append(tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	return c.CreatePod(t, cluster.NewPod(name, node, tolerations...))
}

// watchNode returns every version of the node from now on.
func watchNode(ctx context.Context, t *testing.T, c *cluster.Cluster, name string) <-chan *corev1.Node {
	t.Helper()
	watcher, err := c.Client().CoreV1().Nodes().Watch(ctx, byName("metadata.name", name))
	if err != nil {
		t.Fatal(err)
	}
	versions := make(chan *corev1.Node, 1000)
	go func() {
		defer close(versions)
		for event := range watcher.ResultChan() {
			if node, ok := event.Object.(*corev1.Node); ok && event.Type != watch.Deleted {
				versions <- node
			}
		}
	}()
	return versions
}

func byName(field, name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(field, name).String()}
}
