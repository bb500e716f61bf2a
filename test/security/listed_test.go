package security

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/bed/fleet"
)

// TestListedPacketsOnly has agents read EndpointSlices that somebody forged who may
// write them where the agents or the DNS pods are. Whatever the slices say, no agent
// sends a packet to an address and port that docs/network.md does not list.
//
// An agent reads three slices of a Service, one of them the real one, so it is
// started anew for each two.
func TestListedPacketsOnly(t *testing.T) {
	s := fleet.Require(t)
	agents := s.Start(t, listing, "")
	for _, a := range agents {
		giveIPv6(t, a.Host)
	}
	for _, wave := range []struct {
		name   string
		slices []*discoveryv1.EndpointSlice
	}{
		{"addresses", slices.Concat(forged("names", discoveryv1.AddressTypeFQDN, hostNames(), right), forged("ipv4", discoveryv1.AddressTypeIPv4, foreignIPv4(), right))},
		{"ports", slices.Concat(forged("ports", discoveryv1.AddressTypeIPv4, hostAddresses(), wrong), forged("ipv6", discoveryv1.AddressTypeIPv6, foreignIPv6(), right))},
	} {
		t.Run(wave.name, func(t *testing.T) {
			forge(t, s, wave.slices)
			var captures []*capture
			for _, a := range agents {
				if err := a.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				captures = append(captures, newCapture(t, a.Host))
				a.Run()
			}
			for _, a := range agents {
				a.WaitReady()
			}
			fleet.WaitSamples(t, agents, 3)
			for i, a := range agents {
				wantRead(t, s, a, wave.slices)
				captures[i].check(t, listed(t, s, a.Host))
				rounds, err := a.Samples()
				if err != nil {
					t.Fatal(err)
				}
				// One round may be under way. A victim is asked once in each, and 10250 is tried too.
				if asked := captures[i].askedVictim(t); asked > rounds+1 {
					t.Errorf("%s connected %d times to one address that %d endpoints have, in %d rounds", a.Name, asked, crowd, rounds)
				}
			}
		})
	}
}

// Ports of forged slices: those at which agents and DNS pods may be, and others.
type ports map[string][]int32

var (
	right = ports{bed.Namespace: {bed.AgentPort}, metav1.NamespaceSystem: {bed.DNSPort}}
	wrong = ports{bed.Namespace: {22, 443, 2379, 10257, 10259}, metav1.NamespaceSystem: {22, 2379, 8080, 9153}}
)

const (
	// listing is how many agents read the slices.
	listing = 3
	// crowd is how many endpoints have the victim's address, that of a second NIC.
	crowd        = 100
	victimNumber = listing
)

func victim() string { return second(victimNumber) }

// second is the address of a host's second NIC.
func second(number int) string { return fmt.Sprintf("10.92.0.%d", 10+number) }

// hostNames are addresses that are none: the API server takes anything for the name of
// a host that looks like one.
func hostNames() []string {
	return []string{"127.0.0.1", "169.254.169.254", "169.254.1.1", "224.0.0.1", "0.0.0.0", "255.255.255.255", "localhost.localdomain", "kubernetes.default.svc.cluster.local", bed.Gateway}
}

// foreignIPv4 are addresses that the API server stores, at which no peer is: metadata
// of clouds, reserved and multicast ones, and the hosts' own.
func foreignIPv4() []string {
	all := []string{"100.100.100.200", "168.63.129.16", "192.0.0.192", "240.0.0.1", "0.1.2.3", "239.1.2.3"}
	for number := 1; number <= listing; number++ {
		all = append(all, second(number), fmt.Sprintf("10.91.%d.1", number))
	}
	return append(all, slices.Repeat([]string{victim()}, crowd)...)
}

// foreignIPv6 are the same for IPv6, and the hosts' own, which giveIPv6 gave.
func foreignIPv6() []string {
	all := []string{"fd00:ec2::254", "fd20:ce::254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"}
	for number := 1; number <= listing; number++ {
		all = append(all, ipv6Of(number))
	}
	return all
}

// hostAddresses are those of hosts and of the API server.
func hostAddresses() []string {
	all := []string{bed.Gateway}
	for number := 1; number <= listing; number++ {
		all = append(all, bed.HostAddress(number).String(), bed.PodAddress(number).String())
	}
	return all
}

