package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// takeMemory is the argument that makes this program the ballast. How many
	// MiB to leave available follows it.
	takeMemory = "take-memory"
	chunk      = 64 * mebibyte
	// lookEvery is how often a ballast that has enough looks whether it still has.
	lookEvery = 200 * time.Millisecond
	// tellEvery is how much is taken between two lines that say so.
	tellEvery = 512 * mebibyte
	// targetReached is in the last line that is said.
	targetReached = "enough"
)

// runBallast takes memory until no more than the target is available on the
// host, and holds it until it is killed. What others give back it takes too.
// It never leaves less than the target.
func runBallast(targetMiB string) int {
	target, err := strconv.ParseUint(targetMiB, 10, 32)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", takeMemory, err)
		return 2
	}
	if err := holdDown(target * mebibyte); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", takeMemory, err)
		return 1
	}
	return 0
}

func holdDown(target uint64) error {
	// If memory ends after all, no other program should pay.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600); err != nil {
		return fmt.Errorf("offer this process to the OOM killer: %w", err)
	}
	var taken, told uint64
	reached := false
	for {
		now, err := readMemory()
		if err != nil {
			return err
		}
		enough := now.available < target+mebibyte
		switch {
		case enough && !reached:
			fmt.Printf("%s taken, %s available: %s\n", bytesText(taken), bytesText(now.available), targetReached)
			reached = true
		case !reached && taken-told >= tellEvery:
			fmt.Printf("%s taken, %s available\n", bytesText(taken), bytesText(now.available))
			told = taken
		}
		if enough {
			time.Sleep(lookEvery) // nothing tells when somebody gives memory back
			continue
		}
		size := min(chunk, now.available-target) / mebibyte * mebibyte
		if err := take(int(size)); err != nil {
			return err
		}
		taken += size
	}
}

// take maps anonymous memory and writes to every page of it, before which the
// kernel gives none. It is never given back.
func take(size int) error {
	pages, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("take %d bytes of memory: %w", size, err)
	}
	for i := 0; i < len(pages); i += os.Getpagesize() {
		pages[i] = 1
	}
	return nil
}
