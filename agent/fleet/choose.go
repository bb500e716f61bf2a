package fleet

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// endpoint is one pod of a Service.
type endpoint struct {
	node, zone string
	address    netip.AddrPort
	// second is that of the other family, where the Node has both; else the zero value.
	second netip.AddrPort
}

// endpointsOf returns the endpoints of a slice that are ready and have a Node, at its port.
func endpointsOf(slice *discoveryv1.EndpointSlice, ports ...uint16) (all []endpoint) {
	number := portOf(slice, ports)
	for _, e := range slice.Endpoints {
		if e.Conditions.Ready != nil && !*e.Conditions.Ready || len(e.Addresses) == 0 || e.NodeName == nil || *e.NodeName == "" {
			continue
		}
		address := addressIn(slice, e.Addresses[0])
		if number == 0 || !address.IsValid() {
			continue
		}
		found := endpoint{node: *e.NodeName, address: netip.AddrPortFrom(address, number)}
		if e.Zone != nil {
			found.zone = *e.Zone
		}
		all = append(all, found)
	}
	return all
}

// portOf returns the TCP port of a slice that has one of these numbers, of none any; 0: there is none.
func portOf(slice *discoveryv1.EndpointSlice, numbers []uint16) uint16 {
	for _, p := range slice.Ports {
		if p.Port == nil || *p.Port < 1 || *p.Port > 65535 || p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP {
			continue
		}
		if found := uint16(*p.Port); len(numbers) == 0 || slices.Contains(numbers, found) {
			return found
		}
	}
	return 0
}

// first returns the most names that rank first for a Node. Each Node has its own order, which looks
// random and stays when other Nodes join or leave (rendezvous hashing).
func first(own string, names []string, most int) []string {
	rank := func(name string) uint64 {
		sum := sha256.Sum256([]byte(own + "\x00" + name))
		return binary.BigEndian.Uint64(sum[:])
	}
	sorted := slices.SortedFunc(slices.Values(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	return sorted[:min(most, len(sorted))]
}

const (
	// neighbours is how many peers are of the own zone, of few zones: fleetBrake.minPeers.
	neighbours = 5
	// fewZones is the largest number of zones for that. With more zones, one zone is too small a
	// part of the fleet to stop a taint, and a host whose zone is cut off must not know mostly
	// hosts of its zone.
	fewZones = 4
)

// choose returns endpoints on at most `most` other Nodes, from each zone in turn, those that rank
// first for the own Node. With few zones, Nodes of the own zone come first. It returns one endpoint
// of each Node and family, and one at each address, so that a writer of slices cannot make every
// agent query one victim as often as a dozen peers.
func choose(own, ownZone string, all []endpoint, most int) (chosen []endpoint) {
	byNode, nodes := othersByNode(own, all)
	turns, zones := map[string]int{}, map[string]int{} // of the Nodes in their zones, and how many are in each
	for _, node := range first(own, nodes, len(nodes)) {
		e := byNode[node]
		chosen = append(chosen, e)
		turns[node] = zones[e.zone]
		zones[e.zone]++
	}
	turn := func(e endpoint) int {
		if len(zones) <= fewZones && e.zone == ownZone && turns[e.node] < neighbours {
			return -1
		}
		return turns[e.node]
	}
	slices.SortStableFunc(chosen, func(a, b endpoint) int { return cmp.Compare(turn(a), turn(b)) })
	return chosen[:min(most, len(chosen))]
}

// othersByNode returns one endpoint of each other Node, with its second address, and the Nodes in order.
func othersByNode(own string, all []endpoint) (byNode map[string]endpoint, nodes []string) {
	byNode = map[string]endpoint{}
	taken := map[netip.Addr]bool{}
	for _, e := range all {
		if e.node == own || taken[e.address.Addr()] {
			continue
		}
		known, found := byNode[e.node]
		switch {
		case !found:
			byNode[e.node] = e
			nodes = append(nodes, e.node)
		case !known.second.IsValid() && known.address.Addr().Is4() != e.address.Addr().Is4():
			known.second = e.address
			byNode[e.node] = known
		default:
			continue
		}
		taken[e.address.Addr()] = true
	}
	return byNode, nodes
}

// neverAsked are networks of which no agent asks an address, even if an EndpointSlice has
// one. Neither does an agent ask loopback, link-local and multicast addresses. A writer of
// slices must not make every Node ask its cloud's metadata, or itself.
var neverAsked = []netip.Prefix{ //nolint:gochecknoglobals // a constant table
	netip.MustParsePrefix("0.0.0.0/8"),          // "this network" (RFC 791)
	netip.MustParsePrefix("240.0.0.0/4"),        // reserved, and broadcast (RFC 1112)
	netip.MustParsePrefix("100.100.100.200/32"), // metadata of Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure's WireServer
	netip.MustParsePrefix("192.0.0.192/32"),     // metadata of Oracle Cloud, classic
	netip.MustParsePrefix("fd00:ec2::254/128"),  // metadata of AWS
	netip.MustParsePrefix("fd20:ce::254/128"),   // metadata of Google Cloud
	netip.MustParsePrefix("64:ff9b::/96"),       // IPv4 addresses behind a translator (RFC 6052)
	netip.MustParsePrefix("2002::/16"),          // IPv4 addresses in IPv6 ones (RFC 3056)
}

// addressIn parses the address of an endpoint. It is not valid if it may not be that of another host.
func addressIn(slice *discoveryv1.EndpointSlice, text string) netip.Addr {
	a, err := netip.ParseAddr(text)
	isOfType := slice.AddressType == discoveryv1.AddressTypeIPv4 && a.Is4() || slice.AddressType == discoveryv1.AddressTypeIPv6 && a.Is6() && !a.Is4In6()
	if err != nil || !isOfType || a.Zone() != "" || !a.IsGlobalUnicast() ||
		slices.ContainsFunc(neverAsked, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return netip.Addr{}
	}
	return a
}

// isOwn reports whether an address is one of this host. Nothing is sent to connect a UDP socket.
func isOwn(a netip.AddrPort) bool {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(a))
	if err != nil {
		return false // no route leads there
	}
	defer conn.Close() //nolint:errcheck // nothing was sent
	own, ok := conn.LocalAddr().(*net.UDPAddr)
	return ok && own.AddrPort().Addr().Unmap() == a.Addr()
}