func ipv6Of(number int) string { return fmt.Sprintf("fd92::%d", 10+number) }

// giveIPv6 gives a host an IPv6 address and a default route, for the length of the
// test: without them nothing could be sent over IPv6.
func giveIPv6(t *testing.T, h *bed.Host) {
	t.Helper()
	address := ipv6Of(h.Number) + "/64"
	if err := h.IP("addr add "+address+" dev eth1 nodad", "route add ::/0 via fd92::1 dev eth1"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.IP("route del ::/0 via fd92::1 dev eth1", "addr del "+address+" dev eth1"); err != nil {
			t.Error(err)
		}
	})
}

// forged are two slices, as if they were of the agents and of the DNS pods.
func forged(name string, kind discoveryv1.AddressType, addresses []string, at ports) []*discoveryv1.EndpointSlice {
	var all []*discoveryv1.EndpointSlice
	for namespace, labels := range map[string]map[string]string{
		bed.Namespace:          {discoveryv1.LabelServiceName: "taintlet"},
		metav1.NamespaceSystem: {discoveryv1.LabelServiceName: "kube-dns", "k8s-app": "kube-dns"},
	} {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: "forged-" + name, Namespace: namespace, Labels: labels},
			AddressType: kind,
		}
		ready := true
		for i, address := range addresses {
			node := fmt.Sprintf("%s-%d", name, i)
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
		}
		portNames := []string{map[string]string{bed.Namespace: "metrics", metav1.NamespaceSystem: "dns-tcp"}[namespace], "b", "c", "d", "e"}
		for i, number := range at[namespace] {
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &portNames[i], Port: &number})
		}
		all = append(all, slice)
	}
	return all
}

