package pressure

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
)

// totalsEvery is how often a trigger reads the total where the kernel does not
// watch it for us.
const totalsEvery = 500 * time.Millisecond

// Trigger wakes a probe when tasks wait for a resource for long. It decides
// nothing: a wake-up only brings the next look forward.
//
// The kernel watches for us where it may ("Monitoring for pressure thresholds"
// in Documentation/accounting/psi.rst). Elsewhere the trigger reads the total
// itself. A probe embeds it for its Wake, WakeMode and Run.
type Trigger struct {
	host     probes.Host
	resource string  // memory, io or cpu
	share    float64 // of the time, in percent
	wake     chan struct{}
	mode     atomic.Pointer[string]
}

// NewTrigger returns a trigger that wakes once some task has waited for the
// resource for share percent of a short time.
func NewTrigger(h probes.Host, resource string, share float64) *Trigger {
	return &Trigger{host: h, resource: resource, share: share, wake: make(chan struct{}, 1)}
}

// Wake yields a value when tasks have waited for long. Wake-ups that nobody
// took are one.
func (t *Trigger) Wake() <-chan struct{} { return t.wake }

// WakeMode says what wakes: "psi trigger, 2 s window", "psi total every 500ms:
// why", or "period: why" where nothing does. Before Run it tries what Run will
// do.
func (t *Trigger) WakeMode() string {
	if mode := t.mode.Load(); mode != nil {
		return *mode
	}
	if mode := t.nothingToWatch(); mode != "" {
		return mode
	}
	armed, window, err := arm(path(t.host, t.resource), t.share)
	if err != nil {
		return totalsMode(err)
	}
	unix.Close(armed) //nolint:errcheck // disarms; nothing was written
	return kernelMode(window)
}

func kernelMode(window time.Duration) string {
	return fmt.Sprintf("psi trigger, %v s window", window.Seconds())
}

func totalsMode(why error) string { return fmt.Sprintf("psi total every %v: %v", totalsEvery, why) }

// nothingToWatch is the mode where there is no pressure to read; empty where
// there is.
func (t *Trigger) nothingToWatch() string {
	_, found, err := Read(t.host, t.resource)
	switch {
	case err != nil:
		return fmt.Sprintf("period: %v", err)
	case !found:
		return fmt.Sprintf("period: no PSI (%s is missing or kept from us)", path(t.host, t.resource))
	}
	return ""
}

// signal wakes the probe, unless it has a wake-up to take already.
func (t *Trigger) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Run watches until the context ends. It returns early where there is nothing
// to watch.
func (t *Trigger) Run(ctx context.Context) {
	if mode := t.nothingToWatch(); mode != "" {
		t.mode.Store(&mode)
		return
	}
	err := t.letKernelWatch(ctx)
	if ctx.Err() == nil {
		mode := totalsMode(err)
		t.mode.Store(&mode)
		t.watchTotals(ctx)
	}
}

// letKernelWatch arms a trigger in the kernel and waits for it. It returns when
// the context ends, or why the kernel does not watch.
func (t *Trigger) letKernelWatch(ctx context.Context) error {
	armed, window, err := arm(path(t.host, t.resource), t.share)
	if err != nil {
		return err
	}
	defer unix.Close(armed) //nolint:errcheck // disarms; nothing was written
	mode := kernelMode(window)
	t.mode.Store(&mode)
	return waitFor(ctx, armed, t.signal)
}

// arm opens the file at path and asks the kernel to watch it. The shorter
// window needs CAP_SYS_RESOURCE; without, windows are multiples of 2 s, and the
// kernel looks only when it updates its averages, every 2 s
// (psi_trigger_create and psi_avgs_work in kernel/sched/psi.c).
func arm(path string, share float64) (armed int, window time.Duration, err error) {
	// Not os.OpenFile: it would hand the file to Go's poller, whose question
	// takes the event that our own poll is to see.
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, 0, fmt.Errorf("opening %s to write a trigger: %w", path, err)
	}
	var at unix.Statfs_t
	if err := unix.Fstatfs(fd, &at); err != nil || at.Type != unix.PROC_SUPER_MAGIC {
		unix.Close(fd) //nolint:errcheck // nothing was written
		return -1, 0, fmt.Errorf("%s does not lie on procfs", path)
	}
	for _, window := range []time.Duration{time.Second, 2 * time.Second} {
		waited := time.Duration(float64(window) * share / 100)
		// The kernel wants the zero byte at the end.
		line := fmt.Sprintf("some %d %d\x00", waited.Microseconds(), window.Microseconds())
		if _, err = unix.Write(fd, []byte(line)); err == nil {
			return fd, window, nil
		}
		if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
			break
		}
	}
	unix.Close(fd) //nolint:errcheck // nothing was written
	return -1, 0, fmt.Errorf("writing a trigger to %s: %w", path, err)
}

// waitFor calls signal each time the armed trigger fires. It returns when the
// context ends, or with the trouble that ended the trigger.
func waitFor(ctx context.Context, armed int, signal func()) error {
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
			<-stopped // the number is not to go to a file that got the same descriptor
		}
		unix.Close(stop) //nolint:errcheck // nobody reads it any more
	}()
	for {
		files := []unix.PollFd{{Fd: int32(armed), Events: unix.POLLPRI}, {Fd: int32(stop), Events: unix.POLLIN}}
		_, err := unix.Poll(files, -1)
		switch fired := files[0].Revents; {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("waiting for a trigger: %w", err)
		case files[1].Revents != 0:
			return ctx.Err()
		case fired&(unix.POLLERR|unix.POLLNVAL|unix.POLLHUP) != 0:
			return errors.New("the kernel dropped the trigger")
		case fired&unix.POLLPRI != 0:
			signal()
		}
	}
}

// watchTotals does what the kernel does with a trigger: it reads the total
// again and again, and wakes the probe when it grew by enough. A read that
// fails is passed over: the probe tells.
func (t *Trigger) watchTotals(ctx context.Context) {
	ticker := time.NewTicker(totalsEvery)
	defer ticker.Stop()
	last, known, _ := Read(t.host, t.resource)
	lastAt := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now, found, _ := Read(t.host, t.resource)
		at := time.Now()
		if found && known {
			if waited, ok := now.Since(last, at.Sub(lastAt)); ok && waited.Some >= t.share {
				t.signal()
			}
		}
		last, known, lastAt = now, found, at
	}
}
