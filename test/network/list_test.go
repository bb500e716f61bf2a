package network

import (
	"time"

	"github.com/taintlet/taintlet/test/bed/fleet"
)

// The times in which a host has to be tainted at defaults; probes/network/README.md
// has the reasons. soon is for what needs no comparison, later for what fails here and
// is well at others, last for a host that suspects itself and asks about others.
const (
	soon  = 30 * time.Second
	later = 60 * time.Second
	last  = 100 * time.Second
	// alone is for one host that is cut off while all others are well.
	alone = 30 * time.Second
	// hole is for packets that get lost because they are large. learned is how long agents
	// run until they have exchanged some with all.
	hole, learned = 60 * time.Second, 30 * time.Second
	// cautious is how long the fleet brake waits for two rounds of the peers, some
	// 6 s, after a start.
	cautious = 5 * time.Minute
)

// lasts is for how long a fault is watched that must taint nobody: longer than it
// takes to taint a host that is to blame.
const lasts = 100 * time.Second

// Rules of the packet filter.
const (
	blocked      = "in tcp dport 4808 drop"
	bothBlocked  = "in tcp dport { 4808, 10250 } drop"
	vxlanIn      = "in udp dport 8472 drop"
	vxlanOut     = "out udp dport 8472 drop"
	fromPeers    = fleet.FromPeers
	toPeers      = fleet.ToPeers
	twoMinutes   = 2 * time.Minute
	threeMinutes = 3*time.Minute + 40*time.Second
)

