package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

const (
	takeMemory = "take-memory" // the argument that makes this program its child

	mebibyte = 1 << 20
	chunk    = 64 * mebibyte
	// leastMemory is what must be available: with less, what other programs do
	// to the host's memory would be more than what is done here.
	leastMemory = 2 << 30
	// maxMargin, of the thresholds below what is available at first: much more
	// than what other programs take meanwhile.
	maxMargin = 3 << 30
	// lookEvery is how often the child looks whether it has what it wants.
	lookEvery = 50 * time.Millisecond
)

// memoryPlan has the thresholds, in bytes. The kubelet's is of what the working
// set of the root cgroup leaves, the agent's of MemAvailable: each is as far
// below its own present value as the other.
type memoryPlan struct {
	kubelet uint64
	agent   uint64
	gap     uint64 // how far from both thresholds the approach ends, and the crossing
}

// planMemory sets the kubelet's threshold, with which it is started.
func planMemory() (memoryPlan, error) {
	left, err := workingSetLeaves()
	if err != nil {
		return memoryPlan{}, err
	}
	if left < leastMemory {
		return memoryPlan{}, fmt.Errorf("this host has %s of memory available; it takes %s", mebibytes(left), mebibytes(leastMemory))
	}
	margin := min(left/8, maxMargin)
	return memoryPlan{gap: margin / 12, kubelet: left - margin}, nil
}

// align sets the agent's threshold.
func (p *memoryPlan) align() error {
	left, err := workingSetLeaves()
	if err != nil {
		return err
	}
	available, err := memAvailable()
	if err != nil {
		return err
	}
	p.agent = available + p.kubelet - left
	return nil
}

// look is how far each is above its threshold; below it is negative.
func (p memoryPlan) look() (memoryLook, error) {
	left, err := workingSetLeaves()
	if err != nil {
		return memoryLook{}, err
	}
	available, err := memAvailable()
	if err != nil {
		return memoryLook{}, err
	}
	return memoryLook{agent: int64(available) - int64(p.agent), kubelet: int64(left) - int64(p.kubelet)}, nil
}

type memoryLook struct{ agent, kubelet int64 }

func (l memoryLook) nearest() int64  { return min(l.agent, l.kubelet) }
func (l memoryLook) farthest() int64 { return max(l.agent, l.kubelet) }

// memory is the load that takes memory.
type memory struct {
	stage *stage
	child *child
}

func (m *memory) approach(ctx context.Context) (err error) {
	p := m.stage.memory
	m.child, err = m.stage.startChild(ctx, takeMemory, p.kubelet, p.agent, p.gap)
	return err
}

func (m *memory) cross(ctx context.Context) (crossing, error) { return m.child.cross(ctx) }

func (m *memory) release() error {
	ended := m.child
	m.child = nil
	return ended.end()
}

// memoryChild is the child that takes memory.
func memoryChild(numbers []uint64, stdin <-chan struct{}) error {
	if len(numbers) != 3 {
		return errors.New("the numbers are: the kubelet's threshold, the agent's threshold, gap")
	}
	b := &ballast{plan: memoryPlan{kubelet: numbers[0], agent: numbers[1], gap: numbers[2]}}
	gap := int64(b.plan.gap)
	if err := b.takeUntil(func(l memoryLook) bool { return l.nearest() < gap }); err != nil {
		return err
	}
	fmt.Println(lineReady)
	if goOn, err := b.hold(memoryLook.nearest, gap, stdin); err != nil || !goOn {
		return err
	}
	var c crossing
	err := b.takeUntil(func(l memoryLook) bool {
		if c.own == 0 && l.agent < 0 {
			c.own = now()
		}
		if c.kubelet == 0 && l.kubelet < 0 {
			c.kubelet = now()
		}
		return l.farthest() < -gap
	})
	if err != nil {
		return err
	}
	c.done = now()
	c.print()
	_, err = b.hold(memoryLook.farthest, -gap, stdin)
	return err
}

// ballast is memory that this process holds.
type ballast struct {
	plan   memoryPlan
	chunks [][]byte
}

// takeUntil takes memory until a look says that it is enough.
func (b *ballast) takeUntil(enough func(memoryLook) bool) error {
	for {
		look, err := b.plan.look()
		if err != nil || enough(look) {
			return err
		}
		if err := b.take(); err != nil {
			return err
		}
	}
}

// hold keeps the nearest or the farthest to its threshold about so far from it,
// whatever others take and give back, until a line comes (true) or the input
// ends.
func (b *ballast) hold(which func(memoryLook) int64, distance int64, stdin <-chan struct{}) (goOn bool, err error) {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for {
		select {
		case _, goOn = <-stdin:
			return goOn, nil
		case <-every.C:
		}
		look, err := b.plan.look()
		switch {
		case err != nil:
			return false, err
		case which(look) > distance+chunk:
			err = b.take()
		case which(look) < distance-2*chunk:
			err = b.give()
		}
		if err != nil {
			return false, err
		}
	}
}

// take maps anonymous memory and writes to every page of it, before which the
// kernel gives none. Small pages on purpose: on a virtual machine the first
// touch of huge ones can take several times as long.
func (b *ballast) take() error {
	pages, err := unix.Mmap(-1, 0, chunk, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("take %d bytes of memory: %w", chunk, err)
	}
	for i := 0; i < len(pages); i += unix.Getpagesize() {
		pages[i] = 1
	}
	b.chunks = append(b.chunks, pages)
	return nil
}

func (b *ballast) give() error {
	if len(b.chunks) == 0 {
		return nil
	}
	last := len(b.chunks) - 1
	if err := unix.Munmap(b.chunks[last]); err != nil {
		return fmt.Errorf("give memory back: %w", err)
	}
	b.chunks = b.chunks[:last]
	return nil
}

func memAvailable() (uint64, error) {
	info, err := meminfo()
	if err != nil {
		return 0, err
	}
	return *info.MemAvailableBytes, nil
}

func meminfo() (procfs.Meminfo, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return procfs.Meminfo{}, fmt.Errorf("read this host's memory: %w", err)
	}
	info, err := proc.Meminfo()
	if err != nil {
		return procfs.Meminfo{}, fmt.Errorf("read this host's memory: %w", err)
	}
	if info.MemAvailableBytes == nil || info.MemTotalBytes == nil {
		return procfs.Meminfo{}, errors.New("/proc/meminfo of this host lacks MemAvailable or MemTotal")
	}
	return info, nil
}

func mebibytes(bytes uint64) string { return fmt.Sprintf("%d MiB", bytes/mebibyte) }
