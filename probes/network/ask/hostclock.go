package ask

import (
	"time"

	"golang.org/x/sys/unix"
)

// HostClock returns the time by CLOCK_BOOTTIME, as the decider has it, and for how long
// the host has slept since it was booted.
func HostClock() (at time.Time, slept time.Duration) {
	var boot, awake unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) // neither clock can go away
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake)
	return time.Unix(0, boot.Nano()), time.Duration(boot.Nano() - awake.Nano())
}
