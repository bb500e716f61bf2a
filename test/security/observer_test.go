package security

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

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// ofAttacker is how the names begin of what an attack itself puts on the Node.
const ofAttacker = "attack.example.com/"

// observer sees every version of a Node, as an administrator.
type observer struct {
	mu      sync.Mutex
	node    *corev1.Node
	at      time.Time     // when the version came
	more    chan struct{} // closed with the next version
	foreign string        // what has to stay; empty: it is not checked
	changes []string
}

// observe watches a Node for the length of the test.
func observe(t *testing.T, c *cluster.Cluster, name string) *observer {
	t.Helper()
	o := &observer{more: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
	o.take(c.GetNode(t, name))
	group.Go(func() {
		for ctx.Err() == nil {
			versions, err := c.Client().CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
			if err != nil {
				continue
			}
			for event := range versions.ResultChan() {
				if node, ok := event.Object.(*corev1.Node); ok && event.Type != watch.Deleted {
					o.take(node)
				}
			}
		}
	})
	return o
}

func (o *observer) take(node *corev1.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.node, o.at = node, time.Now()
	if now := foreignOn(node); o.foreign != "" && now != o.foreign {
		o.changes = append(o.changes, fmt.Sprintf("%s, it was %s", now, o.foreign))
		o.foreign = now
	}
	close(o.more)
	o.more = make(chan struct{})
}

// newest is the newest version, when it came, and what is closed with the next.
func (o *observer) newest() (*corev1.Node, time.Time, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.node, o.at, o.more
}

// until waits until it holds and returns when the version came for which it does.
func (o *observer) until(most time.Duration, holds func(*corev1.Node) bool) (time.Time, bool) {
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	for {
		node, at, more := o.newest()
		if holds(node) {
			return at, true
		}
		select {
		case <-more:
		case <-deadline.C:
			return time.Now(), false
		}
	}
}

func (o *observer) wait(t *testing.T, what string, holds func(*corev1.Node) bool) {
	t.Helper()
	if _, ok := o.until(bed.Patience, holds); !ok {
		node, _, _ := o.newest()
		record := node.Annotations[taints.RecordAnnotation]
		t.Errorf("no version of the Node has %s; taints %v, record of %d bytes: %.200s", what, node.Spec.Taints, len(record), record)
	}
}

// guard notes what is foreign now, which has to stay, or stops doing that.
func (o *observer) guard(on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.foreign, o.changes = "", nil
	if on {
		o.foreign = foreignOn(o.node)
	}
}

func (o *observer) foreignChanges() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changes
}

// ruled are the keys of the rules. A forged level sets their taints until the
// host's own evidence clears it; their NoExecute would be an eviction.
func ruled() []string {
	return []string{corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable}
}

// foreignOn is what is neither taintlet's nor the attacker's on a Node, as text.
func foreignOn(node *corev1.Node) string {
	annotations := maps.Clone(node.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return strings.HasPrefix(key, ofAttacker) || key == taints.RecordAnnotation || key == taints.HeldAnnotation ||
			key == taints.PausedAnnotation || key == "node.alpha.kubernetes.io/ttl"
	})
	if len(annotations) == 0 {
		annotations = nil
	}
	list := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(taint corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoSchedule && (strings.HasPrefix(taint.Key, "taintlet.dev/") || slices.Contains(ruled(), taint.Key))
	})
	conditions := map[corev1.NodeConditionType]string{}
	for _, c := range node.Status.Conditions {
		if !strings.HasPrefix(string(c.Type), "Host") {
			conditions[c.Type] = string(c.Status) + " " + c.Reason
		}
	}
	text, err := json.Marshal([]any{node.Labels, annotations, list, node.Spec.Unschedulable, conditions, node.Finalizers, node.OwnerReferences})
	if err != nil {
		return err.Error()
	}
	return string(text)
}
