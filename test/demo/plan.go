package main

import (
	"fmt"

	"github.com/taintlet/taintlet/test/process"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
	// leastAvailable is what the demo needs: with less, what other programs do
	// to the host's memory would be more than what the demo does.
	leastAvailable = gibibyte
	// maxMargin is enough on a host that has plenty and is busy.
	maxMargin = 2 * gibibyte
)

// plan says which amounts of available memory mean what. What lies between
// them is what other programs may take or give back meanwhile:
//
//	now ── 7/8 margin ── clear ── 1/8 margin ── threshold ── 1/2 margin ── target
type plan struct {
	margin      uint64
	clear       uint64 // plentiful again from here on
	threshold   uint64 // scarce below
	target      uint64 // what the ballast leaves available
	clearFactor float64
}

// planFor takes an eighth of what is available for a margin, up to maxMargin.
// At least 13/16 are left alone.
func planFor(now process.HostMemory) (plan, error) {
	if now.Available < leastAvailable {
		return plan{}, fmt.Errorf("this host has %s of memory available; the demo needs %s", bytesText(now.Available), bytesText(leastAvailable))
	}
	margin := min(now.Available/8, maxMargin) / mebibyte * mebibyte
	threshold := (now.Available - margin) / mebibyte * mebibyte
	clear := threshold + margin/8
	return plan{
		margin:      margin,
		clear:       clear,
		threshold:   threshold,
		target:      threshold - margin/2,
		clearFactor: float64(clear) / float64(threshold),
	}, nil
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
`, p.threshold/mebibyte, bytesText(p.margin), p.clearFactor)
}

// othersTook is what to add when the host does not recover: that other
// programs have taken the memory that the ballast gave back, if they have.
func (p plan) othersTook() string {
	now, err := process.ReadHostMemory()
	if err != nil || now.Available >= p.clear {
		return ""
	}
	return fmt.Sprintf("; other programs have taken the memory: %s are available, it takes %s to recover", bytesText(now.Available), bytesText(p.clear))
}

func bytesText(bytes uint64) string {
	if bytes < gibibyte {
		return fmt.Sprintf("%d MiB", bytes/mebibyte)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/gibibyte)
}
