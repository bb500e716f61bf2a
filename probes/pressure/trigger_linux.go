package pressure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
)

// totalsEvery is how often a trigger reads the totals where the kernel does not
// watch them for us.
const totalsEvery = 500 * time.Millisecond

// Trigger wakes a probe when tasks wait for a resource for long. It decides
// nothing: a wake-up only brings the next sample forward. A probe embeds a
// Trigger for its Wake and Run.
//
// Where it may, the kernel watches for us ("Monitoring for pressure thresholds"
// in Documentation/accounting/psi.rst). Elsewhere the trigger reads the totals
// itself.
type Trigger struct {
	host     probes.Host
	resource string  // memory or io
	share    float64 // of the time, in percent
	wake     chan struct{}
}

// NewTrigger returns a trigger that wakes when some task has waited for the
// resource for share percent of a short time.
func NewTrigger(h probes.Host, resource string, share float64) *Trigger {
	return &Trigger{host: h, resource: resource, share: share, wake: make(chan struct{}, 1)}
}

// Wake returns a channel that yields a value when tasks have waited for long. Several wake-ups that
// were not received become one.
func (t *Trigger) Wake() <-chan struct{} { return t.wake }

// Signal wakes the probe, unless an earlier wake-up is still to be taken.
func (t *Trigger) Signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Run watches until the context ends. It returns at once where there is nothing
// to watch.
func (t *Trigger) Run(ctx context.Context) {
	if _, found, _ := Read(t.host, t.resource); !found {
		return
	}
	if t.letKernelWatch(ctx); ctx.Err() == nil {
		t.watchTotals(ctx)
	}
}

// letKernelWatch arms a trigger in the kernel and waits for it until the context
// ends. It returns before that where the kernel does not watch.
func (t *Trigger) letKernelWatch(ctx context.Context) {
	armed, _, err := arm(pathOf(t.host, t.resource), t.share)
	if err != nil {
		return
	}
	defer unix.Close(armed)           //nolint:errcheck // disarms; nothing was written
	_ = waitFor(ctx, armed, t.Signal) // the totals are watched then
}

// arm opens the file at path and asks the kernel to watch it. A window of 1 s
// needs CAP_SYS_RESOURCE. Without it windows are multiples of 2 s, and the kernel
// checks the trigger only when it updates its averages, every 2 s
// (psi_trigger_create and psi_avgs_work in kernel/sched/psi.c).
func arm(path string, share float64) (armed int, window time.Duration, err error) {
	// Not os.OpenFile: it would hand the file to Go's poller, which would take the
	// event that our own poll waits for.
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, 0, fmt.Errorf("opening %s to write a trigger: %w", path, err)
	}
	var at unix.Statfs_t // the poll of a file that is not on procfs waits for ever
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
	end, stop, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	defer end.Close()                                       //nolint:errcheck // nothing was written
	defer stop.Close()                                      //nolint:errcheck // nothing was written
	defer context.AfterFunc(ctx, func() { stop.Close() })() //nolint:errcheck // nothing was written
	files := []unix.PollFd{{Fd: int32(end.Fd())}, {Fd: int32(armed), Events: unix.POLLPRI}}
	for {
		_, err := unix.Poll(files, -1)
		switch fired := files[1].Revents; {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("waiting for an event: %w", err)
		case files[0].Revents != 0: // the pipe was closed
			return ctx.Err()
		case fired&(unix.POLLERR|unix.POLLNVAL|unix.POLLHUP) != 0:
			return errors.New("the kernel dropped the trigger")
		case fired&unix.POLLPRI != 0:
			signal()
		}
	}
}

// watchTotals does what the kernel does for a trigger: it reads the totals again
// and again, and wakes the probe when they grew by enough. It passes over a read
// that fails, which the probe's next sample will report.
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
				t.Signal()
			}
		}
		last, known, lastAt = now, found, at
	}
}
