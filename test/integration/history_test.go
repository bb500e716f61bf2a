package integration

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// What most of these tests are about: memory runs out, and this taint says so.
const (
	memoryKey     = corev1.TaintNodeMemoryPressure
	memoryStandIn = "taintlet.dev/memory-pressure"
)

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
	h := &history{t: t, patience: bed.Patience, more: make(chan struct{})}
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
			before := cluster.Condition(versions[i-1].Node, condition.Type)
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
func gone(versions []version) []version {
	var lacking []version
	for i := 1; i < len(versions); i++ {
		if tainted(memoryKey)(versions[i-1].Node) && untainted(memoryKey)(versions[i].Node) {
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
