package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/cluster"
)

// judge sees every version of a Node, as the API server has it, and knows what has to hold
// of each. Its model is that of the judge in agent/decide, as far as a Node shows it.
type judge struct {
	node string
	host *host
	// holder asks who holds the eviction slot.
	holder func() string
	// hasTold asks whether an agent's log says that an eviction could not be announced: a
	// request that was cut off on its way does not reach the proxy.
	hasTold func() bool

	mu       sync.Mutex
	versions []*corev1.Node // of the present object, the newest last
	more     chan struct{}  // closed with the next version
	wrong    []string
	writes   int // of the agents, to taints and annotations
	begin    time.Time
	allowed  int // writes beside those of the write budget: starts, configurations, objects
	// foreign are the texts of what belongs to others: what it is, and while a person
	// changes it also what it will be.
	foreign []string
	// isFurnished: others may change anything of theirs.
	isFurnished bool
	// claimed are pairs of the rules that a person put on the Node, lifted those that a
	// person removed.
	claimed, lifted []taints.Pair
	removed         map[taints.Pair]time.Time // by an agent
	// lost is how often others took a pair of the agents'. After that, those that are given
	// up need not come back.
	lost      map[taints.Pair]int
	given     []taints.Pair
	announced time.Time // when an agent most recently announced an eviction
}

// ruled are the pairs that the configuration asks for, as they are on a Node whose control
// plane reconciles the well-known keys.
func ruled() map[taints.Pair]probes.Condition {
	pair := func(key string, effect taints.Effect) taints.Pair {
		return taints.Taint{Key: key, Effect: effect}.Pair()
	}
	return map[taints.Pair]probes.Condition{
		pair("taintlet.dev/memory-pressure", taints.NoSchedule):     probes.MemoryPressure,
		pair("example.com/pids", taints.NoSchedule):                 probes.PIDPressure,
		pair("example.com/pids", taints.NoExecute):                  probes.PIDPressure,
		pair("taintlet.dev/disk-pressure", taints.NoSchedule):       probes.DiskPressure,
		pair("taintlet.dev/network-unavailable", taints.NoSchedule): probes.NetworkUnavailable,
	}
}

// newJudge judges a Node for the length of the test.
func newJudge(t testing.TB, c *cluster.Cluster, name string, h *host, holder func() string) *judge {
	t.Helper()
	j := &judge{node: name, host: h, holder: holder, more: make(chan struct{}), hasTold: func() bool { return false }, begin: time.Now(), removed: map[taints.Pair]time.Time{}, lost: map[taints.Pair]int{}}
	j.take(c.GetNode(t, name))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	group.Go(func() { j.follow(ctx, c) })
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
	return j
}

// follow watches from the newest version on, so that none is missed.
func (j *judge) follow(ctx context.Context, c *cluster.Cluster) {
	nodes := c.Client().CoreV1().Nodes()
	for ctx.Err() == nil {
		options := metav1.ListOptions{FieldSelector: "metadata.name=" + j.node, ResourceVersion: j.newest().ResourceVersion}
		versions, err := nodes.Watch(ctx, options)
		if err != nil {
			time.Sleep(50 * time.Millisecond) // the API server is away
			continue
		}
		for event := range versions.ResultChan() {
			if node, ok := event.Object.(*corev1.Node); ok && event.Type != watch.Deleted {
				j.take(node)
			} else if event.Type == watch.Error { // a new API server does not know the older versions
				j.catchUp(ctx, c)
			}
		}
	}
}

// catchUp takes the newest version, if it is another one.
func (j *judge) catchUp(ctx context.Context, c *cluster.Cluster) {
	node, err := c.Client().CoreV1().Nodes().Get(ctx, j.node, metav1.GetOptions{})
	if err == nil && node.ResourceVersion != j.newest().ResourceVersion {
		j.take(node)
	}
}

func (j *judge) newest() *corev1.Node {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.versions[len(j.versions)-1]
}

