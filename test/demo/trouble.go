package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

const (
	memoryTaint = corev1.TaintNodeMemoryPressure
	// standInTaint is what the agent sets where the policy of deploy/keep.yaml
	// is absent.
	standInTaint   = "taintlet.dev/memory-pressure"
	heldAnnotation = "taintlet.dev/held"
	podName        = "waiting"
)

// exhaust takes the host's memory, and expects taint, condition and Event.
func (d *demo) exhaust(ctx context.Context) error {
	reached, err := d.takeMemory()
	if err != nil {
		return err
	}
	if err := d.awaitTaint(ctx); err != nil {
		return err
	}
	err = d.out.await(ctx, memoryCondition+" is True, and an Event says so", func(ctx context.Context) error {
		if _, err := d.cluster.WaitNode(ctx, d.nodeName, cluster.HasCondition(memoryCondition, corev1.ConditionTrue)); err != nil {
			return err
		}
		return d.waitEvent(ctx, "Node", d.nodeName, memoryCondition+"Degraded")
	})
	if err != nil {
		return err
	}
	err = d.out.await(ctx, "all memory is taken that was to be taken", func(ctx context.Context) error {
		select {
		case <-reached:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return err
	}
	if err := d.describe(ctx, "node", d.nodeName, "Taints", "Conditions", "Events"); err != nil {
		return err
	}
	return d.showStatus(ctx)
}

// takeMemory starts this program once more, as the ballast. The channel is
// closed when it has what it wants.
func (d *demo) takeMemory() (reached <-chan struct{}, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	d.out.tell("A child process takes memory until %s are left, %s below the threshold.", bytesText(d.plan.target), bytesText(d.plan.threshold-d.plan.target))
	lines := &ballastLines{out: d.out, reached: make(chan struct{})}
	command := process.Command(self, takeMemory, strconv.FormatUint(d.plan.target/mebibyte, 10))
	command.Stdout, command.Stderr = lines, os.Stderr
	d.ballast, err = d.start("the process that takes memory (is there a memory limit for this session?)", command, "")
	return lines.reached, err
}

// awaitTaint waits for the taint of the name that everybody knows.
func (d *demo) awaitTaint(ctx context.Context) error {
	var node *corev1.Node
	err := d.out.await(ctx, "taint "+memoryTaint+":NoSchedule comes", func(ctx context.Context) (err error) {
		node, err = d.cluster.WaitNode(ctx, d.nodeName, func(node *corev1.Node) bool {
			return tainted(node, memoryTaint) || tainted(node, standInTaint)
		})
		return err
	})
	if err == nil && !tainted(node, memoryTaint) {
		err = fmt.Errorf("the agent set its stand-in %s:NoSchedule, as it does where the policy of deploy/keep.yaml is absent", standInTaint)
	}
	return err
}

// ballastLines shows what the ballast says.
type ballastLines struct {
	out     *console
	reached chan struct{} // closed when it has what it wants
}

func (b *ballastLines) Write(lines []byte) (int, error) {
	b.out.quote(string(lines))
	if bytes.Contains(lines, []byte(targetReached)) {
		close(b.reached) // it says so once
	}
	return len(lines), nil
}

func tainted(node *corev1.Node, key string) bool {
	return cluster.HasTaint(key, corev1.TaintEffectNoSchedule)(node)
}

// recover gives the memory back and expects everything to be as before.
func (d *demo) recover(ctx context.Context) error {
	if err := d.ballast.Stop(graceful); err != nil {
		return err
	}
	d.out.tell("The child process has ended; the agent waits for memory to stay plentiful for 3 s.")
	err := d.out.await(ctx, "taint and annotation "+heldAnnotation+" go", func(ctx context.Context) error {
		_, err := d.cluster.WaitNode(ctx, d.nodeName, func(node *corev1.Node) bool {
			_, held := node.Annotations[heldAnnotation]
			return !held && !tainted(node, memoryTaint)
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("%w%s", err, d.plan.othersTook())
	}
	err = d.out.await(ctx, "pod "+podName+" is bound to the Node", func(ctx context.Context) error {
		return d.waitPod(ctx, cluster.Scheduled)
	})
	if err != nil {
		return err
	}
	err = d.out.await(ctx, memoryCondition+" is False, and the pod's Event says where it is", func(ctx context.Context) error {
		_, err := d.cluster.WaitNode(ctx, d.nodeName, cluster.HasCondition(memoryCondition, corev1.ConditionFalse))
		return errors.Join(err, d.waitEvent(ctx, "Pod", podName, "Scheduled"))
	})
	if err != nil {
		return err
	}
	if err := d.show(ctx, "get", "pod", podName, "-o", "wide"); err != nil {
		return err
	}
	d.out.tell("(It has its NODE. Its status stays Pending: there is no kubelet to start it.)")
	d.out.tell("The Event %sOK follows a minute after the one before: there is one a minute at most.", memoryCondition)
	if err := d.describe(ctx, "node", d.nodeName, "Taints", "Events"); err != nil {
		return err
	}
	return d.logLines("changed")
}

// waitEvent waits for an Event about the object, past or to come.
func (d *demo) waitEvent(ctx context.Context, kind, name, reason string) error {
	_, err := d.cluster.WaitEvent(ctx, kind, name, reason, func(*corev1.Event) bool { return true })
	return err
}

func (d *demo) waitPod(ctx context.Context, holds func(*corev1.Pod) bool) error {
	_, err := d.cluster.WaitPod(ctx, corev1.NamespaceDefault, podName, holds)
	return err
}
