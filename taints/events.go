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
	err := s.client.kept.Post().Namespace(event.Namespace).Resource("events").
		VersionedParams(&metav1.CreateOptions{DryRun: s.client.dryRun}, s.client.codec).
		Body(event).Do(s.ctx).Into(created)
	return created, err
}

// Update is never called: the broadcaster creates and patches.
func (s eventSink) Update(event *corev1.Event) (*corev1.Event, error) {
	return nil, fmt.Errorf("update of event %s/%s: events are only created and patched", event.Namespace, event.Name)
}

func (s eventSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	patched := &corev1.Event{}
	err := s.client.kept.Patch(types.StrategicMergePatchType).Namespace(event.Namespace).
		Resource("events").Name(event.Name).VersionedParams(&metav1.PatchOptions{DryRun: s.client.dryRun}, s.client.codec).Body(data).Do(s.ctx).Into(patched)
	return patched, err
}

// Announce writes a warning Event about the Node before it returns; the
// recorder writes its own later.
func (c *Client) Announce(ctx context.Context, node *corev1.Node, reason, message string) error {
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: c.name + ".", Namespace: corev1.NamespaceDefault},
		InvolvedObject: Reference(node),
		Reason:         reason,
		Message:        Message(message),
		Type:           corev1.EventTypeWarning,
		Source:         corev1.EventSource{Component: fieldManager, Host: c.name},
		FirstTimestamp: now,
		LastTimestamp:  now,
		Count:          1,
	}
	if _, err := (eventSink{ctx, c}).Create(event); err != nil {
		return explain("create", "events", corev1.NamespaceDefault, err)
	}
	return nil
}

// Reference is how Events name a Node.
func Reference(node *corev1.Node) corev1.ObjectReference {
	return corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: node.Name, UID: node.UID}
}
