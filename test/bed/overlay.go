package bed

import (
	"fmt"
	"strings"

	"github.com/taintlet/taintlet/test/process"
)

// joinOverlay makes the host's end of the overlay as flannel does: a VXLAN
// device, and for each other host a route, a neighbour and a forwarding entry.
func (h *Host) joinOverlay(all []*Host) error {
	commands := []string{
		fmt.Sprintf("link add flannel.1 address %s type vxlan id 1 dstport 8472 local %s dev eth0 nolearning", overlayMAC(h.Number), h.Address),
		fmt.Sprintf("addr add 10.91.%d.0/32 dev flannel.1", h.Number),
		"link set flannel.1 up",
	}
	commands = append(commands, h.bridgeCommands()...)
	var forwarding []string
	for _, other := range all {
		if other == h {
			continue
		}
		commands = append(commands,
			fmt.Sprintf("neigh replace 10.91.%d.0 lladdr %s dev flannel.1 nud permanent", other.Number, overlayMAC(other.Number)),
			fmt.Sprintf("route replace 10.91.%d.0/24 via 10.91.%d.0 dev flannel.1 onlink", other.Number, other.Number))
		forwarding = append(forwarding, fmt.Sprintf("fdb replace %s dev flannel.1 dst %s", overlayMAC(other.Number), other.Address))
	}
	if err := h.IP(commands...); err != nil {
		return err
	}
	return h.Run(strings.Join(forwarding, "\n")+"\n", "bridge", "-batch", "-")
}

// LeaveOverlay removes the host's end of the overlay, as the end of a network
// daemon may.
func (h *Host) LeaveOverlay() error { return h.IP("link del flannel.1") }

// RejoinOverlay undoes LeaveOverlay.
func (b *Network) RejoinOverlay(h *Host) error {
	return h.joinOverlay(b.Hosts)
}

func overlayMAC(number int) string { return fmt.Sprintf("02:91:00:00:00:%02x", number) }

// bridgeCommands make the bridge to which the host's pods are connected, once.
func (h *Host) bridgeCommands() []string {
	if h.bridged {
		return nil
	}
	h.bridged = true
	return []string{
		"link add cni0 type bridge",
		fmt.Sprintf("addr add 10.91.%d.1/24 dev cni0", h.Number),
		"link set cni0 up",
	}
}

// startDNS starts a DNS server in a pod of this host. It knows the name of the
// Service kubernetes and refuses others, as one that has no upstream.
func (h *Host) startDNS() (err error) {
	if h.pod, err = newSpace(h.Name + "-dns"); err != nil {
		return err
	}
	if err := h.IP(append(h.bridgeCommands(),
		fmt.Sprintf("link add dns0 type veth peer name eth0 netns %d", h.pod.tid),
		"link set dns0 master cni0 up")...); err != nil {
		return err
	}
	if err := h.pod.IP(
		fmt.Sprintf("addr add %s/24 dev eth0", PodAddress(h.Number)),
		"link set eth0 up",
		fmt.Sprintf("route add default via 10.91.%d.1", h.Number),
	); err != nil {
		return err
	}
	return h.StartDNS()
}

// StartDNS starts the server of the pod again, after StopDNS.
func (h *Host) StartDNS() error {
	return h.startServer("--address=/kubernetes.default.svc.cluster.local/10.96.0.1")
}

// StartRefusingDNS is StartDNS for a server that knows no name and refuses all questions.
func (h *Host) StartRefusingDNS() error { return h.startServer() }

func (h *Host) startServer(knows ...string) (err error) {
	h.dns, err = h.pod.Start("dnsmasq", process.Command("dnsmasq", append(knows, "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=",
		"--user=root", "--group=root", "--no-resolv", "--no-hosts", "--bind-interfaces", "--listen-address="+PodAddress(h.Number).String(),
		"--cache-size=0")...), "/dev/null")
	return err
}

// StopDNS ends the server of the pod as a crash does.
func (h *Host) StopDNS() error { return h.dns.Kill() }

// serveServices adds the rules that kube-proxy makes for the Service kube-dns:
// each connection goes to one of the pods, and what a process of the host sends
// through the overlay gets an address that the way back leads to.
func (h *Host) serveServices(dns []*Host) error {
	var to []string
	for i, d := range dns {
		to = append(to, fmt.Sprintf("%d : %s", i, PodAddress(d.Number)))
	}
	choose := fmt.Sprintf("dnat to numgen random mod %d map { %s }", len(dns), strings.Join(to, ", "))
	rules := fmt.Sprintf("ip daddr %[1]s udp dport %[2]d %[3]s\nip daddr %[1]s tcp dport %[2]d %[3]s", DNSService, DNSPort, choose)
	return h.NFT(fmt.Sprintf(`table ip services {
chain prerouting { type nat hook prerouting priority dstnat; policy accept;
%[1]s
}
chain output { type nat hook output priority -100; policy accept;
%[1]s
}
chain postrouting { type nat hook postrouting priority srcnat; policy accept;
oifname "flannel.1" ip saddr != 10.91.0.0/16 masquerade
}
}
`, rules))
}

// DropServices removes the rules of all Services.
func (h *Host) DropServices() error { return h.NFT("delete table ip services") }

// RestoreServices undoes DropServices.
func (b *Network) RestoreServices(h *Host) error { return h.serveServices(b.DNS) }
