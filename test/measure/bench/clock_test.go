package bench

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// moment is a time on the kernel's monotonic clock, which is the same in all
// processes of a host.
type moment int64

func now() moment {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(fmt.Sprintf("the kernel has no monotonic clock: %v", err)) // clock_gettime(2): it always has
	}
	return moment(t.Nano())
}

func (m moment) since(start moment) time.Duration { return time.Duration(m - start) }
