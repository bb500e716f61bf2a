package hostfile

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Poll waits as poll(2) does until one of the files has something to tell, which
// is then in its Revents. When the context ends, it returns the context's error.
func Poll(ctx context.Context, files []unix.PollFd) error {
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("making an eventfd: %w", err)
	}
	stopped := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		defer close(stopped)
		unix.Write(stop, []byte{1, 0, 0, 0, 0, 0, 0, 0}) //nolint:errcheck // it has room for the number
	})
	defer func() {
		if !forget() {
			<-stopped // else the number could go to a file that got the same descriptor
		}
		unix.Close(stop) //nolint:errcheck // nobody reads it any more
	}()
	all := append([]unix.PollFd{{Fd: int32(stop), Events: unix.POLLIN}}, files...)
	for {
		_, err := unix.Poll(all, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("waiting for an event: %w", err)
		case all[0].Revents != 0:
			return ctx.Err()
		}
		copy(files, all[1:])
		return nil
	}
}

// IsOnProcfs reports whether an open file lies on procfs. The poll of any other file
// waits for ever.
func IsOnProcfs(descriptor int) bool {
	var at unix.Statfs_t
	return unix.Fstatfs(descriptor, &at) == nil && at.Type == unix.PROC_SUPER_MAGIC
}
