package process

import (
	"context"
	"os/signal"
	"syscall"
	"time"
)

// Pause waits for that time. It returns the context's error if that ends first.
func Pause(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Interruptible returns a context that ends when this program is told to. A second
// Ctrl-C ends the program at once, and the processes that it started end with it.
func Interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
