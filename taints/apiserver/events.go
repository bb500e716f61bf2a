package apiserver

import (
	"context"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/taintlet/taintlet/taints"
)

// Announce writes a warning Event about the Node before it returns. A Recorder
// writes its own later.
func (c *Client) Announce(ctx context.Context, node *taints.Node, reason, message string) error {
	return c.createEvent(ctx, c.event(node, corev1.EventTypeWarning, reason, message))
}

// event returns an Event of now. Events about a Node must live in namespace
// default, since a Node has none of its own.
func (c *Client) event(node *taints.Node, kind, reason, message string) *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: eventName(c.name, now.Time), Namespace: corev1.NamespaceDefault},
		InvolvedObject:      corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: node.Name, UID: types.UID(node.UID)},
		Reason:              reason,
		Message:             taints.Message(message),
		Type:                kind,
		Source:              corev1.EventSource{Component: fieldManager, Host: c.name},
		ReportingController: fieldManager,
		ReportingInstance:   c.name,
		FirstTimestamp:      now,
		LastTimestamp:       now,
		Count:               1,
	}
}

// eventName tells an Event from all others. An Event that is tried again has the
// same name, so that it is not written twice.
func eventName(node string, at time.Time) string {
	suffix := "." + strconv.FormatInt(at.UnixNano(), 16)
	node = node[:min(len(node), validation.DNS1123SubdomainMaxLength-len(suffix))]
	return strings.TrimRight(node, "-.") + suffix
}

func (c *Client) createEvent(ctx context.Context, event *corev1.Event) error {
	err := c.kept.Post().Namespace(event.Namespace).Resource("events").
		VersionedParams(&metav1.CreateOptions{DryRun: c.dryRun}, c.codec).
		MaxRetries(c.retries).Body(event).Do(ctx).Error()
	if err != nil {
		return explain("create", "events", event.Namespace, err)
	}
	return nil
}
