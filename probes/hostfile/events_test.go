package hostfile

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// connected returns the two ends of a TCP connection: what one sends as urgent, the
// kernel announces at the other like an event of a file of its own.
func connected(t *testing.T) (sender, receiver int) {
	t.Helper()
	open := func() int {
		socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(socket) }) //nolint:errcheck // goes with the process
		return socket
	}
	listener, sender := open(), open()
	loopback := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := errors.Join(unix.Bind(listener, loopback), unix.Listen(listener, 1)); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(listener)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Connect(sender, at); err != nil {
		t.Fatal(err)
	}
	receiver, _, err = unix.Accept4(listener, unix.SOCK_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(receiver) }) //nolint:errcheck // goes with the process
	return sender, receiver
}

// poll waits for an event of one of the files.
func poll(ctx context.Context, descriptors ...int) error {
	var files []unix.PollFd
	for _, descriptor := range descriptors {
		files = append(files, unix.PollFd{Fd: int32(descriptor), Events: unix.POLLPRI})
	}
	return Poll(ctx, files)
}

func TestPoll(t *testing.T) {
	t.Parallel()
	_, quiet := connected(t)
	sender, receiver := connected(t)
	answer := make(chan error, 1)
	go func() { answer <- poll(t.Context(), quiet, receiver) }()
	if err := unix.Send(sender, []byte("no event"), 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Send(sender, []byte("!"), unix.MSG_OOB); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-answer:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the event was missed")
	}
}

func TestPollEndsWithTheContext(t *testing.T) {
	t.Parallel()
	_, quiet := connected(t)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() { answer <- poll(ctx, quiet) }()
	select {
	case err := <-answer:
		t.Fatalf("without an event: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	select {
	case err := <-answer:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
	if err := poll(ctx, quiet); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}
