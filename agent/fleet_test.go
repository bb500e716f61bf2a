package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints"
)

// eightAgents is a source of the EndpointSlice of eight agents. What a real API
// server does is for test/integration.
type eightAgents struct{}

func (eightAgents) ListSlices(context.Context, string, string) ([]metav1.PartialObjectMetadata, error) {
	return []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "slice"}}}, nil
}

func (eightAgents) GetSlice(context.Context, string, string) (*discoveryv1.EndpointSlice, error) {
	name, port := "metrics", int32(4808)
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}}}
	for i := range 8 {
		node := fmt.Sprint("node-", i)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: &node, Addresses: []string{fmt.Sprint("198.51.100.", i)}})
	}
	return slice, nil
}

func (eightAgents) GetNode(context.Context, string) (*taints.Node, error) { return &taints.Node{}, nil }

func (eightAgents) SetEndpoints([]netip.AddrPort) {}

func (eightAgents) ObserveWay(bool, bool) {}

func (eightAgents) LeaseRenewed(context.Context, string) (time.Time, error) {
	return time.Time{}, nil
}

// While a large part of the fleet has the same condition, the agent sets no taint, tells
// its peers that it would, and does not sample in a hurry. When fewer have it, the
// taint follows.
func TestFleetBrake(t *testing.T) {
	synctest.Test(t, testFleetBrake)
}

func testFleetBrake(t *testing.T) {
	f := fleet.New(fleet.Options{
		Node: "node-0", Listen: netip.MustParseAddrPort("[::]:4808"), Namespace: "taintlet-system", Service: "taintlet",
		Source: eightAgents{}, Log: slog.New(slog.DiscardHandler),
	})
	hear := func(bad int) {
		r := &verdict.Round{}
		for i, peer := range f.Surroundings().Peers {
			level := probes.OK
			if i < bad {
				level = probes.Degraded
			}
			r.Peers = append(r.Peers, verdict.PeerResult{Node: peer.Node, Answer: &verdict.Answer{Levels: map[probes.Condition]probes.Level{probes.MemoryPressure: level}}})
		}
		f.Consult(t.Context(), &verdict.Verdict{Round: *r})
	}
	by := map[probes.Condition]*probe{}
	events := &agent.Told{}
	a := &agent.Agent{
		Config: config.Default(), Fleet: f, Recorder: events,
		NewProbe: func(c config.Condition) probes.Probe { return by[c.Name] },
	}
	runInBubble(t, a, by, func(t *testing.T, by map[probes.Condition]*probe, c *client) {
		memory := by[probes.MemoryPressure]
		hear(7)
		memory.set(probes.Degraded)
		time.Sleep(10 * time.Second)
		begin := time.Now()
		for range 10 {
			hear(7)
			time.Sleep(5 * time.Second)
		}
		if c.has(corev1.TaintNodeMemoryPressure) || !strings.Contains(string(f.Page()), `"MemoryPressure":"Degraded"`) {
			t.Errorf("tainted: %t, the peers are told %s", c.has(corev1.TaintNodeMemoryPressure), f.Page())
		}
		if n := len(memory.since(begin)); n < 40 || n > 70 {
			t.Errorf("%d samples in 50 s", n)
		}
		time.Sleep(6 * time.Minute) // no answer is fresh
		if c.has(corev1.TaintNodeMemoryPressure) {
			t.Error("the brake ends when peers fall silent")
		}
		hear(0)
		time.Sleep(10 * time.Second)
		if !c.has(corev1.TaintNodeMemoryPressure) {
			t.Error("no taint although all peers are healthy")
		}
	})
	told := 0
	for _, event := range events.Take() {
		if strings.Contains(event, "TaintBraked") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("%d Events tell of the brake", told)
	}
}

// neighbourly is a probe whose report says that one peer is bad and asks about another.
type neighbourly struct {
	*probe
	cluster  verdict.Cluster
	in       verdict.Surroundings
	answered []verdict.Standing
}

func (n *neighbourly) Join(cluster verdict.Cluster) { n.cluster = cluster }

func (n *neighbourly) Observe(ctx context.Context) probes.Observation {
	n.in = n.cluster.Surroundings()
	bad := verdict.Answer{Version: verdict.AnswerVersion, Levels: map[probes.Condition]probes.Level{probes.PIDPressure: probes.Degraded}}
	n.answered = n.cluster.Consult(ctx, &verdict.Verdict{
		Own: verdict.Answer{Classes: map[verdict.Class]bool{verdict.DNS: false}, Lossy: 7, Reach: 50}, Round: verdict.Round{Peers: []verdict.PeerResult{{Node: "node-1", Answer: &bad}}}, Ask: []string{"node-2"},
	})
	if n.answered == nil {
		return n.probe.Observe(ctx)
	}
	return probes.Observation{Condition: n.condition, Level: probes.Degraded, Certain: true, Reason: "Answered"}
}

// The probe of the network is told who the peers are. Its report reaches the fleet, and
// the answer to what it asks is in the same sample.
func TestReportReachesTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleet.New(fleet.Options{
			Node: "node-0", Listen: netip.MustParseAddrPort("[::]:4808"), Namespace: "taintlet-system", Service: "taintlet",
			Source: eightAgents{}, Log: slog.New(slog.DiscardHandler),
		})
		by := map[probes.Condition]*probe{}
		network := &neighbourly{}
		a := &agent.Agent{
			Config: config.Default(), Fleet: f, Recorder: &agent.Told{},
			NewProbe: func(c config.Condition) probes.Probe {
				if c.Name != probes.NetworkUnavailable {
					return by[c.Name]
				}
				network.probe = by[c.Name]
				return network
			},
		}
		runInBubble(t, a, by, func(t *testing.T, _ map[probes.Condition]*probe, c *client) {
			time.Sleep(11 * time.Second)
			synctest.Wait()
			if len(network.in.Peers) != 7 || network.in.APIServer != "" {
				t.Errorf("surroundings %+v", network.in)
			}
			if len(network.answered) != 1 || !c.has(corev1.TaintNodeNetworkUnavailable) {
				t.Errorf("answered %+v", network.answered)
			}
			if page := string(f.Page()); !strings.Contains(page, `"classes":{"dns":false},"lossy":7,"reach":50`) {
				t.Errorf("the peers are told %s", page)
			}
			if share := f.Peers().Shares[probes.PIDPressure]; share.Asked != 1 || share.Bad != 1 {
				t.Errorf("heard %+v", f.Peers())
			}
		})
	})
}
