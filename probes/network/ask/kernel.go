package ask

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// kernel is asked where it sends packets. It needs no privileges, and no packet
// is sent.
//
// A table of /proc/net does not tell: the kernel looks through several tables,
// in the order of its rules, and takes one of several next hops. The source
// address of a connected UDP socket does not tell the interface either: hosts
// that speak BGP keep their address on lo or on a dummy interface.
type kernel struct {
	fd     int
	buffer []byte // for answers
}

func openKernel() (*kernel, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("asking the kernel for routes: %w", err)
	}
	return &kernel{fd, make([]byte, 4096)}, nil
}

func (k *kernel) close() { _ = unix.Close(k.fd) }

// loopback is the index of lo in each network namespace (LOOPBACK_IFINDEX in
// include/net/flow.h).
const loopback = 1

// errNowhere says that the kernel has no route, or one that leads nowhere.
var errNowhere = errors.New("leads nowhere")

// interfaceTo returns the interface by which a packet to an address leaves now;
// empty: the address is one of this host's. The error wraps errNowhere where
// there is no route, or one of type blackhole, unreachable or prohibit.
func (k *kernel) interfaceTo(to netip.Addr) (string, error) {
	if err := unix.Sendto(k.fd, routeRequest(to), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return "", fmt.Errorf("asking the kernel for the route to %s: %w", to, err)
	}
	n, _, err := unix.Recvfrom(k.fd, k.buffer, 0)
	if err != nil {
		return "", fmt.Errorf("asking the kernel for the route to %s: %w", to, err)
	}
	index, err := parseRoute(k.buffer[:n])
	switch {
	case err != nil || index == 0:
		return "", err
	case index == loopback:
		return "", fmt.Errorf("%w: over lo", errNowhere)
	}
	return k.name(index)
}

// routeRequest is what `ip route get` sends: struct nlmsghdr, struct rtmsg and
// the attribute RTA_DST (rtnetlink(7)). The kernel answers one such request with
// one message, which is an error where the packet could not be sent.
func routeRequest(to netip.Addr) []byte {
	address := to.AsSlice()
	family := byte(unix.AF_INET)
	if to.Is6() {
		family = unix.AF_INET6
	}
	b := make([]byte, unix.SizeofNlMsghdr+unix.SizeofRtMsg+unix.SizeofRtAttr, 64)
	b[16], b[17] = family, byte(8*len(address))
	binary.NativeEndian.PutUint16(b[28:], uint16(unix.SizeofRtAttr+len(address)))
	binary.NativeEndian.PutUint16(b[30:], unix.RTA_DST)
	b = append(b, address...)
	binary.NativeEndian.PutUint32(b[0:], uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], unix.RTM_GETROUTE)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	return b
}

// parseRoute returns the index of the interface that the kernel's answer names;
// 0: the address is the host's own.
func parseRoute(answer []byte) (index int, err error) {
	messages, err := syscall.ParseNetlinkMessage(answer)
	if err != nil || len(messages) != 1 {
		return 0, fmt.Errorf("the kernel's answer about a route is %d messages: %w", len(messages), err)
	}
	m := &messages[0]
	switch {
	case m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4:
		return 0, refusal(syscall.Errno(-int32(binary.NativeEndian.Uint32(m.Data))))
	case m.Header.Type != unix.RTM_NEWROUTE || len(m.Data) < unix.SizeofRtMsg:
		return 0, fmt.Errorf("the kernel's answer about a route has type %d and %d bytes", m.Header.Type, len(m.Data))
	}
	switch kind := m.Data[7]; kind { // rtm_type in struct rtmsg
	case unix.RTN_UNICAST:
	case unix.RTN_LOCAL:
		return 0, nil
	default:
		return 0, fmt.Errorf("%w: a route of type %d", errNowhere, kind) // rtnetlink(7) lists them
	}
	attributes, err := syscall.ParseNetlinkRouteAttr(m)
	if err != nil {
		return 0, fmt.Errorf("the kernel's answer about a route: %w", err)
	}
	for _, a := range attributes {
		if a.Attr.Type == unix.RTA_OIF && len(a.Value) == 4 {
			return int(binary.NativeEndian.Uint32(a.Value)), nil
		}
	}
	return 0, errors.New("the kernel's answer about a route names no interface")
}

// refusal returns what an error of the kernel means: no route, or one of type
// unreachable, prohibit or blackhole (EINVAL), or a kernel without IPv6.
func refusal(errno syscall.Errno) error {
	switch errno {
	case unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EACCES, unix.EINVAL, unix.EOPNOTSUPP, unix.EAFNOSUPPORT:
		return fmt.Errorf("%w: %w", errNowhere, errno)
	}
	return fmt.Errorf("the kernel's answer about a route: %w", errno)
}

// name returns the name of an interface. Package net would list all interfaces
// to find it, and a node has one for each pod.
func (k *kernel) name(index int) (string, error) {
	request, err := unix.NewIfreq("")
	if err != nil {
		return "", err
	}
	request.SetUint32(uint32(index))
	if err := unix.IoctlIfreq(k.fd, unix.SIOCGIFNAME, request); err != nil {
		return "", fmt.Errorf("asking the kernel for the name of interface %d: %w", index, err)
	}
	return request.Name(), nil
}

// readCarrier reads whether an interface has carrier
// (Documentation/ABI/testing/sysfs-class-net). The kernel answers EINVAL for an
// interface that is down.
func readCarrier(h probes.Host, name string) (bool, error) {
	path := filepath.Join(h.Sys, "class", "net", name, "carrier")
	text, err := hostfile.Read(path)
	switch {
	case errors.Is(err, syscall.EINVAL):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading carrier: %w", err)
	case text == "1\n":
		return true, nil
	case text == "0\n":
		return false, nil
	}
	return false, fmt.Errorf("reading carrier: %s holds %s, not 0 or 1", path, hostfile.Excerpt(text))
}
