package node

import (
	"context"
	"sync/atomic"

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

// Run watches the Node until the context ends, and anew after Restart.
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
