package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints"
)

// source has one slice for each Service, of so many agents, until it fails. What a
// real API server does is for test/integration.
type source struct {
	mu     sync.Mutex
	agents int
	// more slices have the same agents.
	more  int
	err   error
	lists []time.Time
	// dnsLists counts those of the DNS pods. leases by Node, leaseErr instead.
	dnsLists int
	leases   map[string]time.Time
	leaseErr error
	cordoned bool // all Nodes
	// conditions have one more of a Node, by its name.
	conditions map[string]taints.NodeCondition
	// What it is told of the way to it.
	endpoints           []netip.AddrPort
	isBroken, elsewhere bool
}

func (s *source) SetEndpoints(endpoints []netip.AddrPort) { s.endpoints = endpoints }
func (s *source) ObserveWay(isBroken, elsewhere bool)     { s.isBroken, s.elsewhere = isBroken, elsewhere }

func (s *source) ListSlices(_ context.Context, _, selector string) ([]metav1.PartialObjectMetadata, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, service, _ := strings.Cut(selector, "=")
	if service == "taintlet" {
		s.lists = append(s.lists, time.Now())
	}
	if service == "kube-dns" {
		s.dnsLists++
	}
	list := []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: service, ResourceVersion: fmt.Sprint(s.agents)}}}
	for i := range s.more {
		list = append(list, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(service, "-", i), ResourceVersion: fmt.Sprint(s.agents)}})
	}
	return list, s.err
}

func (s *source) GetSlice(_ context.Context, _, name string) (*discoveryv1.EndpointSlice, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	service := strings.TrimRight(name, "-0123456789")
	port, number := map[string]string{"taintlet": "metrics", "kube-dns": "dns-tcp", "kubernetes": "https"}[service], int32(4808)
	if service == "kube-dns" {
		number = 53
	}
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &port, Port: &number}}}
	for i := range s.agents {
		node := fmt.Sprint("node-", i)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: &node, Addresses: []string{fmt.Sprint("198.51.100.", i)}})
	}
	return slice, s.err
}

func (s *source) GetNode(_ context.Context, name string) (*taints.Node, error) {
	return &taints.Node{
		Name: name, IsUnschedulable: s.cordoned,
		Conditions: []taints.NodeCondition{{Type: "Ready", Status: taints.ConditionTrue}, s.conditions[name]},
	}, nil
}

func (s *source) LeaseRenewed(_ context.Context, node string) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[node], s.leaseErr
}

// change makes it so many agents, and an error.
func (s *source) change(agents int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agents, s.err = agents, err
}

// reads is how often the agents were listed.
func (s *source) reads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lists)
}

// withoutLists is a source whose lists get no answer.
type withoutLists struct{ *source }

func (withoutLists) ListSlices(ctx context.Context, _, _ string) ([]metav1.PartialObjectMetadata, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// The endpoints of the API server are known soon after the start, also where the other lists take
// all the time that a reading has.
func TestEndpointsOfTheAPIServerAreReadFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{agents: 3}
		f := newFleet(withoutLists{s})
		runFor(t, f, func() {
			time.Sleep(time.Second)
			if len(s.endpoints) != 3 {
				t.Errorf("the endpoints are %v", s.endpoints)
			}
		})
	})
}

func newFleet(s Source) *Fleet {
	return New(Options{
		Node: "node-0", HostIP: netip.MustParseAddr("198.51.100.0"), Listen: netip.MustParseAddrPort("[::]:4808"),
		Namespace: "taintlet-system", Service: "taintlet", APIServer: "10.0.0.1:443", Source: s, Log: slog.New(slog.DiscardHandler),
	})
}

// runFor runs the fleet for a time in a bubble of synthetic time.
func runFor(t *testing.T, f *Fleet, test func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	synctest.Wait()
	test()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// inFleet runs a fleet of that source in a bubble of synthetic time.
func inFleet(t *testing.T, s *source, test func(*testing.T, *Fleet, *source)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(s)
		runFor(t, f, func() { test(t, f, s) })
	})
}

