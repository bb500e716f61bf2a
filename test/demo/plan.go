package main

import (
	"fmt"

	"github.com/prometheus/procfs"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
	// leastAvailable is what the demo needs: with less, what other programs do
	// to the host's memory would be more than what the demo does.
	leastAvailable = gibibyte
	// maxMargin is as much as is ever asked of a host that has plenty.
	maxMargin = gibibyte
)

// memory is what /proc/meminfo says, in bytes.
type memory struct {
	available uint64
	anon      uint64 // what programs hold that has no file behind it
}

func readMemory() (memory, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return memory{}, fmt.Errorf("read this host's memory: %w", err)
	}
	info, err := proc.Meminfo()
	if err != nil {
		return memory{}, fmt.Errorf("read this host's memory: %w", err)
	}
	if info.MemAvailableBytes == nil || info.AnonPagesBytes == nil {
		return memory{}, fmt.Errorf("/proc/meminfo of this host lacks MemAvailable or AnonPages")
	}
	return memory{*info.MemAvailableBytes, *info.AnonPagesBytes}, nil
}

// plan says which amounts of available memory mean what. Three margins lie
// between them, so that other programs may take and give some meanwhile:
//
//	now ── margin ── threshold ── margin ── target
//
// In between now and threshold, a quarter of the margin above the threshold,
// memory counts as plentiful again.
type plan struct {
	margin    uint64
	threshold uint64 // the agent's
	clear     float64
	target    uint64 // what the ballast leaves available
}

// planFor takes an eighth of what is available for a margin, up to maxMargin:
// three quarters or more are left alone.
func planFor(now memory) (plan, error) {
	if now.available < leastAvailable {
		return plan{}, fmt.Errorf("this host has %s of memory available; the demo needs %s", bytesText(now.available), bytesText(leastAvailable))
	}
	margin := min(now.available/8, maxMargin) / mebibyte * mebibyte
	threshold := (now.available - margin) / mebibyte * mebibyte
	return plan{
		margin:    margin,
		threshold: threshold,
		clear:     1 + float64(margin)/4/float64(threshold),
		target:    threshold - margin,
	}, nil
}

// config is the agent's configuration. It has the one rule for memory, so that
// a full disk of this host, say, does not become a part of the story.
func (p plan) config() string {
	return fmt.Sprintf(`apiVersion: taintlet.dev/v1alpha1
kind: TaintletConfiguration
memory:
  availablePercent: 0
  availableBytes: %dMi   # %s less than is available now
  clearFactor: %.4f
  debounce: {clearAfter: 3s}
rules:
- {condition: MemoryPressure, level: Degraded, taint: {key: node.kubernetes.io/memory-pressure, effect: NoSchedule}}
`, p.threshold/mebibyte, bytesText(p.margin), p.clear)
}

func bytesText(bytes uint64) string {
	if bytes < gibibyte {
		return fmt.Sprintf("%d MiB", bytes/mebibyte)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/gibibyte)
}
