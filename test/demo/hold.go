package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/taintlet/taintlet/test/cluster"
)

const (
	// statusUpdates is how many versions of the Node the controller is shown,
	// one in each updateEvery.
	statusUpdates = 5
	updateEvery   = 500 * time.Millisecond
)

// hold expects a new pod to wait, and the taint to stay while the controller
// asks for its removal.
func (d *demo) hold(ctx context.Context) error {
	if err := d.show(ctx, "run", podName, "--image=pause", "--restart=Never"); err != nil {
		return err
	}
	err := d.out.await(ctx, "the scheduler leaves the pod Pending because of the taint", func(ctx context.Context) error {
		if err := d.waitPod(ctx, leftBecauseOfTaint); err != nil {
			return err
		}
		return d.waitEvent(ctx, "Pod", podName, "FailedScheduling")
	})
	if err != nil {
		return err
	}
	if err := d.show(ctx, "get", "pod", podName); err != nil {
		return err
	}
	if err := d.describe(ctx, "pod", podName, "Events"); err != nil {
		return err
	}
	if err := d.tempt(ctx); err != nil {
		return err
	}
	return d.show(ctx, "get", "node", d.nodeName, "-o",
		`custom-columns=TAINTS:.spec.taints[*].key,HELD:.metadata.annotations.taintlet\.dev/held`)
}

// leftBecauseOfTaint says whether the scheduler found no Node for the pod, for
// the reason of a taint.
func leftBecauseOfTaint(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return cluster.Unschedulable(pod) && strings.Contains(condition.Message, "taint")
		}
	}
	return false
}

// tempt writes the Node's status again and again, as a kubelet whose own
// MemoryPressure is False. Each makes the controller manager ask for the
// removal of the taint. No version of the Node may lack it.
func (d *demo) tempt(ctx context.Context) error {
	d.out.say("")
	d.out.tell("The kubelet's own condition MemoryPressure is False, so the controller manager wants the")
	d.out.tell("taint gone: at every update of the Node it asks the API server to remove it.")
	what := fmt.Sprintf("it has asked again after each of %d updates", statusUpdates)
	err := d.out.await(ctx, what, func(ctx context.Context) error {
		return d.whileTainted(ctx, d.updateStatus)
	})
	if err != nil {
		return err
	}
	versions := 0
	err = d.out.await(ctx, "check every version of the Node since the taint came", func(ctx context.Context) (err error) {
		versions, err = d.versionsSinceTaint(ctx)
		return err
	})
	if err != nil {
		return err
	}
	asked, err := d.countRemovals()
	if err != nil {
		return err
	}
	d.out.tell("The API server's audit log has %d such requests, all answered with 200 OK. There are", asked)
	d.out.tell("%d versions of the Node since the taint came, and it is on every one of them.", versions)
	return nil
}

// whileTainted does something, and gives up as soon as the Node has lost the
// taint.
func (d *demo) whileTainted(ctx context.Context, do func(context.Context) error) error {
	ctx, lost := context.WithCancelCause(ctx)
	var guard sync.WaitGroup
	defer guard.Wait()
	defer lost(nil)
	guard.Go(func() {
		node, err := d.cluster.WaitNode(ctx, d.nodeName, func(node *corev1.Node) bool { return !tainted(node, memoryTaint) })
		if err == nil {
			lost(errNotStayed(node))
		}
	})
	err := do(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func errNotStayed(node *corev1.Node) error {
	return fmt.Errorf("the taint did not stay: version %s of the Node has the taints %v", node.ResourceVersion, node.Spec.Taints)
}

// updateStatus updates the Node's status statusUpdates times, at a pace that
// gives the taint time to be lost, and each time waits for the controller.
func (d *demo) updateStatus(ctx context.Context) error {
	pace := time.NewTicker(updateEvery)
	defer pace.Stop()
	for range statusUpdates {
		before, err := d.countRemovals()
		if err != nil {
			return err
		}
		if err := d.node.Heartbeat(ctx); err != nil {
			return err
		}
		if err := d.waitRemovals(ctx, before+1); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pace.C:
		}
	}
	return nil
}

// versionsSinceTaint checks every version of the Node from the one with
// which the taint came to the newest, and returns how many there are.
func (d *demo) versionsSinceTaint(ctx context.Context) (int, error) {
	nodes := d.cluster.Client().CoreV1().Nodes()
	newest, err := nodes.Get(ctx, d.nodeName, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("read the Node: %w", err)
	}
	watcher, err := nodes.Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + d.nodeName, ResourceVersion: d.healthy.ResourceVersion,
	})
	if err != nil {
		return 0, fmt.Errorf("watch the Node: %w", err)
	}
	defer watcher.Stop()
	count := 0
	for event := range watcher.ResultChan() {
		node, isNode := event.Object.(*corev1.Node)
		if !isNode || event.Type == watch.Deleted {
			return 0, fmt.Errorf("watch the Node: %s %v", event.Type, event.Object)
		}
		switch {
		case tainted(node, memoryTaint):
			count++
		case count > 0:
			return 0, errNotStayed(node)
		}
		order, err := resourceversion.CompareResourceVersion(node.ResourceVersion, newest.ResourceVersion)
		if err != nil {
			return 0, fmt.Errorf("compare versions of the Node: %w", err)
		}
		if order >= 0 && count > 0 {
			return count, nil
		}
	}
	return 0, errors.Join(errors.New("the watch of the Node ended"), ctx.Err())
}