// The lists are read every 10 min, and sooner while few peers are known: six times
// in the first 31 minutes. What was read stays when the API server fails.
func TestListsAreReadEvery10MinutesAndStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{agents: 20}
		f := newFleet(s)
		if known := f.Peers().Known; known != -1 {
			t.Errorf("%d peers are known before anything was read", known)
		}
		runFor(t, f, func() {
			if unread := f.Status().Unread; unread[agentList] || unread[dnsList] {
				t.Errorf("read, and %v", unread)
			}
			s.change(20, errors.New("no answer"))
			time.Sleep(2 * time.Hour)
			if unread := f.Status().Unread; !unread[agentList] || !unread[dnsList] {
				t.Errorf("not read, and %v", unread)
			}
			if n := s.reads(); n < 11 || n > 14 {
				t.Errorf("read %d times in 2 h", n)
			}
			if len(f.Surroundings().Peers) != MaxPeers || len(f.Surroundings().DNSPods) != maxDNSPods || f.Crowd() != time.Second || f.Peers().Known != MaxPeers {
				t.Errorf("peers %v, DNS pods %v, fleet of %s", f.Surroundings().Peers, f.Surroundings().DNSPods, f.Crowd())
			}
			if got := f.Surroundings().APIServer; got == "10.0.0.1:443" || got == "198.51.100.0:4808" || got == "" {
				t.Errorf("API server %s although this Node has one itself", got)
			}
		})
		s = &source{agents: 1}
		f = newFleet(s)
		runFor(t, f, func() {
			time.Sleep(31 * time.Minute)
			if n := s.reads(); n < 6 || n > 8 {
				t.Errorf("read %d times in 31 min while there is no peer", n)
			}
			if f.Surroundings().APIServer != "10.0.0.1:443" || f.Peers().Known != 0 {
				t.Errorf("API server %s, %d peers", f.Surroundings().APIServer, f.Peers().Known)
			}
		})
	})
}

// The endpoints of the API server are known for the time in which its Service is not reached: the
// own one first, and no more than three others. They are asked on other Nodes only.
func TestEndpointsOfTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &source{agents: 9}
		f := newFleet(told)
		runFor(t, f, func() {
			own := netip.MustParseAddrPort("198.51.100.0:4808")
			asked := f.Surroundings().APIServers
			if len(asked) != maxAPIServers || !slices.Equal(told.endpoints, append([]netip.AddrPort{own}, asked...)) || slices.Contains(asked, own) {
				t.Errorf("asked %v, dialed %v", asked, told.endpoints)
			}
			f.Consult(t.Context(), &verdict.Verdict{Round: verdict.Round{Results: map[verdict.Class]verdict.Result{verdict.Route: {Outcome: verdict.Failed}, verdict.API: {Elsewhere: true}}}})
			if !told.isBroken || !told.elsewhere {
				t.Errorf("broken %t, elsewhere %t", told.isBroken, told.elsewhere)
			}
			f.Consult(t.Context(), &verdict.Verdict{})
			if told.isBroken || told.elsewhere {
				t.Errorf("broken %t, elsewhere %t", told.isBroken, told.elsewhere)
			}
		})
	})
}

// Where no API server runs on the own Node, the configured one is asked.
func TestConfiguredAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(&source{agents: 3})
		f.options.HostIP = netip.MustParseAddr("203.0.113.1")
		runFor(t, f, func() {
			if got := f.Surroundings().APIServer; got != "10.0.0.1:443" {
				t.Errorf("API server %s", got)
			}
		})
	})
}

// An agent that listens on loopback only, or nowhere, has no peers.
func TestNoPeersOnLoopback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, listen := range []string{"127.0.0.1:4808", "[::1]:4808", ""} {
			s := &source{agents: 20}
			f := newFleet(s)
			f.options.Listen, _ = netip.ParseAddrPort(listen)
			f.isRead = !f.hasPeers()
			runFor(t, f, func() {
				if s.reads() > 0 || len(f.Surroundings().Peers) > 0 || f.Surroundings().Self.IsValid() || f.Peers().Known != 0 {
					t.Errorf("%q: %v, self %v", listen, f.Surroundings().Peers, f.Surroundings().Self)
				}
			})
		}
	})
}

