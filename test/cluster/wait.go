package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// waitTimeout is the longest that a Wait function waits, whatever its context
// says: far above what a busy machine needs, so that a failure is a failure.
const waitTimeout = 5 * time.Minute

// WaitNode watches a Node until the condition holds, and returns it as it then
// is. It waits for two minutes at most; the error shows the Node as last seen.
func (c *Cluster) WaitNode(ctx context.Context, name string, holds func(*corev1.Node) bool) (*corev1.Node, error) {
	nodes := c.admin.CoreV1().Nodes()
	return wait(ctx, "node "+name, which(named(name), nodes.List, nodes.Watch), holds)
}

// WaitPod watches a pod until the condition holds, and returns it as it then
// is. It waits for two minutes at most; the error shows the pod as last seen.
func (c *Cluster) WaitPod(ctx context.Context, namespace, name string, holds func(*corev1.Pod) bool) (*corev1.Pod, error) {
	pods := c.admin.CoreV1().Pods(namespace)
	return wait(ctx, "pod "+namespace+"/"+name, which(named(name), pods.List, pods.Watch), holds)
}

// WaitEvent waits for an Event with this reason, past or to come, about a Node or
// an object of the default namespace, for which the condition holds, and returns
// it. It waits for two minutes at most; the error shows the Event that was last
// seen.
func (c *Cluster) WaitEvent(ctx context.Context, kind, name, reason string, holds func(*corev1.Event) bool) (*corev1.Event, error) {
	events := c.admin.CoreV1().Events(metav1.NamespaceDefault)
	about := fields.Set{"involvedObject.kind": kind, "involvedObject.name": name, "reason": reason}
	return wait(ctx, fmt.Sprintf("event %s about %s %s", reason, kind, name), which(about, events.List, events.Watch), holds)
}

// wait is until for one type of object.
func wait[T any](ctx context.Context, what string, source *cache.ListWatch, holds func(*T) bool) (*T, error) {
	found, err := until(ctx, what, source, func(found object) bool { return holds(any(found).(*T)) })
	if err != nil {
		return nil, err
	}
	return any(found).(*T), nil
}

// Scheduled says whether the scheduler has bound the pod to a Node: as far as
// a pod gets without a kubelet.
func Scheduled(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }

// Unschedulable says whether the scheduler has seen the pod and found no
// Node for it.
func Unschedulable(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

// HasTaint returns a condition for WaitNode.
func HasTaint(key string, effect corev1.TaintEffect) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool {
		for _, taint := range node.Spec.Taints {
			if taint.Key == key && taint.Effect == effect {
				return true
			}
		}
		return false
	}
}

// HasCondition returns a condition for WaitNode.
func HasCondition[S ~string](kind S, status corev1.ConditionStatus) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool {
		found := Condition(node, kind)
		return found != nil && found.Status == status
	}
}

// Condition returns the condition of a type, nil when the Node has none.
func Condition[S ~string](node *corev1.Node, kind S) *corev1.NodeCondition {
	return find(node.Status.Conditions, corev1.NodeConditionType(kind))
}

// Not returns the opposite of a condition.
func Not(holds func(*corev1.Node) bool) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool { return !holds(node) }
}

// object is what is waited for.
type object interface {
	runtime.Object
	metav1.Object
}

func named(name string) fields.Set { return fields.Set{metav1.ObjectNameField: name} }

// which lists and watches the objects that have these fields.
func which[L runtime.Object](
	have fields.Set,
	list func(context.Context, metav1.ListOptions) (L, error),
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error),
) *cache.ListWatch {
	selector := have.AsSelector().String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return list(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return follow(ctx, options)
		},
	}
}

// until watches until the condition holds for an object that exists.
func until(ctx context.Context, what string, source *cache.ListWatch, holds func(object) bool) (object, error) {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	var last object
	_, err := watchtools.UntilWithSync(ctx, source, nil, nil, func(event watch.Event) (bool, error) {
		found, ok := event.Object.(object)
		if !ok || event.Type == watch.Deleted {
			last = nil
			return false, nil
		}
		last = found
		return holds(found), nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for %s: %w; last seen: %s", what, err, show(last))
	}
	return last, nil
}

func show(last object) string {
	if last == nil {
		return "nothing"
	}
	last.SetManagedFields(nil)
	text, err := json.MarshalIndent(last, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
