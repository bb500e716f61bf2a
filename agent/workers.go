package agent

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// workers are the goroutines of one agent. Each has one owner and ends with the
// context. When a worker ends before that, all others end too.
type workers struct{ group *errgroup.Group }

// newWorkers returns no workers yet, and the context that they are to be given.
func newWorkers(ctx context.Context) (workers, context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	return workers{group}, ctx
}

// start runs a worker until the context ends. A worker that ends before that
// ends the agent, with an error that has its name.
func (w workers) start(ctx context.Context, name string, run func(context.Context) error) {
	w.group.Go(func() error {
		err := run(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			return fmt.Errorf("%s ended", name)
		}
		return fmt.Errorf("%s ended: %w", name, err)
	})
}

// wait waits until all have ended and returns the error of the first that ended
// before the context did.
func (w workers) wait() error { return w.group.Wait() }
