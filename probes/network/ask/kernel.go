package ask

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// kernel is asked where it sends packets. It needs no privileges, and no packet is sent.
//
// A table of /proc/net does not tell: the kernel looks through several tables, in the order of its
// rules. The source address of a connected UDP socket does not tell the interface either: hosts
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

// loopback is the index of lo in each network namespace (LOOPBACK_IFINDEX in include/net/flow.h).
const loopback = 1

// errNowhere says that the kernel has no route, or a route that discards packets.
var errNowhere = errors.New("leads nowhere")

// route is what the kernel's tables have for an address.
type route struct {
	// bits is how long its prefix is: 0 is a default route.
	bits byte
	// interfaces are those of its next hops; none: the address is one of this host's.
	interfaces []int
}

// routeTo returns the route that the kernel finds by its rules and metrics for a packet to an
// address. The error wraps errNowhere where there is none, or one of type blackhole,
// unreachable or prohibit, or over lo.
func (k *kernel) routeTo(to netip.Addr) (route, error) {
	// The table's entry has all next hops. It has none where the kernel shows the number of
	// a nexthop object alone (net.ipv4.nexthop_compat_mode), so the packet's own is asked for.
	found, err := k.ask(to, unix.RTM_F_FIB_MATCH)
	if errors.Is(err, errNoInterface) {
		bits := found.bits
		found, err = k.ask(to, 0)
		found.bits = bits
	}
	if err == nil && slices.Equal(found.interfaces, []int{loopback}) {
		err = fmt.Errorf("%w: over lo", errNowhere)
	}
	return found, err
}

func (k *kernel) ask(to netip.Addr, flags uint32) (found route, err error) {
	if err = unix.Sendto(k.fd, routeRequest(to, flags), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err == nil {
		var n int
		if n, _, err = unix.Recvfrom(k.fd, k.buffer, 0); err == nil {
			found, err = parseRoute(k.buffer[:n])
		}
	}
	if err != nil && !errors.Is(err, errNowhere) {
		err = fmt.Errorf("asking the kernel for the route to %s: %w", to, err)
	}
	return found, err
}

// routeRequest is what `ip route get fibmatch` sends (rtnetlink(7)). The kernel answers one such
// request with one message, which is an error where the packet could not be sent.
func routeRequest(to netip.Addr, flags uint32) []byte {
	address, family := to.AsSlice(), byte(unix.AF_INET)
	if to.Is6() {
		family = unix.AF_INET6
	}
	const heads = unix.SizeofNlMsghdr + unix.SizeofRtMsg + unix.SizeofRtAttr
	b, _ := binary.Append(nil, binary.NativeEndian, struct { // it has no field that cannot be written
		unix.NlMsghdr
		unix.RtMsg
		unix.RtAttr
	}{
		unix.NlMsghdr{Len: uint32(heads + len(address)), Type: unix.RTM_GETROUTE, Flags: unix.NLM_F_REQUEST},
		unix.RtMsg{Family: family, Dst_len: byte(8 * len(address)), Flags: flags},
		unix.RtAttr{Len: uint16(unix.SizeofRtAttr + len(address)), Type: unix.RTA_DST},
	})
	return append(b, address...)
}

// errNoInterface says that a route leads somewhere and names no interface.
var errNoInterface = errors.New("its answer names no interface")

// parseRoute reads the kernel's answer.
func parseRoute(answer []byte) (route, error) {
	messages, err := syscall.ParseNetlinkMessage(answer)
	if err != nil || len(messages) != 1 {
		return route{}, fmt.Errorf("its answer is %d messages: %w", len(messages), err)
	}
	m := &messages[0]
	switch {
	case m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4:
		return route{}, refusal(syscall.Errno(-int32(binary.NativeEndian.Uint32(m.Data))))
	case m.Header.Type != unix.RTM_NEWROUTE || len(m.Data) < unix.SizeofRtMsg:
		return route{}, fmt.Errorf("its answer has type %d and %d bytes", m.Header.Type, len(m.Data))
	}
	found := route{bits: m.Data[1]} // rtm_dst_len in struct rtmsg
	switch kind := m.Data[7]; kind {
	case unix.RTN_UNICAST:
	case unix.RTN_LOCAL:
		return found, nil
	default:
		return route{}, fmt.Errorf("%w: a route of type %d", errNowhere, kind) // rtnetlink(7) lists them
	}
	attributes, err := syscall.ParseNetlinkRouteAttr(m)
	if err != nil {
		return route{}, err
	}
	for _, a := range attributes {
		switch {
		case a.Attr.Type == unix.RTA_OIF && len(a.Value) == 4:
			found.interfaces = append(found.interfaces, int(binary.NativeEndian.Uint32(a.Value)))
		case a.Attr.Type == unix.RTA_MULTIPATH:
			found.interfaces = append(found.interfaces, nextHops(a.Value)...)
		}
	}
	if len(found.interfaces) == 0 {
		return found, errNoInterface
	}
	return found, nil
}

// nextHops returns the interfaces of a list of struct rtnexthop (rtnetlink(7)), each of
// which begins with its length.
func nextHops(list []byte) (interfaces []int) {
	for len(list) >= unix.SizeofRtNexthop {
		length := int(binary.NativeEndian.Uint16(list))
		if length < unix.SizeofRtNexthop || length > len(list) {
			break
		}
		interfaces = append(interfaces, int(binary.NativeEndian.Uint32(list[4:])))
		list = list[min(len(list), (length+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1)):]
	}
	return interfaces
}

// refusal returns what an error of the kernel means: no route, or one of type
// unreachable, prohibit or blackhole (EINVAL), or a kernel without IPv6.
func refusal(errno syscall.Errno) error {
	switch errno {
	case unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EACCES, unix.EINVAL, unix.EOPNOTSUPP, unix.EAFNOSUPPORT:
		return fmt.Errorf("%w: %w", errNowhere, errno)
	}
	return errno
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

// readCarrier reads whether an interface has carrier (Documentation/ABI/testing/sysfs-class-net).
// The kernel answers EINVAL for an interface that is down.
func readCarrier(h probes.Host, name string) (bool, error) {
	path := filepath.Join(h.Sys, "class", "net", name, "carrier")
	text, err := hostfile.Read(path)
	switch {
	case errors.Is(err, syscall.EINVAL):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading carrier: %w", err)
	case text != "0\n" && text != "1\n":
		return false, fmt.Errorf("reading carrier: %s holds %s, not 0 or 1", path, hostfile.Excerpt(text))
	}
	return text == "1\n", nil
}
