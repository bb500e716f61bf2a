package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// waitEvent waits for an Event about the object with this reason, past or to
// come: a watch without a resource version begins with those that there are.
func (d *demo) waitEvent(ctx context.Context, object, reason string) error {
	about := fields.Set{"involvedObject.name": object, "reason": reason}
	watcher, err := d.cluster.Client().CoreV1().Events(corev1.NamespaceDefault).
		Watch(ctx, metav1.ListOptions{FieldSelector: about.String()})
	if err != nil {
		return fmt.Errorf("watch events: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Added || event.Type == watch.Modified {
			return nil
		}
	}
	return errors.Join(ctx.Err(), fmt.Errorf("the watch for event %s about %s ended", reason, object))
}
