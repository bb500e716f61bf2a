package apiserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/pace"
)

// followAgain is the least time between two watches.
const followAgain = time.Second

// Follower is told what becomes of all Nodes. It must not keep the Nodes: a fleet
// of them takes hundreds of megabytes.
type Follower interface {
	// Reset forgets all Nodes: they are told anew.
	Reset()
	Seen(node *taints.Node)
	Gone(name string)
	// Synced is called when each Node has been told once.
	Synced()
	// Failed tells of trouble with the API server. It is asked again.
	Failed(err error)
}

// Follow tells the Follower of every Node, page by page, and then of each change,
// until the context ends. It returns an error when the first listing fails. Its name
// limits it to one Node; empty: all.
func (c *Client) Follow(ctx context.Context, f Follower) error {
	isFirst := true
	for {
		f.Reset()
		version, err := c.each(ctx, c.byName(), func(node *taints.Node) error {
			f.Seen(node)
			return nil
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && isFirst:
			return err
		case err == nil:
			isFirst = false
			f.Synced()
			err = c.followFrom(ctx, version, f)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.Failed(err)
		if !pace.Sleep(ctx, followAgain) {
			return ctx.Err()
		}
	}
}

// byName selects the client's Node, or all when it has no name.
func (c *Client) byName() string {
	if c.name == "" {
		return ""
	}
	return fields.OneTermEqualSelector(metav1.ObjectNameField, c.name).String()
}

// followFrom watches from a version on, again and again as the API server ends
// watches after some minutes. It returns an error when the Nodes have to be listed
// anew.
func (c *Client) followFrom(ctx context.Context, version string, f Follower) error {
	for {
		options := metav1.ListOptions{FieldSelector: c.byName(), Watch: true, AllowWatchBookmarks: true, ResourceVersion: version}
		events, err := c.kept.Get().Resource("nodes").VersionedParams(&options, c.codec).Watch(ctx)
		if err != nil {
			return explain("watch", "nodes", c.name, err)
		}
		version, err = follow(events.ResultChan(), version, f)
		events.Stop()
		if err != nil {
			return explain("watch", "nodes", c.name, err)
		}
		if !pace.Sleep(ctx, followAgain) {
			return ctx.Err()
		}
	}
}

// follow tells of one watch and returns the newest version that it has seen.
func follow(events <-chan watch.Event, version string, f Follower) (string, error) {
	for event := range events {
		if event.Type == watch.Error {
			return version, apierrors.FromObject(event.Object)
		}
		node, ok := event.Object.(*corev1.Node)
		if !ok {
			return version, fmt.Errorf("the watch delivered a %T", event.Object)
		}
		version = node.ResourceVersion
		switch event.Type {
		case watch.Added, watch.Modified:
			f.Seen(NodeOf(node))
		case watch.Deleted:
			f.Gone(node.Name)
		}
	}
	if version == "" {
		return "", errors.New("the list of nodes had no version")
	}
	return version, nil
}
