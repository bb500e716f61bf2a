package bed

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
)

// Addresses of the bed. The hosts are 10.90.0.11, 10.90.0.12 and so on, their
// pods 10.91.1.0/24, 10.91.2.0/24 and so on.
const (
	// Gateway is the address of the process of the test, in which the API server
	// can listen, to the hosts.
	Gateway = "10.90.0.1"
	// DNSService is the address of the Service kube-dns.
	DNSService = "10.96.0.10"
	// AgentPort is where the agents listen.
	AgentPort = 4808
	// KubeletPort is the second port of a host.
	KubeletPort = 10250
	// DNSPort is where the DNS servers listen, by UDP and TCP.
	DNSPort = 53
)

// Network is a network of hosts.
type Network struct {
	Hosts []*Host
	// DNS are the hosts that have a DNS server in a pod.
	DNS []*Host

	dir string
}

// NewNetwork makes a bed with that many hosts, 8 at most. The first two have a DNS
// server. Close ends it.
func NewNetwork(dir string, hosts int) (*Network, error) {
	b := &Network{dir: dir}
	if err := b.makeAll(hosts); err != nil {
		b.Close()
		return nil, fmt.Errorf("make a network: %w", err)
	}
	return b, nil
}

func (b *Network) makeAll(hosts int) error {
	if err := b.makeUnderlay(); err != nil {
		return err
	}
	resolvConf := filepath.Join(b.dir, "resolv.conf")
	text := "nameserver " + DNSService + "\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n"
	if err := os.WriteFile(resolvConf, []byte(text), 0o644); err != nil { //nolint:gosec // agents are not root
		return err
	}
	for number := 1; number <= hosts; number++ {
		h, err := newHost(number, resolvConf)
		if err != nil {
			return err
		}
		b.Hosts = append(b.Hosts, h)
	}
	b.DNS = b.Hosts[:min(2, hosts)]
	for _, h := range b.DNS {
		if err := h.startDNS(); err != nil {
			return err
		}
	}
	for _, h := range b.Hosts {
		if err := errors.Join(h.joinOverlay(b.Hosts), h.serveServices(b.DNS), h.listenAsKubelet(), h.listenAsProxy()); err != nil {
			return err
		}
	}
	return nil
}

// makeUnderlay makes the bridges to which all hosts are connected, in the
// namespace of the tests. The second one is that of a NIC that nobody needs.
func (b *Network) makeUnderlay() error {
	return outside(
		"link add br0 type bridge",
		"addr add "+Gateway+"/24 dev br0",
		"link set br0 up",
		"link add br1 type bridge",
		"addr add 10.92.0.1/24 dev br1",
		"link set br1 up",
	)
}

// Close ends the bed's processes and namespaces.
func (b *Network) Close() {
	// The kernel removes a namespace, and the other ends of its links, some time after
	// its last process: by then the next bed may want their names.
	for _, h := range b.Hosts {
		_ = outside(fmt.Sprintf("link del up%d", h.Number), fmt.Sprintf("link del second%d", h.Number))
		h.close()
	}
	_ = outside("link del br0", "link del br1")
}

// HostAddress is the address of the host with that number, from 1.
func HostAddress(number int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 90, 0, byte(10 + number)})
}

// PodAddress is the address of the DNS server of the host with that number.
func PodAddress(number int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 91, byte(number), 2})
}
