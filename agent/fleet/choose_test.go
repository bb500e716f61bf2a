package fleet

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
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
			address := netip.AddrFrom4([4]byte{198, 18, byte(len(all) >> 8), byte(len(all))})
			all = append(all, endpoint{node: fmt.Sprint(zone, "-", i), zone: zone, address: netip.AddrPortFrom(address, 4808)})
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
	chosen := choose("a-1", "", all, 12)
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
	if got := choose("a-0", "", endpointsIn(map[string]int{"": 4}), 12); len(got) != 4 {
		t.Errorf("%d of 4 other Nodes", len(got))
	}
	if got := choose("x", "", nil, 12); len(got) != 0 {
		t.Errorf("%v of none", got)
	}
}

// A Node with both families is asked by both, whichever of its slices comes first.
func TestBothFamilies(t *testing.T) {
	both := func(order ...discoveryv1.AddressType) (all []endpoint) {
		for _, family := range order {
			slice := &discoveryv1.EndpointSlice{AddressType: family, Ports: []discoveryv1.EndpointPort{{Port: new(int32(4808))}}}
			for i := range 3 {
				address := map[discoveryv1.AddressType]string{"IPv4": "198.18.0.%d", "IPv6": "2001:db9::%d"}[family]
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: new(fmt.Sprint("node-", i)), Addresses: []string{fmt.Sprintf(address, 1+i)}})
			}
			all = append(all, endpointsOf(slice, 4808)...)
		}
		return all
	}
	for _, order := range [][]discoveryv1.AddressType{{"IPv4", "IPv6"}, {"IPv6", "IPv4"}, {"IPv4", "IPv6", "IPv4"}, {"IPv4", "IPv4"}, {"IPv6"}} {
		f := newFleet(&source{})
		f.agents.read = map[string]slice{"a": {endpoints: both(order...)}}
		f.takePeers()
		families := map[string][2]int{}
		for _, p := range f.Surroundings().Peers {
			count := families[p.Node]
			if p.Address.Addr().Is4() {
				count[0]++
			} else {
				count[1]++
			}
			families[p.Node] = count
		}
		want := [2]int{min(1, strings.Count(fmt.Sprint(order), "IPv4")), min(1, strings.Count(fmt.Sprint(order), "IPv6"))}
		if len(families) != 2 || families["node-1"] != want || families["node-2"] != want || f.Status().Known != 2 {
			t.Errorf("%v: %v, want %v", order, families, want)
		}
	}
}

// Where there are few zones, five peers are of the own one. Where there are more, all zones
// are alike.
func TestChooseTakesNeighbours(t *testing.T) {
	for zones, want := range map[int]int{1: 12, 2: 6, 3: 5, 4: 5, 5: 3, 6: 2} {
		sizes := map[string]int{}
		for zone := range zones {
			sizes[fmt.Sprint("z", zone)] = 50
		}
		perZone, chosen := map[string]int{}, choose("z0-1", "z0", endpointsIn(sizes), 12)
		for _, e := range chosen {
			perZone[e.zone]++
		}
		if got := perZone["z0"]; got > want || got < want-1 || zones <= fewZones && got != want || len(chosen) != 12 || len(perZone) != zones {
			t.Errorf("%d zones: %v, want %d of the own one", zones, perZone, want)
		}
	}
}

