package status

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/taints/pace"
)

const (
	// drawEvery is the least time between two drawings.
	drawEvery = time.Second
	// ageEvery is how often what has not changed is drawn again: times go on.
	ageEvery = 10 * time.Second
	// readEvery is how often a watch reads the installation, and readShare how much of
	// the time that may take: the pods of 5,000 agents take more than a second.
	readEvery = 10 * time.Second
	readShare = 20
	// watchAgain is the pause before the API server is asked again after an error.
	watchAgain = time.Second
)

// follow shows the Fleet until the context ends, or all is well where that is waited for. Who
// waited in vain is shown what was last.
func (v *view) follow(ctx context.Context) (isWell bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := make(chan func())
	go v.watchNodes(ctx, changes)
	if v.Namespace != "" {
		go v.reread(ctx, changes)
	}
	for {
		report := v.report(ctx)
		isWell = v.fleet.IsWell(report)
		if v.Watch {
			err = v.print(report)
		}
		if err != nil || v.Wait && isWell || !change(ctx, changes) {
			if v.Wait {
				err = v.print(report)
			}
			return isWell, err
		}
	}
}

// change makes the changes of a while: until times are to be drawn anew, or for the least time
// between two drawings after the first change. false: the context has ended.
func change(ctx context.Context, changes <-chan func()) bool {
	until, isFirst := time.After(ageEvery), true
	for {
		select {
		case <-ctx.Done():
			return false
		case <-until:
			return true
		case change := <-changes:
			change()
			if isFirst {
				until, isFirst = time.After(drawEvery), false
			}
		}
	}
}

// reread reads what is installed again and again until the context ends.
func (v *view) reread(ctx context.Context, changes chan<- func()) {
	took := time.Duration(0)
	for pace.Sleep(ctx, max(readEvery, readShare*took)) {
		began := time.Now()
		if i, err := v.client.Read(ctx, v.Namespace); err == nil {
			send(ctx, changes, func() { v.fleet.SetInstallation(i) })
		}
		took = time.Since(began)
	}
}

func send(ctx context.Context, changes chan<- func(), change func()) {
	select {
	case changes <- change:
	case <-ctx.Done():
	}
}

// watchNodes keeps the Fleet up to date until the context ends, by a Reflector.
func (v *view) watchNodes(ctx context.Context, changes chan<- func()) {
	nodes, selector, told := v.client.CoreV1().Nodes(), "", ""
	if len(v.Nodes) == 1 {
		selector = fields.OneTermEqualSelector(metav1.ObjectNameField, v.Nodes[0]).String()
	}
	tell := func(err error) { // once
		if err != nil && err.Error() != told && ctx.Err() == nil {
			fmt.Fprintf(v.Err, "taintlet: watch nodes: %v; trying again\n", err)
		}
		told = fmt.Sprint(err)
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector, options.ResourceVersion, options.ResourceVersionMatch = selector, "", "" // in pages
			list, err := nodes.List(ctx, options)
			tell(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			events, err := nodes.Watch(ctx, options)
			tell(err)
			return events, err
		},
	}
	reflector := cache.NewReflectorWithOptions(source, &corev1.Node{}, fleetStore{ctx, v.fleet, changes}, cache.ReflectorOptions{
		Logger: &klog.Logger{}, Backoff: &wait.Backoff{Duration: watchAgain},
	})
	reflector.RunWithContext(klog.NewContext(ctx, klog.Logger{})) // what it would log is told
}

// fleetStore passes on to a Fleet what a Reflector stores.
type fleetStore struct {
	ctx     context.Context //nolint:containedctx // cache.ReflectorStore's methods take none
	fleet   *Fleet
	changes chan<- func()
}

func (s fleetStore) Resync() error { return nil }

func (s fleetStore) Add(object any) error { return s.Update(object) }

func (s fleetStore) Update(object any) error {
	node := apiserver.NodeOf(object.(*corev1.Node)) //nolint:forcetypeassert // it has no others
	send(s.ctx, s.changes, func() { s.fleet.Add(node) })
	return nil
}

func (s fleetStore) Delete(object any) error {
	name := object.(*corev1.Node).Name //nolint:forcetypeassert // as above
	send(s.ctx, s.changes, func() { s.fleet.remove(name) })
	return nil
}

func (s fleetStore) Replace(objects []any, _ string) error {
	send(s.ctx, s.changes, func() {
		s.fleet.reset()
		for _, object := range objects {
			s.fleet.Add(apiserver.NodeOf(object.(*corev1.Node))) //nolint:forcetypeassert // as above
		}
	})
	return nil
}

// Transformer leaves out the largest part of a Node, of which the Reflector keeps all for a
// moment.
func (s fleetStore) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		object.(*corev1.Node).Status.Images = nil //nolint:forcetypeassert // as above
		return object, nil
	}
}

var _ cache.TransformingStore = fleetStore{}
