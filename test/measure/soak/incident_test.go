package soak

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// mostTime is how long an incident may take: far above what it needs. client-go
// notices a connection that has fallen silent after 45 s.
const mostTime = 3 * time.Minute

// incident is something that befalls the agent so many times a day. To play it
// begins it, waits for what the agent does, ends it and waits again.
type incident struct {
	kind   string
	perDay float64
	play   func(context.Context) error
	// felt is for how long the agent may feel it: longer than the incident itself.
	felt time.Duration
}

// await waits until it holds for the watched Node.
func (w *week) await(ctx context.Context, what string, holds func(*corev1.Node) bool) error {
	if _, err := w.cluster.WaitNode(ctx, watchedNode, holds); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// hasOwn says whether the Node has any taint of taintlet's.
func hasOwn(node *corev1.Node) bool {
	for _, t := range node.Spec.Taints {
		if isOwn(t) {
			return true
		}
	}
	return false
}

func (w *week) awaitTaint(ctx context.Context) error {
	return w.await(ctx, "a taint of taintlet's", hasOwn)
}

func (w *week) awaitWell(ctx context.Context) error {
	return w.await(ctx, "no taint of taintlet's", cluster.Not(hasOwn))
}

// sickness makes the host bad until the taint is there, and well until it is gone.
func (w *week) sickness(ctx context.Context, bad, well, meanwhile func() error) error {
	err := bad()
	if err == nil {
		err = w.awaitTaint(ctx)
	}
	if err == nil && meanwhile != nil {
		err = meanwhile()
	}
	if healed := well(); err == nil {
		err = healed
	}
	if err != nil {
		return err
	}
	return w.awaitWell(ctx)
}

func (w *week) node(ctx context.Context) (*corev1.Node, error) {
	return w.cluster.Client().CoreV1().Nodes().Get(ctx, watchedNode, metav1.GetOptions{})
}

// patch changes the Node as its administrator does, and asks again where the API
// server is away.
func (w *week) patch(ctx context.Context, kind types.PatchType, body string) error {
	return eventually(ctx, func() error {
		_, err := w.cluster.Client().CoreV1().Nodes().Patch(ctx, watchedNode, kind, []byte(body), metav1.PatchOptions{FieldManager: "soak"})
		return err
	})
}

// eventually asks until the answer is no error.
func eventually(ctx context.Context, holds func() error) error {
	for {
		err := holds()
		if err == nil {
			return nil
		}
		if waited := process.Pause(ctx, 100*time.Millisecond); waited != nil {
			return fmt.Errorf("%w; at last: %w", waited, err)
		}
	}
}
