package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ErrLocked says that somebody else has the lock.
var ErrLocked = errors.New("locked by another process")

// Lock takes the exclusive lock of a folder, or of a file, which it makes where
// it is missing. While somebody else has the lock Lock waits, after one call of
// waiting, which may be nil.
func Lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	// flock(2) cannot be cancelled, so a taken lock is asked for again and again.
	for {
		unlock, err := TryLock(path)
		if !errors.Is(err, ErrLocked) {
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

// TryLock is Lock without the wait: ErrLocked says that somebody else has the lock.
func TryLock(path string) (unlock func(), err error) {
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
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}
