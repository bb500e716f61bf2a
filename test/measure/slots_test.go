package measure

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/bed"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/cluster"
)

const (
	hollows = 200
	slots   = 10
	// slotCooldown is longer than an agent waits before it asks again.
	slotCooldown = 15 * time.Second
)

// Two hundred hosts become critical at once. Whatever then becomes of the
// holders of the ten slots, never do more than ten Nodes evict, and none without
// a slot. That is read from the audit log, write by write.
func TestNeverMoreNodesEvictThanThereAreSlots(t *testing.T) {
	t.Parallel()
	c := startAPIServer(t)
	v := newView(t, c)
	createSlots(t, c, slots)
	fleet := startFleet(t, c)
	defer func() {
		for _, h := range fleet {
			h.kill()
		}
		judge(t, c, v)
	}()
	v.until(t, "our conditions", hollows, func(node *corev1.Node) bool { return len(node.Status.Conditions) > 0 })
	for _, h := range fleet {
		h.says(probes.Critical)
	}
	v.until(t, "NoSchedule", hollows, lesser)
	first := slices.Sorted(maps.Keys(v.until(t, "NoExecute", slots, evicts)))
	isFirst := func(node *corev1.Node) bool { return slices.Contains(first, node.Name) }

	killed, gone, recovered, steady := first[0], first[1], first[2:5], first[5:]
	fleet[killed].kill() // its Node goes on to evict
	fleet[gone].kill()   // its Node does not
	deleteNode(t, c, gone)
	for _, name := range recovered {
		fleet[name].says(probes.OK)
	}
	// Those that have the slots of the others now.
	v.until(t, "a slot of another", 1+len(recovered), func(node *corev1.Node) bool { return evicts(node) && !isFirst(node) })
	kept := v.matching(func(node *corev1.Node) bool { return evicts(node) && isFirst(node) })
	if want := append([]string{killed}, steady...); !slices.Equal(slices.Sorted(maps.Keys(kept)), want) {
		t.Errorf("of the first, these evict after the cooldown: %v, want %v", slices.Sorted(maps.Keys(kept)), want)
	}
	before := held(t, c)
	deleteNode(t, c, killed)
	v.until(t, "a slot of another", 2+len(recovered), func(node *corev1.Node) bool { return evicts(node) && !isFirst(node) })
	isHeld := func(slots map[string]string) bool { return slices.Contains(slices.Collect(maps.Values(slots)), killed) }
	if !isHeld(before) || isHeld(held(t, c)) {
		t.Errorf("node %s that is gone held no slot, or still does: %v, then %v", killed, before, held(t, c))
	}
}

// startFleet makes the Nodes and starts their agents.
func startFleet(t *testing.T, c *cluster.Cluster) map[string]*hollow {
	t.Helper()
	identity, fleet := agents(t, c), map[string]*hollow{}
	nodes := nodesNamed(hollows)
	createNodes(t, c, nodes)
	cfg := evictingConfig(slots, slotCooldown)
	for _, node := range nodes {
		fleet[node.Name] = startHollow(t, identity, node.Name, cfg)
	}
	return fleet
}

func deleteNode(t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	if err := c.Client().CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// held returns the Leases and the Nodes that hold them.
func held(t *testing.T, c *cluster.Cluster) map[string]string {
	t.Helper()
	leases, err := c.Client().CoordinationV1().Leases(bed.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]string{}
	for _, lease := range leases.Items {
		nodes[lease.Name] = holder(lease)
	}
	return nodes
}

func holder(lease coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// judgement goes through all writes in the order in which they took effect.
type judgement struct {
	t       *testing.T
	evicts  map[string]bool
	eased   map[string]time.Time // when a Node's NoExecute went
	holders map[string]write[coordinationv1.Lease]
	most    int
	handed  int // slots that went from one Node to another
}

// judge checks the rules of the slots on every version of every Node and Lease
// that there ever was, by the audit log.
func judge(t *testing.T, c *cluster.Cluster, v *view) {
	t.Helper()
	requests := readAudit(t, c)
	nodes := writesOf[corev1.Node](t, requests, "nodes")
	noneIsMissing(t, nodes)
	for name, version := range v.deleted { // an empty Node stands for none
		nodes = append(nodes, write[corev1.Node]{version: versionNumber(t, version), name: name})
	}
	slices.SortFunc(nodes, func(a, b write[corev1.Node]) int { return cmp.Compare(a.version, b.version) })
	leases := writesOf[coordinationv1.Lease](t, requests, "leases")
	j := &judgement{t: t, evicts: map[string]bool{}, eased: map[string]time.Time{}, holders: map[string]write[coordinationv1.Lease]{}}
	for len(nodes) > 0 || len(leases) > 0 {
		if len(leases) == 0 || len(nodes) > 0 && nodes[0].version < leases[0].version {
			j.node(nodes[0])
			nodes = nodes[1:]
		} else {
			j.lease(leases[0])
			leases = leases[1:]
		}
	}
	if j.most != slots {
		t.Errorf("at most %d Nodes evicted at the same time, want all of %d slots used", j.most, slots)
	}
	t.Logf("%d requests; at most %d Nodes evicted at the same time; %d slots went to another Node", len(requests), j.most, j.handed)
}

// noneIsMissing checks that the log has every version that anybody built on.
func noneIsMissing(t *testing.T, nodes []write[corev1.Node]) {
	t.Helper()
	known := map[uint64]bool{}
	for _, w := range nodes {
		var body metav1.PartialObjectMetadata
		if err := json.Unmarshal(w.body, &body); err != nil {
			t.Fatalf("audit log: %v: %s", err, w.body)
		}
		if base := body.ResourceVersion; base != "" && !known[versionNumber(t, base)] {
			t.Errorf("node %s was written on top of version %s, which the log lacks", w.name, base)
		}
		known[w.version] = true
	}
}

func (j *judgement) node(w write[corev1.Node]) {
	is, was := evicts(&w.object), j.evicts[w.name]
	j.evicts[w.name] = is
	if was && !is {
		j.eased[w.name] = w.received
	}
	if is && !was {
		holds := func(l write[coordinationv1.Lease]) bool { return holder(l.object) == w.name }
		if !slices.ContainsFunc(slices.Collect(maps.Values(j.holders)), holds) {
			j.t.Errorf("version %d: node %s evicts without a slot", w.version, w.name)
		}
	}
	count := 0
	for _, evicting := range j.evicts {
		if evicting {
			count++
		}
	}
	if count > max(slots, j.most) {
		j.t.Errorf("version %d: %d Nodes evict", w.version, count)
	}
	j.most = max(j.most, count)
}

func (j *judgement) lease(w write[coordinationv1.Lease]) {
	before, now := j.holders[w.name], holder(w.object)
	j.holders[w.name] = w
	was := holder(before.object)
	if was == "" || was == now {
		return
	}
	j.handed++
	if j.evicts[was] {
		j.t.Errorf("version %d: slot %s was taken from node %s, which evicts", w.version, w.name, was)
	}
	since, what := before.received, "moved" // taken
	if now == "" {
		since, what = j.eased[was], "was used" // given
	}
	if waited := w.received.Sub(since); waited < slotCooldown {
		j.t.Errorf("version %d: slot %s of node %s went %s after it %s", w.version, w.name, was, waited, what)
	}
}