// incidents are those of eight hosts. The DNS servers are on the first two.
func (s scene) incidents() []incident {
	return []incident{
		{name: "VXLAN broken on one host, the hosts' network is well", fault: packets([]int{6}, vxlanIn, vxlanOut), tainted: []int{6}, within: later},
		{name: "Policy rules flushed on one host", fault: command([]int{4}, "rule del pref 40000", "rule add pref 40000 lookup 100"), tainted: []int{4}, within: soon, long: true},
		{name: "taintlet's port and the kubelet's blocked on all hosts at once", fault: packets(nil, bothBlocked), lasts: lasts},
		{name: "One host cut off from its peers, not from the API server", fault: cutOff(5), tainted: []int{5}, within: alone, runs: cautious},
		{name: "One host cut off from its peers, whose agent restarts before the taint", fault: s.restarted(cutOff(5), 5), tainted: []int{5}, within: last, runs: cautious, long: true},

		{name: "The connection table of one host is full", fault: s.full(5), tainted: []int{5}, within: later, long: true},
		{name: "Half of the hosts cut off from the other half", fault: cutOff(1, 2, 3, 4), lasts: lasts, long: true},
		{name: "10 % loss each way on one host", fault: lossy(10, 8), tainted: []int{8}, within: 90 * time.Second, long: true},
		{name: "DNS unreachable from one host", fault: packets([]int{7}, "out udp dport 53 drop"), tainted: []int{7}, within: later, long: true},
		{name: "DNS servers stopped for all", fault: s.noDNS(), lasts: lasts, long: true},
		{name: "SERVFAIL from the nameserver on one host", fault: packets([]int{5}, servfail), tainted: []int{5}, within: later, long: true},
		{name: "DNS servers refuse for all", fault: s.refusingDNS(), lasts: lasts, long: true},
		{name: "taintlet's port blocked on all hosts at once", fault: packets(nil, blocked), lasts: lasts, long: true},
		{name: "One agent frozen for 3 s of every 10 s", fault: stopped(8), lasts: lasts, long: true},
		{name: "Network plugin's device gone on one host", fault: s.left(3), tainted: []int{3}, within: later, long: true},
		{name: "VXLAN broken on a host with a DNS server", fault: packets([]int{1}, vxlanIn, vxlanOut), tainted: []int{1}, within: last, lasts: threeMinutes, long: true},
		{name: "Service rules missing on one host", fault: s.withoutServices(8), tainted: []int{8}, within: later, long: true},
		{name: "kube-proxy stuck on one host", fault: proxyStuck(5), tainted: []int{5}, within: twoMinutes, long: true},
		{name: "Nothing from peers comes in on one host", fault: packets([]int{6}, fromPeers+" drop"), tainted: []int{6}, within: last, long: true},
		{name: "Nothing to peers goes out on one host", fault: packets([]int{7}, toPeers+" drop"), tainted: []int{7}, within: last, long: true},
		{name: "A third of what one host receives from peers is lost", fault: packets([]int{4}, fromPeers+" numgen random mod 3 == 0 drop"), tainted: []int{4}, within: last, long: true},
		{name: "Packets above 1,400 bytes to one host get lost", fault: holeIn(6), tainted: []int{6}, within: hole, runs: learned, long: true},
		{name: "Packets above 1,400 bytes from one host get lost", fault: holeOut(3), tainted: []int{3}, within: hole, runs: learned, long: true},
		{name: "Packets above 1,400 bytes get lost for all", fault: holeOut(everybody()...), lasts: lasts, runs: learned, long: true},
		{name: "A zone of two cut off from the other six", fault: cutOff(7, 8), tainted: []int{7, 8}, within: last, long: true},

		{name: "10 % loss each way on three of eight hosts", fault: lossy(10, 6, 7, 8), may: []int{6, 7, 8}, lasts: threeMinutes, long: true},
		{name: "Connections to the API server half open on one host", fault: s.halfOpen(3), lasts: twoMinutes, long: true},
		{name: "A second NIC without carrier", fault: unplugged("eth1", 5), lasts: later, long: true},
		{name: "The link of one host down and up five times in 10 s", fault: flapping(6), may: []int{6}, lasts: later, long: true},
		{name: "API server stopped for 2 min", fault: s.frozen(), lasts: twoMinutes, long: true},
		{name: "taintlet's port blocked on one host after another", fault: oneAfterAnother(blocked), lasts: threeMinutes, long: true},
		{name: "taintlet's port blocked outwards on one host after another", fault: oneAfterAnother("out tcp dport 4808 drop"), lasts: threeMinutes, long: true},
		{name: "taintlet's port and the kubelet's blocked on one host after another", fault: oneAfterAnother(bothBlocked), lasts: threeMinutes, long: true},
		{name: "Each quarter of the hosts cut off from the others", fault: quarters(), lasts: twoMinutes, long: true},
		{name: "All other agents hang", fault: hanging(1, 2, 3, 4, 5, 6, 7), lasts: lasts, long: true},
		{name: "All cores busy", fault: busy(8), lasts: soon, long: true},
	}
}

// incidentsOfThree are those of the small cluster.
func (s scene) incidentsOfThree() []incident {
	return []incident{
		{name: "One host cut off from its peers, not from the API server", fault: cutOff(3), tainted: []int{3}, within: alone, runs: cautious, long: true},
		{name: "VXLAN broken on one host, the hosts' network is well", fault: packets([]int{3}, vxlanIn, vxlanOut), tainted: []int{3}, within: later, long: true},
		{name: "DNS unreachable from one host", fault: packets([]int{2}, "out udp dport 53 drop"), tainted: []int{2}, within: later, long: true},
		{name: "Each host cut off from the others", fault: eachAlone(), lasts: twoMinutes, long: true},
		{name: "DNS servers stopped for all", fault: s.noDNS(), lasts: lasts, long: true},
		{name: "API server stopped for 2 min", fault: s.frozen(), lasts: twoMinutes, long: true},
		{name: "taintlet's port and the kubelet's blocked on all hosts at once", fault: packets(nil, bothBlocked), lasts: twoMinutes, long: true},
		{name: "taintlet's port blocked on all hosts at once", fault: packets(nil, blocked), lasts: lasts, long: true},
		{name: "taintlet's port blocked on one host after another", fault: oneAfterAnother(blocked), lasts: threeMinutes, long: true},
	}
}
