package process

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Usage is what a process has used since its start, and holds now.
type Usage struct {
	CPU                  time.Duration
	RSS, Anonymous       uint64 // bytes
	Threads, Descriptors int
}

// UsageOf reads what a process uses. Its descriptors are seen by root and by the
// user that it runs as.
func UsageOf(pid int) (u Usage, err error) {
	if u.CPU, err = cpuOf(pid); err != nil {
		return u, fmt.Errorf("read what process %d uses: %w", pid, err)
	}
	process, err := procfs.NewProc(pid)
	if err != nil {
		return u, err
	}
	status, err := process.NewStatus()
	if err != nil {
		return u, err
	}
	stat, err := process.Stat()
	if err != nil {
		return u, err
	}
	u.RSS, u.Anonymous, u.Threads = status.VmRSS, status.RssAnon, stat.NumThreads
	u.Descriptors, err = process.FileDescriptorsLen()
	return u, err
}

// cpuOf reads the CPU clock of another process. The kernel counts it in
// nanoseconds and over all threads, those that have ended too. /proc/PID/stat has
// the same in steps of 10 ms, which is too coarse for a process that uses a few
// seconds an hour, and /proc/PID/task/*/schedstat loses what ended threads used.
func cpuOf(pid int) (time.Duration, error) {
	// clock_getcpuclockid(3): the process in the upper bits, inverted; 2 is
	// CPUCLOCK_SCHED, which counts user and system time.
	clock := int32(^pid<<3 | 2) //nolint:gosec // a process ID has 22 bits
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, fmt.Errorf("read the CPU clock: %w", err)
	}
	return time.Duration(t.Nano()), nil
}
