// Package lock lets processes of this host wait for one another. The kernel gives
// a lock back when the process that has it ends, in whatever way.
package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ErrTaken says that somebody else has the lock.
var ErrTaken = errors.New("locked by another process")

// Take takes the exclusive lock of a folder, or of a file, which it makes where
// it is missing. While somebody else has the lock Take waits, after one call of
// waiting, which may be nil.
func Take(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	// flock(2) cannot be cancelled, so a taken lock is asked for again and again.
	for {
		unlock, err := Try(path)
		if !errors.Is(err, ErrTaken) {
			return unlock, err
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock of %s: %w", path, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Try is Take without the wait: ErrTaken says that somebody else has the lock.
func Try(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if errors.Is(err, syscall.EISDIR) {
		file, err = os.Open(path)
	}
	if err != nil {
		return nil, fmt.Errorf("open what is to be locked: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrTaken
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}
