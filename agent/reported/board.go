// Package reported takes samples of conditions of this Node that other programs report, such as
// node-problem-detector. It sends no requests: the agent watches its Node in any case.
package reported

import (
	"context"
	"sync"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Board has the newest version of the Node for the probes of its conditions.
type Board struct {
	now func() time.Time

	mu     sync.Mutex
	node   *taints.Node // nil: not seen yet, or there is none
	probes map[string]*probe
}

// NewBoard returns a Board without a Node. now is the clock of the agent.
func NewBoard(now func() time.Time) *Board {
	return &Board{now: now, probes: map[string]*probe{}}
}

// Put takes in a version of the Node, which must not be changed; nil: there is none. It wakes the
// probes of the conditions that differ from the version before.
func (b *Board) Put(node *taints.Node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.node = node
	if node == nil {
		return
	}
	for _, p := range b.probes {
		before := p.seen
		p.seen = before.next(node.Condition(p.Type), b.now())
		if p.seen.saysMoreThan(before) {
			select {
			case p.wake <- struct{}{}:
			default: // it is awake
			}
		}
	}
}

// Probe returns a new probe of a condition, which replaces its earlier probe.
func (b *Board) Probe(o Options) probes.Probe {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &probe{Options: o, board: b, wake: make(chan struct{}, 1)}
	if b.node != nil {
		p.seen = p.seen.next(b.node.Condition(o.Type), b.now())
	}
	b.probes[o.Type] = p
	return p
}

// probe takes samples of one condition.
type probe struct {
	Options
	board *Board
	wake  chan struct{}
	seen  sighting // guarded by the board
}

// Condition is the type of the Node's condition.
func (p *probe) Condition() probes.Condition { return probes.Condition(p.Type) }

// Observe judges the newest version of the Node.
func (p *probe) Observe(context.Context) probes.Observation {
	p.board.mu.Lock()
	defer p.board.mu.Unlock()
	if p.board.node == nil {
		return p.unknown("NodeNotSeen", "the Node has not been seen yet")
	}
	return p.judge(p.seen, p.board.now())
}

// Wake yields a value when the status is another one, or begins to count.
func (p *probe) Wake() <-chan struct{} { return p.wake }

// Run returns at once.
func (*probe) Run(context.Context) {}
