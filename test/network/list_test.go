package network

import "time"

// The time in which a host has to be tainted at defaults, and for how long the
// incidents last that must taint nobody.
const (
	soon  = 30 * time.Second
	lasts = 40 * time.Second
)

// incidents are those of eight hosts. The DNS servers are on the first two.
func (s *scene) incidents() []incident {
	const blocked = "in tcp dport 9808 drop"
	return []incident{
		{name: "One host cut off from its peers, not from the API server", fault: cutOff(5), tainted: []int{5}, within: soon},
		{name: "VXLAN broken on one host, the hosts' network is well", fault: packets([]int{6}, "in udp dport 8472 drop", "out udp dport 8472 drop"), tainted: []int{6}, within: soon},
		{name: "DNS unreachable from one host", fault: packets([]int{7}, "out udp dport 53 drop"), tainted: []int{7}, within: soon},
		{name: "Policy rules flushed on one host", fault: command([]int{4}, "rule del pref 40000", "rule add pref 40000 lookup 100"), tainted: []int{4}, within: soon},
		{name: "Half of the hosts cut off from the other half", fault: cutOff(1, 2, 3, 4), lasts: lasts},
		{name: "DNS servers stopped for all", fault: s.noDNS(), lasts: lasts},
		{name: "taintlet's port blocked on all hosts at once", fault: packets(nil, blocked), lasts: lasts},
		{name: "One agent frozen for 3 s of every 10 s", fault: stopped(8), lasts: lasts},
		{name: "10 % loss on one host", fault: lossy(10, 8), tainted: []int{8}, within: 90 * time.Second},

		{name: "Network plugin's daemon gone on one host, and its device", fault: s.left(3), tainted: []int{3}, within: soon, long: true},
		{name: "VXLAN broken on a host with a DNS server", fault: packets([]int{1}, "in udp dport 8472 drop", "out udp dport 8472 drop"), tainted: []int{1}, within: soon, lasts: 2 * time.Minute, long: true},
		{name: "Service rules missing on one host", fault: s.withoutServices(8), tainted: []int{8}, within: soon, long: true},
		{name: "kube-proxy stuck on one host", fault: proxyStuck(5), tainted: []int{5}, within: 2 * time.Minute, long: true},
		{name: "Nothing comes in from peers", fault: packets([]int{6}, "in ip saddr 10.90.0.11-10.90.0.18 drop"), tainted: []int{6}, within: soon, long: true},
		{name: "Nothing goes out to peers", fault: packets([]int{7}, "out ip daddr 10.90.0.11-10.90.0.18 drop"), tainted: []int{7}, within: soon, long: true},
		{name: "A third of what one host receives from peers is lost", fault: packets([]int{4}, "in ip saddr 10.90.0.11-10.90.0.18 numgen random mod 3 == 0 drop"), tainted: []int{4}, within: 90 * time.Second, long: true},
		{name: "A zone of two cut off from the other six", fault: cutOff(7, 8), tainted: []int{7, 8}, within: time.Minute, long: true},
		{name: "10 % loss on three of eight hosts", fault: lossy(10, 6, 7, 8), may: []int{6, 7, 8}, lasts: 150 * time.Second, long: true},
		{name: "Connections to the API server half open on one host", fault: s.halfOpen(3), lasts: 2 * time.Minute, long: true},
		{name: "A second NIC without carrier", fault: unplugged("eth1", 5), lasts: lasts, long: true},
		{name: "The link of one host down and up five times in 10 s", fault: flapping(6), lasts: lasts, long: true},
		{name: "API server stopped for 2 min", fault: s.frozen(), lasts: 2 * time.Minute, long: true},
		{name: "taintlet's port blocked on one host after another", fault: oneAfterAnother(2*time.Minute, blocked), lasts: 3 * time.Minute, long: true},
		{name: "taintlet's port blocked outwards on one host after another", fault: oneAfterAnother(2*time.Minute, "out tcp dport 9808 drop"), lasts: 3 * time.Minute, long: true},
		{name: "taintlet's port and the kubelet's blocked on all hosts at once", fault: packets(nil, "in tcp dport { 9808, 10250 } drop"), lasts: 2 * time.Minute, long: true},
		{name: "taintlet's port and the kubelet's blocked on one host after another", fault: oneAfterAnother(2*time.Minute, "in tcp dport { 9808, 10250 } drop"), lasts: 3 * time.Minute, long: true},
		{name: "Each quarter of the hosts cut off from the others", fault: quarters(), lasts: 2 * time.Minute, long: true},
		{name: "All cores busy", fault: busy(8), lasts: 30 * time.Second, long: true},
	}
}

// incidentsOfThree are those of the small cluster.
func (s *scene) incidentsOfThree() []incident {
	const blocked = "in tcp dport 9808 drop"
	return []incident{
		{name: "One host cut off from its peers, not from the API server", fault: cutOff(3), tainted: []int{3}, within: 45 * time.Second, long: true},
		{name: "VXLAN broken on one host, the hosts' network is well", fault: packets([]int{3}, "in udp dport 8472 drop", "out udp dport 8472 drop"), tainted: []int{3}, within: soon, long: true},
		{name: "DNS unreachable from one host", fault: packets([]int{2}, "out udp dport 53 drop"), tainted: []int{2}, within: soon, long: true},
		{name: "Each host cut off from the others", fault: eachAlone(), lasts: 2 * time.Minute, long: true},
		{name: "API server stopped for 2 min", fault: s.frozen(), lasts: 2 * time.Minute, long: true},
		{name: "DNS servers stopped for all", fault: s.noDNS(), lasts: time.Minute, long: true},
		{name: "taintlet's port blocked on all hosts at once", fault: packets(nil, blocked), lasts: time.Minute, long: true},
		{name: "taintlet's port blocked on one host after another", fault: oneAfterAnother(2*time.Minute, blocked), lasts: 3 * time.Minute, long: true},
		{name: "taintlet's port and the kubelet's blocked on all hosts at once", fault: packets(nil, "in tcp dport { 9808, 10250 } drop"), lasts: 2 * time.Minute, long: true},
	}
}
