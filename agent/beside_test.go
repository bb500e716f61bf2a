package agent_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// beside is a client whose Node others write too.
type beside struct {
	*client
	versions chan *taints.Node
}

func (b *beside) Watch(ctx context.Context, nodes chan<- *taints.Node) error {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case node := <-b.versions:
				nodes <- node
			}
		}
	}()
	return b.client.Watch(ctx, nodes)
}

// write is another writer's version of the Node.
func (b *beside) write(change func(*taints.Node)) {
	b.mu.Lock()
	node := b.node.Clone()
	b.mu.Unlock()
	version, err := strconv.Atoi(node.ResourceVersion)
	if err != nil {
		panic(err)
	}
	node.ResourceVersion = strconv.Itoa(version + 1)
	change(node)
	b.versions <- node
}

// runBeside is runEvicting with a client that others write beside.
func runBeside(t *testing.T, s *leases, test func(t *testing.T, by map[probes.Condition]*probe, b *beside)) {
	t.Helper()
	b := &beside{}
	runEvictingOn(t, b, s, func(*config.Config) {}, func(t *testing.T, by map[probes.Condition]*probe, _ *client) { test(t, by, b) })
}

// While the slot is not certain everything but NoExecute is written, and the
// Event that announces it comes when it is.
func TestUncertainSlotHoldsUpNothingElse(t *testing.T) {
	s := &leases{free: true}
	runEvicting(t, s, func(t *testing.T, memory *probe, c *client) {
		memory.set(probes.Critical)
		time.Sleep(50 * time.Second)
		c.setRefuse(errors.New("503 Service Unavailable"))
		time.Sleep(20 * time.Second) // decided, and not written
		s.set(func(s *leases) { s.err = errors.New("503 Service Unavailable") })
		time.Sleep(6 * time.Minute)
		c.setRefuse(nil)
		before := c.count()
		time.Sleep(time.Hour)
		if c.count() == before || c.carries(evict()) {
			t.Errorf("%d writes, NoExecute %t, while the slot was uncertain", c.count()-before, c.carries(evict()))
		}
		c.mu.Lock()
		c.evicted = false // only tried so far
		c.mu.Unlock()
		s.set(func(s *leases) { s.err = nil })
		time.Sleep(4 * time.Minute)
		c.mu.Lock()
		first := c.announcedFirst
		c.mu.Unlock()
		if !c.carries(evict()) || !first {
			t.Errorf("NoExecute %t, announced before it %t", c.carries(evict()), first)
		}
	})
}

// An API server that answered that it cannot is asked again when its watch shows
// that it is back, and not only when the pause is over.
func TestSignOfLifeShortensThePause(t *testing.T) {
	runBeside(t, &leases{}, func(t *testing.T, by map[probes.Condition]*probe, b *beside) {
		for range 10 {
			b.setRefuse(apierrors.NewServiceUnavailable("overloaded"))
			by[probes.PIDPressure].set(probes.Degraded)
			time.Sleep(10 * time.Minute)                    // pauses are 8 to 12 s now
			for before := b.count(); b.count() == before; { // one try has just failed
				time.Sleep(10 * time.Millisecond)
			}
			b.setRefuse(nil)
			b.write(func(*taints.Node) {})
			time.Sleep(2300 * time.Millisecond)
			if !b.has(corev1.TaintNodePIDPressure) {
				t.Error("the writer sleeps on although the watch shows that the API server is back")
			}
			by[probes.PIDPressure].set(probes.OK)
			time.Sleep(3 * time.Hour)
		}
	})
}

// A change that a writer was about to try again, or to join with others, is not
// written any more once the Node is a newer release's.
func TestNothingIsWrittenOnceTheNodeIsAnothers(t *testing.T) {
	runBeside(t, &leases{}, func(t *testing.T, by map[probes.Condition]*probe, b *beside) {
		by[probes.PIDPressure].set(probes.Degraded)
		time.Sleep(time.Minute)
		b.setRefuse(apierrors.NewServiceUnavailable("overloaded"))
		by[probes.MemoryPressure].set(probes.Degraded)
		time.Sleep(time.Minute) // it is tried again and again
		b.write(func(node *taints.Node) { node.Annotations[taints.RecordAnnotation] = `{"version":9}` })
		time.Sleep(time.Millisecond)
		before := b.count()
		time.Sleep(4 * time.Minute)
		if after := b.count(); after != before {
			t.Errorf("%d more tries", after-before)
		}
	})
}

// What was decided while nobody answered is not written with an evidence from before: the way to
// the API server may have been the trouble. The next sample decides.
func TestNothingOfASilenceIsWritten(t *testing.T) {
	for name, lasts := range map[string]bool{"it is over": false, "it goes on": true} {
		t.Run(name, func(t *testing.T) {
			runBeside(t, &leases{}, func(t *testing.T, by map[probes.Condition]*probe, b *beside) {
				taken := func() int { return len(by[probes.PIDPressure].since(time.Time{})) }
				b.setRefuse(errors.New("connect: network is unreachable"))
				by[probes.PIDPressure].set(probes.Degraded)
				time.Sleep(3 * time.Minute)
				before := taken()
				for taken() == before { // so that the next one is a period away
					time.Sleep(time.Millisecond)
				}
				b.setRefuse(nil)
				if !lasts {
					by[probes.PIDPressure].set(probes.OK) // which the next sample finds
				}
				time.Sleep(3 * time.Second)
				if b.has(corev1.TaintNodePIDPressure) && taken() == before+1 {
					t.Error("the taint is there before a sample")
				}
				time.Sleep(30 * time.Second)
				if has := b.has(corev1.TaintNodePIDPressure); has != lasts {
					t.Errorf("the taint is there: %t", has)
				}
			})
		})
	}
}