// take judges a version.
func (j *judge) take(node *corev1.Node) {
	now := taintsOf(node)
	holder := ""
	if slices.ContainsFunc(now, evicts) {
		holder = j.holder()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case len(j.versions) == 0:
		j.foreign = []string{j.foreignOn(node)}
	case j.versions[0].UID != node.UID:
		j.versions, j.removed, j.lifted, j.claimed = nil, map[taints.Pair]time.Time{}, nil, nil
		j.lost, j.given = map[taints.Pair]int{}, nil
		j.foreign = []string{j.foreignOn(node)}
		j.allowed++
	default:
		j.judge(j.versions[len(j.versions)-1], node, holder)
	}
	j.versions = append(j.versions, node)
	close(j.more)
	j.more = make(chan struct{})
}

func evicts(pair taints.Pair) bool {
	return pair.Effect == taints.NoExecute && pair.Key == "example.com/pids"
}

func taintsOf(node *corev1.Node) []taints.Pair {
	var pairs []taints.Pair
	for _, taint := range apiserver.NodeOf(node).Taints {
		pairs = append(pairs, taint.Pair())
	}
	return pairs
}

func (j *judge) fail(node *corev1.Node, format string, args ...any) {
	j.wrong = append(j.wrong, fmt.Sprintf("version %s after %s: ", node.ResourceVersion, time.Since(j.begin).Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

// ours are the pairs on the Node that only an agent can have put there.
func (j *judge) ours(node *corev1.Node) []taints.Pair {
	rules := ruled()
	return slices.DeleteFunc(taintsOf(node), func(pair taints.Pair) bool {
		_, found := rules[pair]
		return !found || slices.Contains(j.claimed, pair)
	})
}

func (j *judge) judge(before, after *corev1.Node, holder string) {
	status, err := decide.ReadRecord(apiserver.NodeOf(after))
	if err != nil {
		j.fail(after, "the record cannot be read: %v", err)
	}
	had, has := j.ours(before), j.ours(after)
	for _, pair := range has {
		if !slices.Contains(status.Owned, pair) {
			j.fail(after, "%s is on the Node and not in the record", pair)
		}
		if !slices.Contains(had, pair) {
			j.added(after, pair, holder)
		}
	}
	for _, pair := range j.claimed {
		if slices.Contains(status.Owned, pair) {
			j.fail(after, "the record names %s of others", pair)
		}
	}
	for _, pair := range had {
		if !slices.Contains(has, pair) {
			j.gone(after, pair)
		}
	}
	if foreign := j.foreignOn(after); j.isFurnished {
		j.foreign = []string{foreign}
	} else if !slices.Contains(j.foreign, foreign) {
		j.fail(after, "what belongs to others is %s; it was %s", foreign, j.foreign)
		j.foreign = append(j.foreign, foreign)
	}
	if before.Annotations[taints.RecordAnnotation] != after.Annotations[taints.RecordAnnotation] || !slices.Equal(had, has) {
		if j.writes++; j.writes > j.bound() {
			j.fail(after, "%d writes, at most %d are allowed", j.writes, j.bound())
		}
	}
}

// bound is the write bound of agent/decide/budget_test.go for the configuration of the
// scenes.
func (j *judge) bound() int {
	tokensIn := func(burst int, interval time.Duration) int { return burst + int(time.Since(j.begin)/interval) }
	tokens := 4*tokensIn(budgetBurst, budgetInterval) + tokensIn(2*budgetBurst, budgetInterval/4)
	return 3*tokens + 4 + 3*len(ruled()) + j.allowed
}

func (j *judge) added(node *corev1.Node, pair taints.Pair, holder string) {
	if i := slices.Index(j.lifted, pair); i >= 0 { // the repair of what a person removed
		j.lifted = slices.Delete(j.lifted, i, i+1)
		return
	}
	condition := ruled()[pair]
	if !j.host.wasSince(j.removed[pair], condition, 0, isBad) {
		j.fail(node, "%s is set without a bad sample", pair)
	}
	if !evicts(pair) {
		return
	}
	if !j.host.wasSince(j.removed[pair], condition, criticalAfter, isCritical) {
		j.fail(node, "%s is set before %s of critical samples", pair, criticalAfter)
	}
	if holder != j.node {
		j.fail(node, "%s is set, and the slot is held by %q", pair, holder)
	}
	if !j.announced.After(j.removed[pair]) && !j.hasTold() {
		j.fail(node, "%s is set without an Event", pair)
	}
}

// lose notes that others took a pair of the agents'. A NoExecute pair that they took once, and
// any other that they took twice, need not come back.
func (j *judge) lose(pair taints.Pair) {
	if j.lost[pair]++; j.lost[pair] > 1 || evicts(pair) {
		j.given = append(j.given, pair)
	}
}

// lateness is how long after its decision a write may land.
const lateness = time.Minute

func (j *judge) gone(node *corev1.Node, pair taints.Pair) {
	if slices.Contains(j.lifted, pair) {
		return // a person did it
	}
	worse, better, least := isBad, isGood, clearAfter
	if evicts(pair) {
		worse, better, least = isCritical, isNotCritical, 0
	}
	if !j.host.recovered(j.removed[pair], ruled()[pair], least, worse, better) {
		j.fail(node, "%s is removed although the host was not good for %s since it was bad", pair, least)
	}
	j.removed[pair] = time.Now()
}

// foreignOn is what is on the Node and not an agent's, as text. Controllers of Kubernetes
// may set the taints that it leaves out, and the kubelet writes its conditions.
func (j *judge) foreignOn(node *corev1.Node) string {
	annotations := maps.Clone(node.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return key == taints.RecordAnnotation || key == "node.alpha.kubernetes.io/ttl" || key == noiseAnnotation
	})
	labels := maps.Clone(node.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return strings.HasPrefix(key, "beta.kubernetes.io/") }) // of a controller
	rules := ruled()
	var others []string
	for _, taint := range node.Spec.Taints {
		pair := taints.Taint{Key: taint.Key, Effect: taints.Effect(taint.Effect)}.Pair()
		_, isRuled := rules[pair]
		if (!isRuled || slices.Contains(j.claimed, pair)) && !strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			others = append(others, taint.ToString())
		}
	}
	slices.Sort(others)
	var conditions []string
	for _, c := range node.Status.Conditions {
		if !strings.HasPrefix(string(c.Type), "Host") {
			conditions = append(conditions, string(c.Type))
		}
	}
	slices.Sort(conditions)
	text, err := json.Marshal([]any{labels, annotations, others, conditions, node.Spec.Unschedulable, node.Finalizers})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// until waits until it holds for the newest version.
func (j *judge) until(most time.Duration, holds func(*corev1.Node) bool) bool {
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	for {
		j.mu.Lock()
		node, more := j.versions[len(j.versions)-1], j.more
		j.mu.Unlock()
		if holds(node) {
			return true
		}
		select {
		case <-more:
		case <-deadline.C:
			return false
		}
	}
}

// isRight reports whether the Node has the taints that its host asks for, and no others of
// the agents'.
func (j *judge) isRight(node *corev1.Node) bool {
	want := map[taints.Pair]bool{}
	for pair, condition := range ruled() {
		if now := j.host.now(condition); now == critical || now == bad && !evicts(pair) {
			want[pair] = true
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, pair := range j.claimed { // it is there, and not the agents'
		delete(want, pair)
	}
	has := j.ours(node)
	for _, pair := range j.given {
		if !slices.Contains(has, pair) {
			delete(want, pair)
		}
	}
	for _, pair := range has {
		if !want[pair] {
			return false
		}
	}
	return len(has) == len(want)
}

// verdicts are what did not hold.
func (j *judge) verdicts() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.wrong)
}
