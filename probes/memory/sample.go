package memory

import (
	"time"

	"github.com/taintlet/taintlet/probes/pressure"
)

// sample is what the host's memory was at one time, in bytes.
type sample struct {
	available uint64      // MemAvailable, and arc
	held      uint64      // what is not available, without huge pages: see meminfo.ordinary
	arc       uint64      // what the ZFS cache would give back
	freeSwap  uint64      // free swap outside of memory
	capacity  uint64      // MemTotal without huge pages, and all swap outside of memory
	pods      allocatable // what all pods together may have
	stalls    pressure.Totals
	measured  bool          // the kernel measures pressure
	reclaims  reclaims      // of the host itself
	took      time.Duration // how long reading took
}

// allocatable is what all pods together may have, in bytes. The zero value means that
// there is no limit below the memory of the host, or that it is not visible.
type allocatable struct {
	limit     uint64
	available uint64 // as the kubelet sees it: see readAllocatable
}

// timedSample is a sample and the time at which it was taken.
type timedSample struct {
	sample sample
	at     time.Time
}

// left is what programs can still take before the kernel kills one. Swap does not
// make memory plentiful, but a host that swaps has not run out of it yet.
func (s sample) left() float64 { return float64(s.available) + float64(s.freeSwap) }

// notTaken is left less capacity. It falls as programs take memory. It stays when memory
// is plugged or unplugged, when huge pages are made, when swap is turned on or off, and
// when a balloon lowers MemTotal. Other balloons take memory as programs do.
func (s sample) notTaken() float64 { return s.left() - float64(s.capacity) }

// whole is what programs have and could have, of which percentages are taken.
func (s sample) whole() float64 { return float64(s.available) + float64(s.held) }
