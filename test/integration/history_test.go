package integration

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/cluster"
)

// What most of these tests are about: memory runs out, and this taint says so.
const (
	memoryKey     = corev1.TaintNodeMemoryPressure
	memoryStandIn = "taintlet.dev/memory-pressure"
)

func tainted(key string) func(*corev1.Node) bool {
	return cluster.HasTaint(key, corev1.TaintEffectNoSchedule)
}

func untainted(key string) func(*corev1.Node) bool { return cluster.Not(tainted(key)) }

// version is a version of a Node and when it was seen.
type version struct {
	*corev1.Node
	at time.Time
}

// history is every version of a Node from some time on.
type history struct {
	t        *testing.T
	patience time.Duration

	mu       sync.Mutex
	versions []version
	more     chan struct{} // closed and replaced when a version comes
}

// follow begins with the version that the Node has now.
func follow(t *testing.T, c *cluster.Cluster, name string) *history {
	t.Helper()
	h := &history{t: t, patience: patience, more: make(chan struct{})}
	versions := watchNode(t.Context(), t, c, name)
	t.Cleanup(func() { sameTransitions(t, h.since(0)) })
	go func() {
		for node := range versions {
			h.mu.Lock()
			h.versions = append(h.versions, version{node, time.Now()})
			close(h.more)
			h.more = make(chan struct{})
			h.mu.Unlock()
		}
	}()
	return h
}

// sameTransitions checks that lastTransitionTime of our conditions moved with
// the status only, which the API conventions ask for.
func sameTransitions(t *testing.T, versions []version) {
	t.Helper()
	for i := 1; i < len(versions); i++ {
		if versions[i].UID != versions[i-1].UID {
			continue
		}
		for _, condition := range versions[i].Status.Conditions {
			before := taints.Condition(versions[i-1].Node, condition.Type)
			if before != nil && strings.HasPrefix(string(condition.Type), "Host") && before.Status == condition.Status && !before.LastTransitionTime.Equal(&condition.LastTransitionTime) {
				t.Errorf("%s of %s was %s since %s, and is since %s", condition.Type, versions[i].Name, condition.Status, before.LastTransitionTime, condition.LastTransitionTime)
			}
		}
	}
}

// since returns the versions from that number on.
func (h *history) since(number int) []version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.versions[number:])
}

// wait returns the number of the first version, not before that number, for
// which it holds.
func (h *history) wait(from int, holds func(*corev1.Node) bool) int {
	h.t.Helper()
	deadline := time.After(h.patience)
	for {
		h.mu.Lock()
		versions, more := h.versions, h.more
		h.mu.Unlock()
		for ; from < len(versions); from++ {
			if holds(versions[from].Node) {
				return from
			}
		}
		select {
		case <-more:
		case <-deadline:
			h.t.Fatalf("no version of the node was the one waited for; its taints were\n%s", show(versions))
		}
	}
}

// gone returns the versions that lack the taint although the one before had it.
func gone(versions []version, key string) []version {
	var lacking []version
	for i := 1; i < len(versions); i++ {
		if tainted(key)(versions[i-1].Node) && untainted(key)(versions[i].Node) {
			lacking = append(lacking, versions[i])
		}
	}
	return lacking
}

// show lists the taints and who wrote the record, a line for each version that
// differs from the one before.
func show(versions []version) string {
	var lines []string
	last := ""
	for _, v := range versions {
		line := strings.Join(taintsOf(v.Node), " ") + " by " + recordOf(v.Node).Instance.Name
		if line != last {
			lines = append(lines, v.at.Format("15:04:05.000")+" "+v.ResourceVersion+" "+line)
		}
		last = line
	}
	return strings.Join(lines, "\n")
}

// taintsOf lists the taints of a Node, less those with the keys.
func taintsOf(node *corev1.Node, less ...string) []string {
	var list []string
	for _, taint := range node.Spec.Taints {
		if !slices.Contains(less, taint.Key) {
			list = append(list, taint.ToString())
		}
	}
	return list
}

// record is what these tests read of the annotation taintlet.dev/record.
type record struct {
	Revision uint64
	Instance struct{ Name string }
	Owned    []string
}

// recordOf returns the record of a Node; an empty one when it cannot be read.
func recordOf(node *corev1.Node) record {
	var r record
	if err := json.Unmarshal([]byte(node.Annotations["taintlet.dev/record"]), &r); err != nil {
		return record{}
	}
	return r
}

func writtenBy(instance string) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool { return recordOf(node).Instance.Name == instance }
}

// instance is the agent's name in the record.
func (a *agent) instance() string {
	a.t.Helper()
	return a.waitLog(`msg="taintlet starts".* instance=(\S+)`)[1]
}

// metric is the value of a time series; 0 when there is none.
func (a *agent) metric(series string) int {
	a.t.Helper()
	_, body := a.get("/metrics")
	for line := range strings.Lines(body) {
		if value, found := strings.CutPrefix(line, series+" "); found {
			return atoi(a.t, strings.TrimSpace(value))
		}
	}
	return 0
}

// events counts the Events about the Node with that reason.
func events(t *testing.T, c *cluster.Cluster, node, reason string) int {
	t.Helper()
	list, err := c.Client().CoreV1().Events("default").List(t.Context(), byName("involvedObject.name", node))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, event := range list.Items {
		if event.Reason == reason {
			count += int(max(1, event.Count))
		}
	}
	return count
}

// annotateAsKubelet writes an annotation with the identity of the Node's own
// kubelet, which may do that and may not change a taint.
func annotateAsKubelet(t *testing.T, c *cluster.Cluster, name, key, value string) {
	t.Helper()
	identity, err := c.Config("system:node:"+name, "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(identity)
	if err != nil {
		t.Fatal(err)
	}
	patch := marshal(t, map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if _, err := client.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