// forge creates slices for the length of a test.
func forge(t *testing.T, s *fleet.Scene, all []*discoveryv1.EndpointSlice) {
	t.Helper()
	for _, slice := range all {
		client := s.Cluster.Client().DiscoveryV1().EndpointSlices(slice.Namespace)
		if _, err := client.Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := client.Delete(context.Background(), slice.Name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// wantRead fails unless the agent has read all of these slices, by the audit log.
func wantRead(t *testing.T, s *fleet.Scene, a *fleet.Agent, all []*discoveryv1.EndpointSlice) {
	t.Helper()
	requests, err := s.Cluster.Requests(":" + bed.Account)
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]bool{}
	for _, r := range requests {
		if r.Verb == "get" && r.Resource() == "endpointslices" && slices.Contains(r.User.Extra[bed.NodeNameExtra], a.Name) {
			read[r.ObjectRef.Namespace+"/"+r.ObjectRef.Name] = true
		}
	}
	for _, slice := range all {
		if name := slice.Namespace + "/" + slice.Name; !read[name] {
			t.Errorf("%s has not read the slice %s, but %v", a.Name, name, read)
		}
	}
}

// destination is where an agent sent a packet.
type destination struct {
	address  netip.Addr
	protocol string
	port     int
}

func (d destination) String() string {
	return fmt.Sprintf("%s %s port %d", d.protocol, d.address, d.port)
}

const dnsPod = "a DNS pod"

// listed are the destinations of docs/network.md, for the agent of a host.
func listed(t *testing.T, s *fleet.Scene, from *bed.Host) map[destination]string {
	t.Helper()
	api, err := url.Parse(s.Cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	apiPort, err := strconv.Atoi(api.Port())
	if err != nil {
		t.Fatal(err)
	}
	all := map[destination]string{
		{netip.MustParseAddr(bed.Gateway), "tcp", apiPort}:        "the API server",
		{netip.MustParseAddr(bed.DNSService), "udp", bed.DNSPort}: "the nameserver",
		{from.Address, "tcp", bed.AgentPort}:                      "the own address",
	}
	for _, loopback := range []string{"127.0.0.1", "::1"} {
		for port, daemon := range map[int]string{10256: "kube-proxy", 9879: "Cilium", 9099: "Calico"} {
			all[destination{netip.MustParseAddr(loopback), "tcp", port}] = daemon
		}
	}
	for _, other := range s.Network.Hosts[:listing] {
		if other == from {
			continue
		}
		if s.HasDNS(other) {
			all[destination{bed.PodAddress(other.Number), "tcp", bed.DNSPort}] = dnsPod
		}
		// No agent can know whether an address of another host is one of its Node: a second
		// NIC is taken for a peer or a DNS pod, and so is a bridge.
		for _, text := range []string{other.Address.String(), second(other.Number), fmt.Sprintf("10.91.%d.1", other.Number), ipv6Of(other.Number)} {
			address := netip.MustParseAddr(text)
			all[destination{address, "tcp", bed.AgentPort}] = "a peer"
			all[destination{address, "tcp", bed.KubeletPort}] = "a peer's kubelet"
			all[destination{address, "tcp", bed.DNSPort}] = dnsPod
		}
		// The kernel's packets that carry those of the agent have the agent's user.
		all[destination{other.Address, "udp", 8472}] = "the overlay"
	}
	return all
}

// capture is a rule of the packet filter that notes each destination of the user as
// whom the agent runs, before an address of a Service is translated.
type capture struct{ host *bed.Host }

// newCapture captures for the length of a test. What the agent answers to others, from
// its own port, is no packet of its own.
func newCapture(t *testing.T, h *bed.Host) *capture {
	t.Helper()
	set := func(name, address string) string {
		return fmt.Sprintf("set %s { type %s . inet_proto . inet_service; size 65535; flags dynamic; }\n", name, address)
	}
	err := h.NFT("table inet capture {\n" + set("to4", "ipv4_addr") + set("to6", "ipv6_addr") + fmt.Sprintf(`
counter neither { }
counter victim { }
chain agent {
tcp sport %[1]d accept
meta l4proto { tcp, udp } add @to4 { ip daddr . meta l4proto . th dport }
meta l4proto { tcp, udp } add @to6 { ip6 daddr . meta l4proto . th dport }
meta l4proto != { tcp, udp } counter name neither
ip daddr %[2]s tcp dport %[1]d tcp flags & (syn | ack) == syn counter name victim
}
chain out { type filter hook output priority -310; policy accept;
meta skuid %[3]d jump agent
}
}
`, bed.AgentPort, victim(), bed.AgentUID))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.NFT("delete table inet capture"); err != nil {
			t.Error(err)
		}
	})
	return &capture{h}
}

// sent returns where the agent sent packets.
func (c *capture) sent(t *testing.T) map[destination]bool {
	t.Helper()
	all := map[destination]bool{}
	for _, set := range []string{"to4", "to6"} {
		text, err := c.host.Output("", "nft", "list", "set", "inet", "capture", set)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`([0-9a-f.:]+) \. (tcp|udp) \. (\d+)`).FindAllStringSubmatch(text, -1) {
			port, err := strconv.Atoi(match[3])
			if err != nil {
				t.Fatal(err)
			}
			all[destination{netip.MustParseAddr(match[1]), match[2], port}] = true
		}
	}
	return all
}

// check fails for each destination that is not listed, and if the capture lacks what
// every agent asks.
func (c *capture) check(t *testing.T, listed map[destination]string) {
	t.Helper()
	sent := c.sent(t)
	seen := map[string]int{}
	for d := range sent {
		what := listed[d]
		seen[what]++
		if what == "" {
			t.Errorf("%s sent to %s, which docs/network.md does not list", c.host.Name, d)
		}
	}
	for _, what := range []string{"the API server", "the nameserver", "the own address", "kube-proxy", "a peer", dnsPod} {
		if seen[what] == 0 {
			t.Errorf("%s sent nothing to %s, or the capture missed it; it saw %v", c.host.Name, what, sent)
		}
	}
	if n := c.counter(t, "neither"); n > 0 {
		t.Errorf("%s sent %d packets that are neither TCP nor UDP", c.host.Name, n)
	}
	t.Logf("%s sent to %d destinations: %v", c.host.Name, len(sent), seen)
}

// askedVictim is how many connections the agent began to the victim.
func (c *capture) askedVictim(t *testing.T) int {
	t.Helper()
	return c.counter(t, "victim")
}

// counter is how many packets a counter of the capture has.
func (c *capture) counter(t *testing.T, name string) int {
	t.Helper()
	text, err := c.host.Output("", "nft", "list", "counter", "inet", "capture", name)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(text, "packets ")
	count, _, _ := strings.Cut(after, " ")
	n, err := strconv.Atoi(count)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return n
}
