package node

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/taintlet/taintlet/taints"
)

// Watch is the watch of the Node.
type Watch struct {
	// Versions are those of the Node, nil while there is none.
	Versions chan *taints.Node
	client   Client
	// stop ends the watch that runs.
	stop atomic.Pointer[context.CancelFunc]
}

// NewWatch returns a watch that does not run yet.
func NewWatch(client Client) *Watch {
	return &Watch{Versions: make(chan *taints.Node), client: client}
}

// Restart ends the watch, so that another one begins: a watch sends no version
// that is older than the one which it began with.
func (w *Watch) Restart() {
	if stop := w.stop.Load(); stop != nil {
		(*stop)()
	}
}

// Run watches the Node until the context ends. Restart makes it begin a new watch.
func (w *Watch) Run(ctx context.Context) error {
	for {
		watching, stop := context.WithCancel(ctx)
		w.stop.Store(&stop)
		err := w.client.Watch(watching, w.Versions)
		isRestarted := watching.Err() != nil && ctx.Err() == nil
		stop()
		if !isRestarted {
			return err
		}
	}
}

// IsNewer reports whether version a of a Node is newer than b. A version that cannot be compared
// counts as newer, because the watch is trusted.
func IsNewer(a, b *taints.Node) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err != nil || order > 0
}

// isRestored reports whether an answer of the API server is older than one
// before about the same Node: etcd was restored from a backup. Answers to writes, and to
// the reads between them, are never from a cache.
func isRestored(before, answer *taints.Node) bool {
	if before == nil || answer == nil || before.UID != answer.UID {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(before.ResourceVersion, answer.ResourceVersion)
	return err == nil && order > 0
}
