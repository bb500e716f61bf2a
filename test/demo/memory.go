package main

import (
	"fmt"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

const (
	// takeMemory is the argument that makes this program the ballast. How many
	// MiB to leave available follows it.
	takeMemory = "take-memory"
	mebibyte   = 1 << 20
	gibibyte   = 1 << 30
	// leastAvailable is what the demo needs: with less, what other programs do
	// to the host's memory would be more than what the demo does.
	leastAvailable = gibibyte
	// maxMargin is enough on a host that has plenty and is busy.
	maxMargin = 2 * gibibyte
	chunk     = 64 * mebibyte
	// sampleEvery is how often a ballast that has enough checks that it still has.
	sampleEvery = 200 * time.Millisecond
	// targetReached is in the line that the ballast says when it has enough.
	targetReached = "enough"
)

// plan says which amounts of available memory mean what. What lies between
// them is what other programs may take or give back meanwhile:
//
//	now ── 7/8 margin ── clear ── 1/8 margin ── threshold ── 1/2 margin ── target
type plan struct {
	margin    uint64
	clear     uint64 // plentiful again from here on
	threshold uint64 // scarce below
	target    uint64 // what the ballast leaves available
}

// planFor takes an eighth of what is available for a margin, up to maxMargin.
// At least 13/16 are left alone.
func planFor(now process.HostMemory) (plan, error) {
	if now.Available < leastAvailable {
		return plan{}, fmt.Errorf("this host has %s of memory available; the demo needs %s", bytesText(now.Available), bytesText(leastAvailable))
	}
	margin := min(now.Available/8, maxMargin) / mebibyte * mebibyte
	threshold := (now.Available - margin) / mebibyte * mebibyte
	return plan{margin: margin, clear: threshold + margin/8, threshold: threshold, target: threshold - margin/2}, nil
}

// config is the agent's configuration. Only memory has a rule, so that a
// full disk of this host, say, does not become a part of the story.
func (p plan) config() string {
	return fmt.Sprintf(`apiVersion: taintlet.dev/v1alpha1
kind: TaintletConfiguration
memory:
  availablePercent: 0
  availableBytes: %dMi   # %s less than is available now
  debounce: {clearFactor: %.5f, clearAfter: 3s}
rules:
- {condition: DiskPressure, level: Degraded, taint: {effect: None}}
- {condition: PIDPressure, level: Degraded, taint: {effect: None}}
- {condition: NetworkUnavailable, level: Degraded, taint: {effect: None}}
`, p.threshold/mebibyte, bytesText(p.margin), float64(p.clear)/float64(p.threshold))
}

func bytesText(bytes uint64) string {
	if bytes < gibibyte {
		return fmt.Sprintf("%d MiB", bytes/mebibyte)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/gibibyte)
}

// holdDown takes memory until no more than the target is available on the host,
// and holds it until it is killed. What others give back it takes too. It never
// leaves less than the target.
func holdDown(target uint64) error {
	if err := process.OfferToKiller(); err != nil {
		return err
	}
	for taken, reached := uint64(0), false; ; {
		now, err := process.ReadHostMemory()
		if err != nil {
			return err
		}
		if now.Available < target+mebibyte {
			if !reached {
				fmt.Printf("%s taken, %s available: %s\n", bytesText(taken), bytesText(now.Available), targetReached)
				reached = true
			}
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
