package culprit

import (
	"math/rand/v2"
	"testing"
	"time"
)

// course is one way to take memory or tasks. It returns who did, each of which is right to
// name, and what has to happen when the taint is there. Nobody: no single consumer.
type course struct {
	name   string
	isTask bool
	run    func(t *testing.T, r *rand.Rand, b *bench, amount int) (right []string)
}

// The times that a slow hog takes, in ms.
func slowly(r *rand.Rand) int { return 3000 + r.IntN(4000) }

func courses() []course {
	return []course{
		{"memory, a process that runs, at once", false, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			h := b.pod(r)
			h.tell(t, "grow", amount, 0)
			return []string{h.who}
		}},
		{"memory, a new process, at once", false, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			h := b.pod(r)
			h.tell(t, "child", amount, 0)
			return []string{h.who}
		}},
		{"memory, slowly", false, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			h := b.pod(r)
			h.tell(t, "grow", amount, slowly(r))
			return []string{h.who}
		}},
		{"memory, three processes of a pod, slowly", false, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			h, ms := b.pod(r), slowly(r)
			for range 3 {
				h.tell(t, "child", amount/3, ms)
			}
			return []string{h.who}
		}},
		{"memory, two pods at the same time", false, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			two, ms := b.somePods(r, 2), slowly(r)
			for _, h := range two {
				h.tell(t, "child", amount/2, ms)
			}
			return []string{two[0].who, two[1].who}
		}},
		{"memory, eight pods at the same time", false, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			ms := slowly(r)
			for _, h := range b.somePods(r, 8) {
				h.tell(t, "child", amount/8, ms)
			}
			return nil
		}},
		{"memory, it dies when the taint is there", false, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			h := b.pod(r)
			h.tell(t, "child", amount, 1000)
			b.atTaint = func() { h.tell(t, "drop") }
			return []string{h.who}
		}},
		{"memory, it moves to another control group", false, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			h := b.pod(r)
			h.tell(t, "child", amount, 4000)
			time.Sleep(500 * time.Millisecond) // a part is taken by then, and no threshold is reached
			for _, pid := range h.children(t) {
				moveTo(t, movedUnit, pid)
			}
			return []string{"unit " + movedUnit + " (hog)"}
		}},
		{"memory, a process of the host", false, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			b.ofHost.tell(t, "grow", amount, r.IntN(4000))
			return []string{b.ofHost.who}
		}},
		{"memory, a unit", false, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			h := b.units[r.IntN(len(b.units))]
			h.tell(t, "child", amount, r.IntN(4000))
			return []string{h.who}
		}},
		{"threads, at once", true, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			h := b.pod(r)
			h.tell(t, "threads", amount, 0)
			return []string{h.who}
		}},
		{"threads, slowly", true, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			h := b.pod(r)
			h.tell(t, "threads", amount, slowly(r))
			return []string{h.who}
		}},
		{"threads of two pods", true, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			two, ms := b.somePods(r, 2), slowly(r)
			for _, h := range two {
				h.tell(t, "threads", amount/2, ms)
			}
			return []string{two[0].who, two[1].who}
		}},
		{"threads of eight pods", true, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			ms := slowly(r)
			for _, h := range b.somePods(r, 8) {
				h.tell(t, "threads", amount/8, ms)
			}
			return nil
		}},
		{"processes", true, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			h := b.pod(r)
			h.tell(t, "processes", amount/taskOfProcess, 0)
			return []string{h.who}
		}},
		{"threads of a unit", true, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			h := b.units[r.IntN(len(b.units))]
			h.tell(t, "threads", amount, r.IntN(4000))
			return []string{h.who}
		}},
		{"threads of a process of the host", true, func(t *testing.T, r *rand.Rand, b *bench, amount int) []string {
			b.ofHost.tell(t, "threads", amount, r.IntN(4000))
			return []string{b.ofHost.who}
		}},
	}
}

// taskOfProcess is how many threads a program of Go's has at least when it waits.
const taskOfProcess = 3
