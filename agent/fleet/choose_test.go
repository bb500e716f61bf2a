package fleet

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// endpointsIn makes endpoints on so many Nodes of each zone.
func endpointsIn(zones map[string]int) []endpoint {
	var all []endpoint
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		for i := range zones[zone] {
			all = append(all, endpoint{node: fmt.Sprint(zone, "-", i), zone: zone})
		}
	}
	return all
}

func nodesOf(chosen []endpoint) []string {
	nodes := make([]string, len(chosen))
	for i, e := range chosen {
		nodes[i] = e.node
	}
	return nodes
}

// Peers are spread over the zones as evenly as these allow, never the own Node and
// never one Node twice.
func TestChooseSpreadsOverZones(t *testing.T) {
	all := endpointsIn(map[string]int{"a": 100, "b": 100, "c": 2})
	all = append(all, all...) // a pod that is being replaced
	chosen := choose("a-1", all, 12)
	perZone, seen := map[string]int{}, map[string]bool{}
	for _, e := range chosen {
		perZone[e.zone]++
		if seen[e.node] || e.node == "a-1" {
			t.Errorf("%s is chosen wrongly", e.node)
		}
		seen[e.node] = true
	}
	if want := map[string]int{"a": 5, "b": 5, "c": 2}; !maps.Equal(perZone, want) {
		t.Errorf("%v, want %v", perZone, want)
	}
	if got := choose("a-0", endpointsIn(map[string]int{"": 4}), 12); len(got) != 4 {
		t.Errorf("%d of 4 other Nodes", len(got))
	}
	if got := choose("x", nil, 12); len(got) != 0 {
		t.Errorf("%v of none", got)
	}
}

// A Node that comes or goes changes at most one peer of each other Node, and every
// Node is asked by about as many as any other.
func TestChooseIsStableAndFair(t *testing.T) {
	const nodes, most = 300, 12
	all := endpointsIn(map[string]int{"": nodes})
	asked := map[string]int{}
	for _, e := range all {
		before := nodesOf(choose(e.node, all, most))
		for _, node := range before {
			asked[node]++
		}
		after := nodesOf(choose(e.node, all[1:], most))
		kept := 0
		for _, node := range before {
			if slices.Contains(after, node) {
				kept++
			}
		}
		if kept < most-1 {
			t.Errorf("%s kept %d of %d peers", e.node, kept, most)
		}
	}
	counts := slices.Collect(maps.Values(asked))
	t.Logf("asked by %d to %d", slices.Min(counts), slices.Max(counts))
	if len(asked) != nodes || slices.Max(counts) > 3*most {
		t.Errorf("%d of %d Nodes are asked, one by %d", len(asked), nodes, slices.Max(counts))
	}
}

// What is not ready, has no Node or no address is no peer.
func TestEndpointsOfASlice(t *testing.T) {
	yes, no, node, zone, name, other := true, false, "n", "z", "metrics", "web"
	number, tcp, udp := int32(4808), corev1.ProtocolTCP, corev1.ProtocolUDP
	ready := func(is *bool) discoveryv1.EndpointConditions { return discoveryv1.EndpointConditions{Ready: is} }
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "s"},
		Ports: []discoveryv1.EndpointPort{
			{Name: &name, Protocol: &udp, Port: &number}, {Name: &other, Port: &number}, {Name: &name, Protocol: &tcp, Port: &number},
		},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"192.0.2.1"}, NodeName: &node, Zone: &zone, Conditions: ready(&yes)},
			{Addresses: []string{"2001:db8::1"}, NodeName: &node}, // not said: ready
			{Addresses: []string{"192.0.2.2"}, NodeName: &node, Conditions: ready(&no)},
			{Addresses: []string{"192.0.2.3"}},
			{NodeName: &node},
			{Addresses: []string{"host.example.com"}, NodeName: &node},
		},
	}
	want := []endpoint{{"n", "z", netip.MustParseAddrPort("192.0.2.1:4808")}, {"n", "", netip.MustParseAddrPort("[2001:db8::1]:4808")}}
	if got := endpointsOf(slice, "metrics"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := endpointsOf(slice, "dns-tcp"); got != nil {
		t.Errorf("%v without a port", got)
	}
}