// A Node that comes or goes changes at most one peer of each other Node, and every
// Node is asked by about as many as any other.
func TestChooseIsStableAndFair(t *testing.T) {
	const nodes, most = 300, 12
	all := endpointsIn(map[string]int{"": nodes})
	asked := map[string]int{}
	for _, e := range all {
		before := nodesOf(choose(e.node, e.zone, all, most))
		for _, node := range before {
			asked[node]++
		}
		after := nodesOf(choose(e.node, e.zone, all[1:], most))
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
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{
			{Name: &name, Protocol: &udp, Port: &number}, {Name: &other, Port: &number}, {Name: &name, Protocol: &tcp, Port: &number},
		},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"192.0.2.1"}, NodeName: &node, Zone: &zone, Conditions: ready(&yes)},
			{Addresses: []string{"192.0.2.4"}, NodeName: &node}, // not said: ready
			{Addresses: []string{"192.0.2.2"}, NodeName: &node, Conditions: ready(&no)},
			{Addresses: []string{"192.0.2.3"}},
			{NodeName: &node},
			{Addresses: []string{"host.example.com"}, NodeName: &node},
		},
	}
	want := []endpoint{{node: "n", zone: "z", address: netip.MustParseAddrPort("192.0.2.1:4808")}, {node: "n", address: netip.MustParseAddrPort("192.0.2.4:4808")}}
	if got := endpointsOf(slice, 4808); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := endpointsOf(slice, 53, 5353); got != nil {
		t.Errorf("%v without a port", got)
	}
}

// Of what an EndpointSlice says, nothing leads to this host, to the metadata of a
// cloud or to another port, and no address is asked more than once.
func TestForgedSlices(t *testing.T) {
	name, node, number := "metrics", "n", int32(4808)
	slice := func(kind discoveryv1.AddressType, address string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			AddressType: kind, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &number}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}, NodeName: &node}},
		}
	}
	for _, kind := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN, ""} {
		for _, address := range []string{
			"127.0.0.1", "127.1.2.3", "0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.0.1", "224.0.0.1", "239.1.2.3", "255.255.255.255", "240.0.0.1",
			"100.100.100.200", "168.63.129.16", "192.0.0.192", "::", "::1", "fe80::1", "fe80::1%eth0", "2001:db8::1%eth0", "ff02::1", "fd00:ec2::254",
			"fd20:ce::254", "::ffff:127.0.0.1", "::ffff:192.0.2.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "localhost", "192.0.2.1:22", "",
		} {
			if got := endpointsOf(slice(kind, address), 4808); len(got) > 0 {
				t.Errorf("%s %q leads to %v", kind, address, got)
			}
		}
	}
	good := map[discoveryv1.AddressType]string{discoveryv1.AddressTypeIPv4: "192.0.2.1", discoveryv1.AddressTypeIPv6: "2001:db8::1"}
	for kind, address := range good {
		if got := endpointsOf(slice(kind, address), 4808); len(got) != 1 {
			t.Errorf("%s %s leads to %v", kind, address, got)
		}
		for other, elsewhere := range good {
			if got := endpointsOf(slice(kind, elsewhere), 4808); kind != other && len(got) > 0 {
				t.Errorf("%s %s leads to %v", kind, elsewhere, got)
			}
		}
		if got := endpointsOf(slice(kind, address), 22); len(got) > 0 {
			t.Errorf("another port leads to %v", got)
		}
	}
	victim := netip.MustParseAddrPort("192.0.2.1:4808")
	var all []endpoint
	for i := range 100 {
		all = append(all, endpoint{node: fmt.Sprint("n-", i), address: victim})
	}
	if got := choose("own", "", all, MaxPeers); len(got) != 1 {
		t.Errorf("one address is asked %d times", len(got))
	}
}

// Every address of this host is its own, and no other one.
func TestOwnAddresses(t *testing.T) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		own, ok := a.(*net.IPNet)
		if !ok || own.IP.IsLinkLocalUnicast() { // asks for an interface, and is refused before
			continue
		}
		address, _ := netip.AddrFromSlice(own.IP)
		if !isOwn(netip.AddrPortFrom(address.Unmap(), 4808)) {
			t.Errorf("%s is not own", a)
		}
	}
	for _, other := range []string{"203.0.113.1:4808", "[2001:db8::1]:4808"} {
		if isOwn(netip.MustParseAddrPort(other)) {
			t.Errorf("%s is own", other)
		}
	}
}
