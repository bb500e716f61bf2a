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

// An agent on standby leaves the slot, which both hold in the Node's name, to
// the active one: it neither renews it nor takes it anew.
func TestStandbyLeavesTheSlotAlone(t *testing.T) {
	s := &leases{free: true}
	runBeside(t, s, func(t *testing.T, by map[probes.Condition]*probe, b *beside) {
		by[probes.MemoryPressure].set(probes.Critical)
		time.Sleep(70 * time.Second)
		if !b.carries(evict()) {
			t.Fatal("no eviction")
		}
		b.write(func(node *taints.Node) {
			node.Annotations[taints.RecordAnnotation] = `{"version":1,"revision":100,"boot":"boot","at":0,"instance":{"name":"newer","term":7,"startedAt":1},"conditions":{}}`
		})
		time.Sleep(time.Second)
		before := s.seen()
		s.set(func(s *leases) { s.holding = false }) // the other one has released it
		time.Sleep(10 * time.Minute)
		if after := s.seen(); after.holding || len(after.acquired)+len(after.renewed)+len(after.released) > len(before.acquired)+len(before.renewed)+len(before.released) {
			t.Errorf("the slot: before %+v, after %+v", before, after)
		}
	})
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
			time.Sleep(1300 * time.Millisecond)
			if !b.has(corev1.TaintNodePIDPressure) {
				t.Error("the writer sleeps on although the watch shows that the API server is back")
			}
			by[probes.PIDPressure].set(probes.OK)
			time.Sleep(3 * time.Hour)
		}
	})
}

// A change that a writer was about to try again, or to join with others, is not
// written any more once the Node is another agent's.
func TestNothingIsWrittenOnceTheNodeIsAnothers(t *testing.T) {
	for name, record := range map[string]string{
		"a newer instance": `{"version":1,"revision":100,"boot":"boot","at":0,"instance":{"name":"newer","term":7,"startedAt":1},"conditions":{}}`,
		"a newer release":  `{"version":9}`,
	} {
		t.Run(name, func(t *testing.T) {
			runBeside(t, &leases{}, func(t *testing.T, by map[probes.Condition]*probe, b *beside) {
				by[probes.PIDPressure].set(probes.Degraded)
				time.Sleep(time.Minute)
				b.setRefuse(apierrors.NewServiceUnavailable("overloaded"))
				by[probes.MemoryPressure].set(probes.Degraded)
				time.Sleep(time.Minute) // it is tried again and again
				b.write(func(node *taints.Node) { node.Annotations[taints.RecordAnnotation] = record })
				time.Sleep(time.Millisecond)
				before := b.count()
				time.Sleep(4 * time.Minute) // not as long as an agent waits for the other one
				if after := b.count(); after != before {
					t.Errorf("%d more tries", after-before)
				}
			})
		})
	}
}