func TestSelfAddress(t *testing.T) {
	for listen, want := range map[string]string{"[::]:4808": "198.51.100.0:4808", "0.0.0.0:1": "198.51.100.0:1", "203.0.113.1:2": "203.0.113.1:2"} {
		f := newFleet(&source{})
		f.options.Listen = netip.MustParseAddrPort(listen)
		if got := f.Surroundings().Self.String(); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
}

// roundOf is a round in which the Nodes' agents answered.
func roundOf(answers map[string]verdict.Answer) *verdict.Round {
	r := &verdict.Round{}
	for node, answer := range answers {
		r.Peers = append(r.Peers, verdict.PeerResult{Node: node, Answer: &answer})
	}
	return r
}

// The shares count peers that answered within the last minute, each once, and only
// what they say of conditions that this host has.
func TestShares(t *testing.T) {
	inFleet(t, &source{agents: 20}, func(t *testing.T, f *Fleet, _ *source) {
		f.SetDecided(map[probes.Condition]probes.Level{probes.MemoryPressure: probes.OK}, false, nil)
		answer := func(level probes.Level) verdict.Answer {
			return verdict.Answer{Version: verdict.AnswerVersion, Levels: map[probes.Condition]probes.Level{
				probes.MemoryPressure: level, "Foreign": probes.Degraded,
			}}
		}
		peers := f.Surroundings().Peers
		f.SetNode(&taints.Node{Labels: map[string]string{corev1.LabelTopologyZone: "z"}}, false)
		f.zones[peers[0].Node], f.zones[peers[1].Node], f.zones[peers[2].Node] = "z", "y", "z"
		round := map[string]verdict.Answer{
			peers[0].Node: answer(probes.Degraded), peers[1].Node: answer(probes.Critical), peers[2].Node: answer(probes.OK),
			peers[3].Node: answer(probes.Unknown), "no-peer": answer(probes.Degraded),
		}
		r := roundOf(round)
		r.Peers = append(r.Peers, verdict.PeerResult{Node: peers[4].Node, Carried: true, Answer: &verdict.Answer{}}, verdict.PeerResult{Node: peers[5].Node})
		f.Consult(t.Context(), &verdict.Verdict{Round: *r})
		share := func() decide.Share { return f.Peers().Shares[probes.MemoryPressure] }
		if got := f.Peers(); share() != (decide.Share{Asked: 3, Bad: 2, ZoneAsked: 2, ZoneBad: 1}) || len(got.Shares) != 1 || got.Rounds != 1 {
			t.Errorf("%+v", got)
		}
		if got := f.Status(); got.Known != MaxPeers || got.Answered != 4 {
			t.Errorf("%+v", got)
		}
		time.Sleep(50 * time.Second)
		f.Consult(t.Context(), &verdict.Verdict{Round: *roundOf(map[string]verdict.Answer{peers[0].Node: answer(probes.OK)})}) // the others stay for a minute
		if share() != (decide.Share{Asked: 3, Bad: 1, ZoneAsked: 2}) {
			t.Errorf("%+v after a round that reached one", share())
		}
		time.Sleep(50 * time.Second)
		f.Consult(t.Context(), &verdict.Verdict{Round: *roundOf(nil)})
		if share() != (decide.Share{Asked: 1}) { // the list was read again meanwhile, and names no zones
			t.Errorf("%+v when only one is fresh", share())
		}
		time.Sleep(61 * time.Second)
		if got := f.Peers(); len(got.Shares) != 0 {
			t.Errorf("%+v when no round came for a minute", got)
		}
	})
}

// A level that is bad, or would be but for the brake, is trouble. One that cannot
// be told is none.
func TestIsTroubled(t *testing.T) {
	t.Parallel()
	for level, want := range map[probes.Level]bool{probes.OK: false, probes.Unknown: false, probes.Degraded: true, probes.Critical: true} {
		f := Alone()
		f.SetDecided(map[probes.Condition]probes.Level{probes.MemoryPressure: level, probes.PIDPressure: probes.OK}, false, nil)
		if f.Surroundings().Troubled != want {
			t.Errorf("%s: %t", level, !want)
		}
	}
}

// The page says what both the probe and the decider told, each without the other.
func TestPage(t *testing.T) {
	f := Alone()
	if got, want := string(f.Page()), `{"version":1,"lossy":-1,"reach":-1}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	f.Consult(t.Context(), &verdict.Verdict{Own: verdict.Answer{Classes: map[verdict.Class]bool{verdict.DNS: true, verdict.Pods: false}, Lossy: 3, Reach: 92}})
	f.SetDecided(map[probes.Condition]probes.Level{probes.MemoryPressure: probes.Degraded}, false, nil)
	if got, want := string(f.Page()), `{"version":1,"classes":{"dns":true,"pods":false},"lossy":3,"reach":92,"levels":{"MemoryPressure":"Degraded"}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestStandingOf(t *testing.T) {
	ready := taints.NodeCondition{Type: "Ready", Status: taints.ConditionTrue}
	drained := taints.NodeCondition{Type: "DrainInProgress", Status: taints.ConditionTrue}
	says := func(status taints.ConditionStatus, reason string) []taints.NodeCondition {
		return []taints.NodeCondition{ready, {Type: "HostNetworkUnavailable", Status: status, Reason: reason}}
	}
	for name, c := range map[string]struct {
		node              taints.Node
		excused, suspects bool
	}{
		"well":                 {taints.Node{Conditions: says("False", "DefaultRouteUp")}, false, false},
		"no agent":             {taints.Node{Conditions: []taints.NodeCondition{ready}}, false, false},
		"suspects":             {taints.Node{Conditions: says("Unknown", "PeersUnreachable")}, false, true},
		"many suspect":         {taints.Node{Conditions: says("Unknown", "ManySuspect")}, false, true},
		"braked":               {taints.Node{Conditions: says("Unknown", "FleetBrake")}, false, true},
		"cannot tell":          {taints.Node{Conditions: says("Unknown", "ReadFailed")}, false, false},
		"degraded":             {taints.Node{Conditions: says("True", "NoCarrier")}, false, true},
		"never reported":       {taints.Node{}, true, false},
		"not ready":            {taints.Node{Conditions: []taints.NodeCondition{{Type: "Ready", Status: "Unknown"}}}, true, false},
		"cordoned":             {taints.Node{IsUnschedulable: true, Conditions: says("False", "")}, true, false},
		"cordoned, suspects":   {taints.Node{IsUnschedulable: true, Conditions: says("Unknown", "PeersUnreachable")}, false, true},
		"maintained":           {taints.Node{Conditions: append(says("False", ""), drained)}, true, false},
		"maintained, suspects": {taints.Node{Conditions: append(says("Unknown", "PeersUnreachable"), drained)}, false, true},
		"being deleted":        {taints.Node{IsDeleted: true, Conditions: says("False", "")}, true, false},
		"being scaled down":    {taints.Node{Taints: []taints.Taint{{Key: "ToBeDeletedByClusterAutoscaler"}}, Conditions: says("True", "")}, true, true},
		"being rebooted":       {taints.Node{Taints: []taints.Taint{{Key: "karpenter.sh/rebooting"}}, Conditions: says("True", "")}, true, true},
	} {
		if got := standingOf(&c.node, []string{"DrainInProgress"}); (got.Excuse != "") != c.excused || got.Suspects != c.suspects {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A Node whose agent is no endpoint any more is excused; an error is no answer.
func TestStandingsReadTheAgentsAgain(t *testing.T) {
	inFleet(t, &source{agents: 20}, func(t *testing.T, f *Fleet, s *source) {
		time.Sleep(time.Minute)
		s.change(5, nil)
		got, err := f.Standings(t.Context(), []string{"node-1", "node-9"}, nil)
		if err != nil || len(got) != 2 || got[0].Excuse != "" || got[1].Excuse != "has no ready agent" {
			t.Errorf("%+v, %v", got, err)
		}
		time.Sleep(time.Minute)
		s.change(5, errors.New("no answer"))
		if got, err := f.Standings(t.Context(), []string{"node-1"}, nil); err == nil || got != nil {
			t.Errorf("%+v without an answer", got)
		}
	})
}
