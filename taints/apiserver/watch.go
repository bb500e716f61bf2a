package apiserver

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/taintlet/taintlet/taints"
)

// Watch sends every version of the Node that the API server reports, and nil if the Node does not
// exist. When the context ends, it returns the context's error. Errors of the API server are logged
// by the logger of the context (klog.NewContext) and retried with backoff. The watch selects one
// Node by name, which the API server serves from an index, as it does for a kubelet.
func (c *Client) Watch(ctx context.Context, nodes chan<- *taints.Node) error {
	pace := rate.NewLimiter(rate.Every(watchEvery), watchAtOnce)
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, c.name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if err := pace.Wait(ctx); err != nil {
				return nil, err
			}
			options.FieldSelector = selector
			list := &corev1.NodeList{}
			err := c.kept.Get().Resource("nodes").VersionedParams(&options, c.codec).Do(ctx).Into(list)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if err := pace.Wait(ctx); err != nil {
				return nil, err
			}
			options.FieldSelector = selector
			options.Watch = true
			return c.kept.Get().Resource("nodes").VersionedParams(&options, c.codec).Watch(ctx)
		},
	}
	reflector := cache.NewReflectorWithOptions(source, &corev1.Node{}, forwarder{ctx, c.name, nodes}, cache.ReflectorOptions{
		Name: "own node", TypeDescription: "Node " + c.name,
	})
	reflector.RunWithContext(ctx)
	return ctx.Err()
}

// watchEvery is the least time between two requests of Watch, after watchAtOnce of them. An API
// server ends a watch after some minutes. client-go pauses after errors, but not after a watch that
// ends with an event or is refused as expired. It then repeats the request 4,000 to 6,700 times a
// second, measured with client-go 0.36.3 and a server on the same host.
const (
	watchEvery  = time.Second
	watchAtOnce = 4
)

// forwarder is a store of one object that passes each version on. It drops a Node with another
// name, even if the API server or a proxy sends one.
type forwarder struct {
	ctx   context.Context //nolint:containedctx // cache.ReflectorStore's methods take none
	name  string
	nodes chan<- *taints.Node
}

func (f forwarder) send(node *taints.Node) error {
	select {
	case f.nodes <- node:
		return nil
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
}

// Add passes the Node on.
func (f forwarder) Add(obj any) error { return f.Update(obj) }

// Resync does nothing: the loop has the newest Node.
func (f forwarder) Resync() error { return nil }

// Update passes the Node on.
func (f forwarder) Update(obj any) error {
	if node := f.own(obj); node != nil {
		return f.send(node)
	}
	return nil
}

// Delete tells that the Node is gone.
func (f forwarder) Delete(obj any) error {
	if f.own(obj) != nil {
		return f.send(nil)
	}
	return nil
}

// Replace passes the Node on, or that there is none.
func (f forwarder) Replace(objects []any, _ string) error {
	for _, obj := range objects {
		if node := f.own(obj); node != nil {
			return f.send(node)
		}
	}
	return f.send(nil)
}

// own returns the object if it is the watched Node.
func (f forwarder) own(obj any) *taints.Node {
	if node, ok := obj.(*corev1.Node); ok && node.Name == f.name {
		return NodeOf(node)
	}
	return nil
}
