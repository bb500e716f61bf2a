package measure

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/bed"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// noEvents writes no Event.
type noEvents struct{}

func (noEvents) Event(*taints.Node, string, string, string) {}

// toldProbe sees what it is told to see.
type toldProbe struct {
	condition probes.Condition
	level     atomic.Int32
}

func (p *toldProbe) Condition() probes.Condition { return p.condition }
func (p *toldProbe) Wake() <-chan struct{}       { return nil }
func (p *toldProbe) Run(context.Context)         {}

func (p *toldProbe) Observe(context.Context) probes.Observation {
	level := probes.Level(p.level.Load())
	return probes.Observation{Condition: p.condition, Level: level, Certain: level > probes.OK, Reason: "Told", Message: level.String()}
}

// hollow is an agent that is all real but for its host.
type hollow struct {
	node   string
	memory *toldProbe
	cancel context.CancelFunc
	done   chan struct{}
}

// says makes the agent's probe of memory find that level.
func (h *hollow) says(level probes.Level) { h.memory.level.Store(int32(level)) }

// kill ends the agent in the middle of whatever it does: nothing is undone.
func (h *hollow) kill() {
	h.cancel()
	<-h.done
}

// evictingConfig has the built-in rules, with eviction in this bound, and no
// patience.
func evictingConfig(slots int, cooldown time.Duration) *config.Config {
	cfg := config.Default()
	cfg.Rules = cfg.Policy().BuiltInRules()
	cfg.Eviction.Slots, cfg.Eviction.Cooldown.Duration = slots, cooldown
	memory := fixtures.Section[*config.Memory](cfg)
	memory.Debounce.ClearAfter.Duration, memory.Debounce.CriticalAfter.Duration = time.Second, 0
	return cfg
}

// startHollow starts the agent of a Node. Whoever uses restConfig is all agents.
func startHollow(t *testing.T, restConfig *rest.Config, node string, cfg *config.Config) *hollow {
	t.Helper()
	client, err := apiserver.NewClient(restConfig, node)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := &hollow{node: node, memory: &toldProbe{condition: probes.MemoryPressure}, cancel: cancel, done: make(chan struct{})}
	h.says(probes.OK)
	newProbe := func(c config.Condition) probes.Probe {
		if c.Name == probes.MemoryPressure {
			return h.memory
		}
		calm := &toldProbe{condition: c.Name}
		calm.level.Store(int32(probes.OK))
		return calm
	}
	a := &agent.Agent{
		Config: cfg, NewProbe: newProbe, Client: client, Slots: client.Slots(bed.Namespace),
		Recorder: noEvents{}, Log: slog.New(slog.DiscardHandler), Instance: "agent-of-" + node,
		Boot: decide.Boot{ID: "boot-of-" + node, At: time.Now()}, Now: time.Now, Version: "test",
	}
	go func() {
		defer close(h.done)
		if err := a.Run(ctx, nil); err != nil {
			t.Errorf("the agent of %s: %v", node, err)
		}
	}()
	t.Cleanup(h.kill)
	return h
}

// agents returns what agents reach the API server by: one user for all of
// them, with what the agent needs and no more, and with the limit of requests
// that a client has by default.
func agents(t *testing.T, c *cluster.Cluster) *rest.Config {
	t.Helper()
	if err := c.GrantAsAgent(t.Context(), bed.User); err != nil {
		t.Fatal(err)
	}
	// The manifest has no slots.
	text := bed.Render(t, "--set", fmt.Sprintf("evict.slots=%d", slots), "--show-only", "templates/evict.yaml")
	grantRolesOf(t, c, bed.User, text)
	identity, err := c.Config(bed.User)
	if err != nil {
		t.Fatal(err)
	}
	identity.QPS = 0
	return identity
}

// grantRolesOf lets a user do what the roles of a rendered manifest grant.
func grantRolesOf(t *testing.T, c *cluster.Cluster, user, manifest string) {
	t.Helper()
	objects, err := cluster.ReadManifest(bed.ManifestFile(t, manifest))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.GrantRolesOf(t.Context(), user, objects); err != nil {
		t.Fatal(err)
	}
}

// createNodes makes Nodes as nothing but objects, several at a time.
func createNodes(t *testing.T, c *cluster.Cluster, nodes []*corev1.Node) {
	t.Helper()
	const atOnce = 32
	queue := make(chan *corev1.Node)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for node := range queue {
				if _, err := c.Client().CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, node := range nodes {
		queue <- node
	}
	close(queue)
	workers.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func nodesNamed(count int) []*corev1.Node {
	nodes := make([]*corev1.Node, 0, count)
	for i := range count {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%04d", i)}})
	}
	return nodes
}

// createSlots makes the Leases as whoever installs taintlet does.
func createSlots(t *testing.T, c *cluster.Cluster, count int) {
	t.Helper()
	if _, err := c.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bed.Namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(apiserver.SlotPrefix, i)}}
		if _, err := c.Client().CoordinationV1().Leases(bed.Namespace).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// standIn takes the place of the well-known key with NoSchedule: no such API server has the policy that keeps it.
const standIn = "taintlet.dev/memory-pressure"

// The pairs of MemoryPressure, Degraded and Critical.
var (
	lesser = cluster.HasTaint(standIn, corev1.TaintEffectNoSchedule)
	evicts = cluster.HasTaint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoExecute)
)
