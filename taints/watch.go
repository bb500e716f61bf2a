package taints

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Watch sends every version of the Node that the API server tells of, nil when
// it does not exist, until the context ends; then it returns the context's
// error. Trouble with the API server is logged by the logger of the context
// (klog.NewContext) and retried with backoff. The watch selects one Node by
// name, which the API server serves from an index, as it does for a kubelet.
func (c *Client) Watch(ctx context.Context, nodes chan<- *corev1.Node) error {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, c.name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			list := &corev1.NodeList{}
			err := c.kept.Get().Resource("nodes").VersionedParams(&options, c.codec).Do(ctx).Into(list)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			options.Watch = true
			return c.kept.Get().Resource("nodes").VersionedParams(&options, c.codec).Watch(ctx)
		},
	}
	reflector := cache.NewReflectorWithOptions(source, &corev1.Node{}, forwarder{ctx, nodes}, cache.ReflectorOptions{
		Name: "own node", TypeDescription: "Node " + c.name,
	})
	reflector.RunWithContext(ctx)
	return ctx.Err()
}

// forwarder is a store of one object that passes each version on.
type forwarder struct {
	ctx   context.Context //nolint:containedctx // cache.ReflectorStore's methods take none
	nodes chan<- *corev1.Node
}

func (f forwarder) send(node *corev1.Node) error {
	select {
	case f.nodes <- node:
		return nil
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
}

func (f forwarder) Add(obj any) error    { return f.Update(obj) }
func (f forwarder) Delete(any) error     { return f.send(nil) }
func (f forwarder) Resync() error        { return nil }
func (f forwarder) Update(obj any) error { return f.sendObject(obj) }

func (f forwarder) Replace(objects []any, _ string) error {
	if len(objects) == 0 {
		return f.send(nil)
	}
	return f.sendObject(objects[0])
}

func (f forwarder) sendObject(obj any) error {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return errors.New("the watch of nodes delivered another kind of object")
	}
	return f.send(node)
}
