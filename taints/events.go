package taints

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

// EventSink returns where an event broadcaster writes. Events about a Node
// must live in namespace default, since a Node has none of its own.
func (c *Client) EventSink(ctx context.Context) record.EventSink { return eventSink{ctx, c} }

type eventSink struct {
	ctx    context.Context //nolint:containedctx // record.EventSink's methods take none
	client *Client
}

func (s eventSink) Create(event *corev1.Event) (*corev1.Event, error) {
	created := &corev1.Event{}
	err := s.client.rest.Post().Namespace(event.Namespace).Resource("events").
		VersionedParams(&metav1.CreateOptions{}, s.client.codec).
		Body(event).Do(s.ctx).Into(created)
	return created, err
}

// Update is never called: the broadcaster creates and patches.
func (s eventSink) Update(event *corev1.Event) (*corev1.Event, error) {
	return nil, fmt.Errorf("update of event %s/%s: events are only created and patched", event.Namespace, event.Name)
}

func (s eventSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	patched := &corev1.Event{}
	err := s.client.rest.Patch(types.StrategicMergePatchType).Namespace(event.Namespace).
		Resource("events").Name(event.Name).Body(data).Do(s.ctx).Into(patched)
	return patched, err
}
