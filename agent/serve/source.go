package serve

import (
	"net"
	"net/http"
	"net/netip"
)

// hostItself stands for the host as a source, by whichever of its addresses.
var hostItself = netip.IPv6Loopback() //nolint:gochecknoglobals // a constant

// sourceOf returns the remote address of a connection, or hostItself where that is the
// local address too: so the kubelet asks. No other loopback address is treated like
// that, because the host depends on nobody who uses one.
func sourceOf(remote, local net.Addr) netip.Addr {
	source := hostOf(remote)
	if source.IsValid() && source == hostOf(local) {
		return hostItself
	}
	return source
}

// hostOf returns the host of a TCP address; the zero value where it is none.
func hostOf(address net.Addr) netip.Addr {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// sourceOfRequest is sourceOf the request's connection.
func sourceOfRequest(r *http.Request) netip.Addr {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return sourceOf(net.TCPAddrFromAddrPort(from), local)
}
