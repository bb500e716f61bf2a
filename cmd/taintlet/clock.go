package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/agent/decide"
)

// bootClock returns the host's boot and a clock that counts from it. The clock
// begins at the wall time of now and goes on by CLOCK_BOOTTIME, which counts
// suspended time too (clock_gettime(2)): steps of the wall clock do not move it.
func bootClock(procfs string) (decide.Boot, func() time.Time, error) {
	path := filepath.Join(procfs, "sys/kernel/random/boot_id")
	id, err := os.ReadFile(path)
	if err != nil {
		// A fixture of procfs has none; the process's own is as good.
		if id, err = os.ReadFile("/proc/sys/kernel/random/boot_id"); err != nil {
			return decide.Boot{}, nil, fmt.Errorf("boot ID: %w", err)
		}
	}
	up, err := sinceBoot()
	if err != nil {
		return decide.Boot{}, nil, err
	}
	boot := decide.Boot{ID: strings.TrimSpace(string(id)), At: time.Now().Round(0).Add(-up)}
	now := func() time.Time {
		up, err := sinceBoot()
		if err != nil {
			panic(err) // it worked at the start, and the clock cannot go away
		}
		return boot.At.Add(up)
	}
	return boot, now, nil
}

func sinceBoot() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, fmt.Errorf("CLOCK_BOOTTIME: %w", err)
	}
	return time.Duration(t.Nano()), nil
}
