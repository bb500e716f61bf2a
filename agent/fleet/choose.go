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

// port is a TCP port of a Service, which has one of these numbers; none: any. It is
// found by its name, or else by its number.
type port struct {
	name    string
	numbers []uint16
}

// endpointsOf returns the endpoints of a slice that are ready and have a Node, at
// that port.
func endpointsOf(slice *discoveryv1.EndpointSlice, at port) []endpoint {
	number := at.of(slice)
	if number == 0 {
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

// of returns the number that the port has in a slice; 0: there is none.
func (at port) of(slice *discoveryv1.EndpointSlice) (number uint16) {
	for _, p := range slice.Ports {
		if p.Port == nil || *p.Port < 1 || *p.Port > 65535 || p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP {
			continue
		}
		found := uint16(*p.Port)
		isAllowed := slices.Contains(at.numbers, found)
		switch {
		case p.Name != nil && *p.Name == at.name && (isAllowed || at.numbers == nil):
			return found
		case isAllowed:
			number = found
		}
	}
	return number
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

const (
	// neighbours is how many peers are of the own zone, where there are few zones: as many
	// as the fleet brake needs to judge a zone (fleetBrake.minPeers).
	neighbours = 5
	// fewZones is the most zones of which that holds. With more zones a single one is too
	// small a part of the fleet to stop anybody, and a host whose zone is cut off must not
	// know mostly hosts of that zone.
	fewZones = 4
)

// choose returns endpoints on most other Nodes, one of each zone in turn, those
// that rank first for the own Node. Where there are few zones, the neighbours come first. One of each Node is enough, and one at each
// address: a writer of slices must not make every agent ask one victim as often as it
// asks a dozen peers.
func choose(own, ownZone string, all []endpoint, most int) []endpoint {
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
	if near := byZone[ownZone]; len(zones) <= fewZones {
		chosen = append(chosen, near[:min(neighbours, most, len(near))]...)
	}
	for turn, near := 0, len(chosen); len(chosen) < min(most, len(nodes)); turn++ {
		for _, zone := range zones {
			if turn < len(byZone[zone]) && (zone != ownZone || turn >= near) && len(chosen) < most {
				chosen = append(chosen, byZone[zone][turn])
			}
		}
	}
	return chosen
}
