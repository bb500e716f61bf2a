package fleet

import (
	"net"
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
)

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

// addressIn parses the address of an endpoint of a slice. It is not valid if it may
// not be that of another host.
func addressIn(slice *discoveryv1.EndpointSlice, text string) netip.Addr {
	a, err := netip.ParseAddr(text)
	isOfType := slice.AddressType == discoveryv1.AddressTypeIPv4 && a.Is4() || slice.AddressType == discoveryv1.AddressTypeIPv6 && a.Is6() && !a.Is4In6()
	if err != nil || !isOfType || a.Zone() != "" || !a.IsGlobalUnicast() ||
		slices.ContainsFunc(neverAsked, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return netip.Addr{}
	}
	return a
}

// isOwn reports whether an address is one of this host. A UDP socket sends nothing to
// be connected, and gets the same address as its own.
func isOwn(a netip.AddrPort) bool {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(a))
	if err != nil {
		return false // no route leads there
	}
	defer conn.Close() //nolint:errcheck // nothing was sent
	own, ok := conn.LocalAddr().(*net.UDPAddr)
	return ok && own.AddrPort().Addr().Unmap() == a.Addr()
}
