package fleet

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// endpoint is one pod of a Service.
type endpoint struct {
	node, zone string
	address    netip.AddrPort
}

// endpointsOf returns the endpoints of a slice that are ready and have a Node, at
// the port of that name, if that is one of those allowed.
func endpointsOf(slice *discoveryv1.EndpointSlice, port string, allowed []uint16) []endpoint {
	number := portOf(slice, port)
	if number == 0 || !slices.Contains(allowed, number) {
		return nil
	}
	var all []endpoint
	for _, e := range slice.Endpoints {
		if e.Conditions.Ready != nil && !*e.Conditions.Ready || len(e.Addresses) == 0 || e.NodeName == nil || *e.NodeName == "" {
			continue
		}
		address := addressIn(slice, e.Addresses[0])
		if !address.IsValid() {
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

// portOf returns the number of a slice's TCP port of that name; 0: there is none.
func portOf(slice *discoveryv1.EndpointSlice, name string) uint16 {
	for _, p := range slice.Ports {
		if p.Port == nil || p.Name == nil || *p.Name != name || p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP {
			continue
		}
		if n := *p.Port; n > 0 && n <= 65535 {
			return uint16(n)
		}
	}
	return 0
}

// rank orders things of a name for one Node. Each Node has an order of its own
// that looks random and stays when others come and go (rendezvous hashing).
func rank(own, name string) uint64 {
	sum := sha256.Sum256([]byte(own + "\x00" + name))
	return binary.BigEndian.Uint64(sum[:])
}

// first returns the most names that rank first for a Node.
func first(own string, names []string, most int) []string {
	sorted := slices.SortedFunc(slices.Values(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(own, a), rank(own, b)), cmp.Compare(a, b))
	})
	return sorted[:min(most, len(sorted))]
}

// choose returns endpoints on most other Nodes, one of each zone in turn, those
// that rank first for the own Node. One of each Node is enough, and one at each
// address: whoever writes slices must not have every agent ask one victim as often as
// it asks a dozen peers.
func choose(own string, all []endpoint, most int) []endpoint {
	byNode, taken := map[string]endpoint{}, map[netip.Addr]bool{}
	var nodes []string
	for _, e := range all {
		if _, found := byNode[e.node]; !found && e.node != own && !taken[e.address.Addr()] {
			byNode[e.node], taken[e.address.Addr()] = e, true
			nodes = append(nodes, e.node)
		}
	}
	byZone := map[string][]endpoint{}
	var zones []string // in the order of their first
	for _, node := range first(own, nodes, len(nodes)) {
		e := byNode[node]
		if byZone[e.zone] == nil {
			zones = append(zones, e.zone)
		}
		byZone[e.zone] = append(byZone[e.zone], e)
	}
	var chosen []endpoint
	for turn := 0; len(chosen) < min(most, len(nodes)); turn++ {
		for _, zone := range zones {
			if turn < len(byZone[zone]) && len(chosen) < most {
				chosen = append(chosen, byZone[zone][turn])
			}
		}
	}
	return chosen
}
