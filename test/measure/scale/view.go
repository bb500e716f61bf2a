package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/measure"
)

// shownChanges is how many changes of foreign taints are told.
const shownChanges = 20

// view follows the taints of all Nodes, by a watch. It is what a Reflector keeps.
type view struct {
	stop   context.CancelFunc
	reader sync.WaitGroup

	mu     sync.Mutex
	taints map[string][]corev1.Taint
	// tainted counts the Nodes with the taint of MemoryPressure, lastTainted is
	// when the newest came. changes counts how often that taint came or went,
	// foreign how often others changed, such as those of a Node that is not ready.
	tainted          int
	lastTainted      time.Time
	changes, foreign int
}

func newView(ctx context.Context, c *cluster.Cluster) (*view, error) {
	config := c.Admin()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	v := &view{taints: map[string][]corev1.Taint{}}
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "nodes", "", fields.Everything())
	reflector := cache.NewReflectorWithOptions(source, &corev1.Node{}, v, cache.ReflectorOptions{})
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	v.stop = stop
	v.reader.Go(func() { reflector.RunWithContext(work) })
	return v, nil
}

func (v *view) end() {
	v.stop()
	v.reader.Wait()
}

func isBad(taints []corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeMemoryPressure })
}

// Add takes in a Node that is new.
func (v *view) Add(node any) error { return v.Update(node) }

// Resync does nothing.
func (v *view) Resync() error { return nil }

// Update takes in a version of a Node.
func (v *view) Update(object any) error {
	node, ok := object.(*corev1.Node)
	if !ok {
		return errors.New("no node")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	before, known := v.taints[node.Name]
	v.taints[node.Name] = node.Spec.Taints
	same := func(a, b corev1.Taint) bool { return a.MatchTaint(&b) && a.Value == b.Value }
	was, is := isBad(before), isBad(node.Spec.Taints)
	switch {
	case known && was != is:
		v.changes++
	case known && !slices.EqualFunc(before, node.Spec.Taints, same):
		v.foreign++
		if v.foreign <= shownChanges {
			measure.Say("taints of %s: %v became %v", node.Name, before, node.Spec.Taints)
		}
	}
	switch {
	case is && !was:
		v.tainted, v.lastTainted = v.tainted+1, time.Now()
	case was && !is:
		v.tainted--
	}
	return nil
}

// Delete forgets a Node.
func (v *view) Delete(object any) error {
	node, ok := object.(*corev1.Node)
	if !ok {
		return errors.New("no node")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if isBad(v.taints[node.Name]) {
		v.tainted--
	}
	delete(v.taints, node.Name)
	return nil
}

// Replace takes in all Nodes. None is deleted while this program runs.
func (v *view) Replace(objects []any, _ string) error {
	for _, object := range objects {
		if err := v.Update(object); err != nil {
			return err
		}
	}
	return nil
}

// now returns how many Nodes are tainted, since when, and how many changes of taints
// there were.
func (v *view) now() (tainted int, last time.Time, changes int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tainted, v.lastTainted, v.changes
}

// until waits until so many Nodes are tainted. The error says how many there were
// when the patience was over.
func (v *view) until(ctx context.Context, count int) error {
	return eventually(ctx, patience, func() error {
		if tainted, _, _ := v.now(); tainted != count {
			return fmt.Errorf("%d nodes are tainted, not %d", tainted, count)
		}
		return nil
	})
}

// eventually asks again and again until the answer is no error.
func eventually(ctx context.Context, patience time.Duration, holds func() error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; {
		err := holds()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
