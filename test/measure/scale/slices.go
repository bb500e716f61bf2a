package scale

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// sliceController stands for the EndpointSlice controller: it writes each of the agents'
// slices in which an endpoint has changed, one after another, and again if more has
// changed meanwhile.
type sliceController struct {
	client *kubernetes.Clientset
	stop   context.CancelFunc
	writer sync.WaitGroup
	woken  chan struct{} // has room for one

	mu      sync.Mutex
	slices  []*discoveryv1.EndpointSlice
	changed map[int]bool
	writing bool
	writes  int
	failure error // of the last write
}

// startSliceController creates the slices, and writes them until end.
func startSliceController(ctx context.Context, c *cluster.Cluster, all []*discoveryv1.EndpointSlice) (*sliceController, error) {
	config := c.Admin()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if err := bed.CreateSlices(ctx, c, all...); err != nil {
		return nil, err
	}
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &sliceController{client: client, stop: stop, woken: make(chan struct{}, 1), slices: all, changed: map[int]bool{}}
	s.writer.Go(func() { s.run(work) })
	return s, nil
}

func (s *sliceController) end() {
	s.stop()
	s.writer.Wait()
}

// change changes the endpoints of some Nodes, by their number.
func (s *sliceController) change(first, count int, how func(*discoveryv1.Endpoint)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := first; i < first+count; i++ {
		at := i % len(s.slices)
		how(&s.slices[at].Endpoints[i/len(s.slices)])
		s.changed[at] = true
	}
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// What becomes of the endpoint of a pod that a DaemonSet replaces.
func terminating(e *discoveryv1.Endpoint) { e.Conditions = conditions(false, true, true) }

// replaced names the new pod, which is not ready. It has the address of the host.
func replaced(e *discoveryv1.Endpoint) {
	target := *e.TargetRef
	target.UID = types.UID(fmt.Sprintf("%032x", time.Now().UnixNano()))
	e.TargetRef, e.Conditions = &target, conditions(false, false, false)
}

// podStates are those of a new pod, in their order.
func podStates() []func(*discoveryv1.Endpoint) { return []func(*discoveryv1.Endpoint){replaced, ready} }

func ready(e *discoveryv1.Endpoint) { e.Conditions = conditions(true, true, false) }

func conditions(ready, serving, terminating bool) discoveryv1.EndpointConditions {
	return discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}
}

func (s *sliceController) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.woken:
		}
		for ctx.Err() == nil && s.pass(ctx) {
		}
	}
}

// pass writes each changed slice once, and reports whether there was one.
func (s *sliceController) pass(ctx context.Context) bool {
	s.mu.Lock()
	due := slices.Sorted(maps.Keys(s.changed))
	s.writing = len(due) > 0
	s.mu.Unlock()
	for _, at := range due {
		if err := s.write(ctx, at); err != nil {
			_ = process.Pause(ctx, time.Second) // the caller looks whether the context has ended
		}
	}
	return len(due) > 0
}

// write writes a slice. A slice that could not be written stays changed.
func (s *sliceController) write(ctx context.Context, at int) error {
	s.mu.Lock()
	slice := s.slices[at].DeepCopy()
	delete(s.changed, at)
	s.mu.Unlock()
	written, err := s.client.DiscoveryV1().EndpointSlices(slice.Namespace).Update(ctx, slice, metav1.UpdateOptions{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure = err; err != nil {
		s.changed[at] = true
		return err
	}
	s.slices[at].ResourceVersion = written.ResourceVersion
	s.writes++
	return nil
}

// written returns how many writes there were since the start; an error, while there are changes
// that are not written.
func (s *sliceController) written() (writes int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.changed) > 0 || s.writing {
		err = errors.Join(fmt.Errorf("%d EndpointSlices are not written", len(s.changed)), s.failure)
	}
	return s.writes, err
}
