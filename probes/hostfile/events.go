package hostfile

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// AwaitEvent waits until the kernel announces an event of one of the open files
// (POLLPRI), or until the context ends, which is an error. Any other error says
// why no event will come.
//
// The descriptors must not be those of an os.File: Go's poller would take the
// event.
func AwaitEvent(ctx context.Context, descriptors ...int) error {
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
	files := []unix.PollFd{{Fd: int32(stop), Events: unix.POLLIN}}
	for _, descriptor := range descriptors {
		files = append(files, unix.PollFd{Fd: int32(descriptor), Events: unix.POLLPRI})
	}
	for {
		_, err := unix.Poll(files, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("waiting for an event: %w", err)
		case files[0].Revents != 0:
			return ctx.Err()
		}
		for _, file := range files[1:] {
			// With its event the kernel announces an error (POLLERR), which is none.
			if file.Revents&unix.POLLPRI != 0 {
				return nil
			}
		}
		return errors.New("the kernel announces no events")
	}
}
