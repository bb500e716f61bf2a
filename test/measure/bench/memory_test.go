package bench

import (
	"errors"
	"fmt"
	"time"

	"github.com/taintlet/taintlet/test/process"
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
	// sampleEvery is how often the child samples what is available.
	sampleEvery = 50 * time.Millisecond
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
	now, err := process.ReadHostMemory()
	if err != nil {
		return err
	}
	p.agent = now.Available + p.kubelet - left
	return nil
}

// sample is how far each is above its threshold; below it is negative.
func (p memoryPlan) sample() (memorySample, error) {
	left, err := workingSetLeaves()
	if err != nil {
		return memorySample{}, err
	}
	now, err := process.ReadHostMemory()
	if err != nil {
		return memorySample{}, err
	}
	return memorySample{agent: int64(now.Available) - int64(p.agent), kubelet: int64(left) - int64(p.kubelet)}, nil
}

type memorySample struct{ agent, kubelet int64 }

func (s memorySample) nearest() int64  { return min(s.agent, s.kubelet) }
func (s memorySample) farthest() int64 { return max(s.agent, s.kubelet) }

// memoryChild is the child that takes memory.
func memoryChild(numbers []uint64, stdin <-chan struct{}) error {
	if len(numbers) != 3 {
		return errors.New("the numbers are: the kubelet's threshold, the agent's threshold, gap")
	}
	h := &holder{plan: memoryPlan{kubelet: numbers[0], agent: numbers[1], gap: numbers[2]}}
	gap := int64(h.plan.gap)
	if err := h.takeUntil(func(s memorySample) bool { return s.nearest() < gap }); err != nil {
		return err
	}
	fmt.Println(lineReady)
	if goOn, err := h.hold(memorySample.nearest, gap, stdin); err != nil || !goOn {
		return err
	}
	var c crossing
	err := h.takeUntil(func(s memorySample) bool {
		if c.own == 0 && s.agent < 0 {
			c.own = now()
		}
		if c.kubelet == 0 && s.kubelet < 0 {
			c.kubelet = now()
		}
		return s.farthest() < -gap
	})
	if err != nil {
		return err
	}
	c.done = now()
	c.print()
	_, err = h.hold(memorySample.farthest, -gap, stdin)
	return err
}

// holder holds memory.
type holder struct {
	plan   memoryPlan
	chunks [][]byte
}

// takeUntil takes memory until a sample says that it is enough.
func (h *holder) takeUntil(enough func(memorySample) bool) error {
	for {
		now, err := h.plan.sample()
		if err != nil || enough(now) {
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
func (h *holder) hold(which func(memorySample) int64, distance int64, stdin <-chan struct{}) (goOn bool, err error) {
	every := time.NewTicker(sampleEvery)
	defer every.Stop()
	for {
		select {
		case _, goOn = <-stdin:
			return goOn, nil
		case <-every.C:
		}
		now, err := h.plan.sample()
		switch {
		case err != nil:
			return false, err
		case which(now) > distance+chunk:
			err = h.take()
		case which(now) < distance-2*chunk:
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
	pages, err := process.TakeMemory(chunk)
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
	if err := process.GiveMemory(h.chunks[last]); err != nil {
		return err
	}
	h.chunks = h.chunks[:last]
	return nil
}

func mebibytes(bytes uint64) string { return fmt.Sprintf("%d MiB", bytes/mebibyte) }
