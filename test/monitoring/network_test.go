package monitoring

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints"
)

// scriptedNetwork is the network of a worker. It asks nobody: a test says which classes
// fail, and which conditions all peers have. What that means is the real verdict's and the
// real fleet brake's to say.
type scriptedNetwork struct {
	evaluator *verdict.Evaluator
	cluster   verdict.Cluster
	measures  []probes.Measure

	mu      sync.Mutex
	failing map[verdict.Class]bool
	shared  map[probes.Condition]probes.Level
}

const (
	networkPeriod = 5 * time.Second
	networkPeers  = 6
)

// endpoints is a source of the EndpointSlice of all peers.
type endpoints struct{}

func (endpoints) ListSlices(context.Context, string, string) ([]metav1.PartialObjectMetadata, error) {
	return []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "slice"}}}, nil
}

func (endpoints) GetSlice(context.Context, string, string) (*discoveryv1.EndpointSlice, error) {
	name, port := "metrics", int32(4808)
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}}}
	for i := range networkPeers {
		node := fmt.Sprint("peer-", i+1)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: &node, Addresses: []string{fmt.Sprint("198.51.100.", i+1)}})
	}
	return slice, nil
}

func (endpoints) GetNode(context.Context, string) (*taints.Node, error) { return &taints.Node{}, nil }

func (endpoints) SetEndpoints([]netip.AddrPort) {}

func (endpoints) ObserveWay(bool, bool) {}

func (endpoints) LeaseRenewed(context.Context, string) (time.Time, error) { return time.Time{}, nil }

// reset forgets what was seen, as a new agent does.
func (n *scriptedNetwork) reset() { n.evaluator = verdict.NewEvaluator(networkPeriod, 1) }

// fail makes a class fail, or work again.
func (n *scriptedNetwork) fail(class verdict.Class, fails bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failing[class] = fails
}

// share makes all peers report a level of a condition.
func (n *scriptedNetwork) share(c probes.Condition, level probes.Level) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shared = map[probes.Condition]probes.Level{c: level}
}

// Condition returns NetworkUnavailable.
func (*scriptedNetwork) Condition() probes.Condition { return probes.NetworkUnavailable }

// Wake returns a channel that never yields anything.
func (*scriptedNetwork) Wake() <-chan struct{} { return nil }

// Run does nothing.
func (*scriptedNetwork) Run(context.Context) {}

// Join keeps the fleet, which is told of each round.
func (n *scriptedNetwork) Join(cluster verdict.Cluster) { n.cluster = cluster }

// Observe evaluates one round. This host never suspects itself, so that there is no answer.
func (n *scriptedNetwork) Observe(ctx context.Context) probes.Observation {
	found := n.evaluator.Next(n.round())
	n.measures = found.Measures
	n.cluster.Consult(ctx, &found)
	return found.Observation
}

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
			Answer: &verdict.Answer{Version: verdict.AnswerVersion, Classes: wellThere, Reach: 100, Levels: n.shared},
		})
	}
	return r
}
