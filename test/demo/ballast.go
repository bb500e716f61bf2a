package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

const (
	// takeMemory is the argument that makes this program the ballast. How many
	// MiB to leave available follows it.
	takeMemory = "take-memory"
	chunk      = 64 * mebibyte
	// sampleEvery is how often a ballast that has enough checks that it still has.
	sampleEvery = 200 * time.Millisecond
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
	if err := process.OfferToKiller(); err != nil {
		return err
	}
	var taken, told uint64
	reached := false
	for {
		now, err := process.ReadHostMemory()
		if err != nil {
			return err
		}
		enough := now.Available < target+mebibyte
		switch {
		case enough && !reached:
			fmt.Printf("%s taken, %s available: %s\n", bytesText(taken), bytesText(now.Available), targetReached)
			reached = true
		case !reached && taken-told >= tellEvery:
			fmt.Printf("%s taken, %s available\n", bytesText(taken), bytesText(now.Available))
			told = taken
		}
		if enough {
			time.Sleep(sampleEvery) // nothing tells when somebody gives memory back
			continue
		}
		size := min(chunk, now.Available-target) / mebibyte * mebibyte
		if _, err := process.TakeMemory(int(size)); err != nil { // never given back
			return err
		}
		taken += size
	}
}
