package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/taintlet/taintlet/test/ballast"
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
	now, err := ballast.ReadMemory()
	if err != nil {
		return err
	}
	p.agent = now.Available + p.kubelet - left
	return nil
}

// look is how far each is above its threshold; below it is negative.
func (p memoryPlan) look() (memoryLook, error) {
	left, err := workingSetLeaves()
	if err != nil {
		return memoryLook{}, err
	}
	now, err := ballast.ReadMemory()
	if err != nil {
		return memoryLook{}, err
	}
	return memoryLook{agent: int64(now.Available) - int64(p.agent), kubelet: int64(left) - int64(p.kubelet)}, nil
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
	h := &holder{plan: memoryPlan{kubelet: numbers[0], agent: numbers[1], gap: numbers[2]}}
	gap := int64(h.plan.gap)
	if err := h.takeUntil(func(l memoryLook) bool { return l.nearest() < gap }); err != nil {
		return err
	}
	fmt.Println(lineReady)
	if goOn, err := h.hold(memoryLook.nearest, gap, stdin); err != nil || !goOn {
		return err
	}
	var c crossing
	err := h.takeUntil(func(l memoryLook) bool {
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
	_, err = h.hold(memoryLook.farthest, -gap, stdin)
	return err
}

// holder holds memory.
type holder struct {
	plan   memoryPlan
	chunks [][]byte
}

// takeUntil takes memory until a look says that it is enough.
func (h *holder) takeUntil(enough func(memoryLook) bool) error {
	for {
		look, err := h.plan.look()
		if err != nil || enough(look) {
			return err
		}
		if err := h.take(); err != nil {
			return err
		}
	}
}

// hold keeps the nearest or the farthest to its threshold about so far from it,
// whatever others take and give back, until a line comes (true) or the input
// ends.
func (h *holder) hold(which func(memoryLook) int64, distance int64, stdin <-chan struct{}) (goOn bool, err error) {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for {
		select {
		case _, goOn = <-stdin:
			return goOn, nil
		case <-every.C:
		}
		look, err := h.plan.look()
		switch {
		case err != nil:
			return false, err
		case which(look) > distance+chunk:
			err = h.take()
		case which(look) < distance-2*chunk:
			err = h.give()
		}
		if err != nil {
			return false, err
		}
	}
}

// take takes one chunk. Small ones on purpose: on a virtual machine the first
// touch of huge pages can take several times as long.
func (h *holder) take() error {
	pages, err := ballast.Take(chunk)
	if err != nil {
		return err
	}
	h.chunks = append(h.chunks, pages)
	return nil
}

func (h *holder) give() error {
	if len(h.chunks) == 0 {
		return nil
	}
	last := len(h.chunks) - 1
	if err := ballast.Give(h.chunks[last]); err != nil {
		return err
	}
	h.chunks = h.chunks[:last]
	return nil
}

func mebibytes(bytes uint64) string { return fmt.Sprintf("%d MiB", bytes/mebibyte) }
