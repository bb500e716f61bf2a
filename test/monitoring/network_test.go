package monitoring

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// scriptedNetwork is the network of a worker with four peers. It asks nobody: a test says
// which classes fail. What that means is the real verdict's to say.
type scriptedNetwork struct {
	evaluator *verdict.Evaluator
	measures  []probes.Measure

	mu      sync.Mutex
	failing map[verdict.Class]bool
}

const (
	networkPeriod = 5 * time.Second
	networkPeers  = 4
)

// reset forgets what was seen, as a new agent does.
func (n *scriptedNetwork) reset() { n.evaluator = verdict.NewEvaluator(networkPeriod, 1) }

// fail makes a class fail, or work again.
func (n *scriptedNetwork) fail(class verdict.Class, fails bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failing[class] = fails
}

// Condition returns NetworkUnavailable.
func (*scriptedNetwork) Condition() probes.Condition { return probes.NetworkUnavailable }

// Wake returns a channel that never yields anything.
func (*scriptedNetwork) Wake() <-chan struct{} { return nil }

// WakeMode says that nothing wakes.
func (*scriptedNetwork) WakeMode() string { return "period: a scripted network" }

// Run does nothing.
func (*scriptedNetwork) Run(context.Context) {}

// Observe is ObserveIn without peers to tell.
func (n *scriptedNetwork) Observe(ctx context.Context) probes.Observation {
	o, _ := n.ObserveIn(ctx, verdict.Surroundings{})
	return o
}

// ObserveIn evaluates one round.
func (n *scriptedNetwork) ObserveIn(context.Context, verdict.Surroundings) (probes.Observation, *verdict.Report) {
	r := n.round()
	found := n.evaluator.Next(r)
	n.measures = found.Measures
	own := n.evaluator.Answer()
	return found.Observation, &verdict.Report{Own: own, Classes: r.Known(&own)}
}

// Answered is for a host that suspects itself, which this one never does.
func (*scriptedNetwork) Answered([]verdict.Standing) probes.Observation { return probes.Observation{} }

// Measures appends those of the newest round.
func (n *scriptedNetwork) Measures(all []probes.Measure) []probes.Measure {
	return append(all, n.measures...)
}

// round is one in which all is well but what the test says, and the peers are well.
func (n *scriptedNetwork) round() verdict.Round {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := verdict.Round{At: time.Now(), Results: map[verdict.Class]verdict.Result{}}
	wellThere := map[verdict.Class]bool{}
	for _, class := range verdict.Classes() {
		r.Results[class] = verdict.Result{Outcome: verdict.Well, Detail: "scripted"}
		if n.failing[class] {
			r.Results[class] = verdict.Result{Outcome: verdict.Failed, Detail: "scripted"}
		}
		wellThere[class] = true
	}
	for i := range networkPeers {
		r.Peers = append(r.Peers, verdict.PeerResult{
			Node: fmt.Sprintf("peer-%d", i+1), Reached: true, OtherKnown: true,
			Answer: &verdict.Answer{Version: verdict.AnswerVersion, Classes: wellThere, Reach: 100},
		})
	}
	return r
}
