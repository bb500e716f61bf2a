package ask

import (
	"strings"
	"testing"

	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/test/probetest"
)

// step is what an administrator or a cable does, and what the class route then
// says.
type step struct {
	name     string
	commands string
	want     verdict.Outcome
	detail   string // a part of it
}

// follow takes a host through steps.
func follow(t *testing.T, r *Route, apiServer string, steps []step) {
	t.Helper()
	for _, s := range steps {
		probetest.Sh(t, s.commands)
		got := r.Ask(t.Context(), &verdict.Surroundings{APIServer: apiServer}, patience)
		if got.Outcome != s.want || !strings.Contains(got.Detail, s.detail) {
			t.Errorf("%s: %v %q, want %v with %q", s.name, got.Outcome, got.Detail, s.want, s.detail)
		}
	}
}

// uplinks are two interfaces with carrier. An end goes down with its other end.
const uplinks = `
ip link set lo up
ip link add up0 type veth peer name tor0
ip link add up1 type veth peer name tor1
ip link set up0 up
ip link set up1 up
ip link set tor0 up
ip link set tor1 up
ip addr add 10.0.0.2/24 dev up0
ip addr add 10.0.1.2/24 dev up1
`

// One of two next hops is enough, whichever it is. By default the kernel still
// sends half of the flows to a next hop without carrier.
func TestECMPLosesOneNextHopAfterTheOther(t *testing.T) {
	h, inside := probetest.InOwnNetwork(t)
	if !inside {
		return
	}
	probetest.Sh(t, uplinks)
	follow(t, NewRoute(h), "", []step{
		{"both", "ip route add default nexthop via 10.0.0.1 dev up0 nexthop via 10.0.1.1 dev up1", verdict.Well, "with carrier"},
		{"the first is lost", "ip link set tor0 down", verdict.Well, "by up1"},
		{"both are lost", "ip link set tor1 down", verdict.Failed, "no carrier on up"},
		{"the first is back", "ip link set tor0 up", verdict.Well, "by up0"},
		{"the second is back", "ip link set tor1 up", verdict.Well, "with carrier"},
		{"the second is shut down", "ip link set up1 down", verdict.Well, "by up0"},
		{"and the first lost", "ip link set tor0 down", verdict.Failed, "no carrier on up0"},
	})
}

func TestIPv6ECMP(t *testing.T) {
	h, inside := probetest.InOwnNetwork(t)
	if !inside {
		return
	}
	probetest.Sh(t, uplinks+"ip addr add 2001:db8:a::2/64 dev up0 nodad\nip addr add 2001:db8:b::2/64 dev up1 nodad")
	follow(t, NewRoute(h), "", []step{
		{"both", "ip route add default nexthop via 2001:db8:a::1 dev up0 nexthop via 2001:db8:b::1 dev up1", verdict.Well, "with carrier"},
		{"the first is lost", "ip link set tor0 down", verdict.Well, "by up1"},
		{"both are lost", "ip link set tor1 down", verdict.Failed, "no carrier on up"},
		{"the first is back", "ip link set tor0 up", verdict.Well, "by up0"},
	})
}

// Cilium's table 2005 is for packets that its proxy marked.
func TestTablesThatNothingLeadsTo(t *testing.T) {
	h, inside := probetest.InOwnNetwork(t)
	if !inside {
		return
	}
	probetest.Sh(t, uplinks)
	follow(t, NewRoute(h), "", []step{
		{"table 2005 alone", "ip -6 route add default dev up1 table 2005\nip route add default dev up1 table 2005\nip rule add fwmark 0x200/0xf00 table 2005\nip -6 rule add fwmark 0x200/0xf00 table 2005",
			verdict.NotKnown, "no default route (IPv4: network is unreachable, IPv6: network is unreachable), and none seen since the start"},
		{"a rule leads there", "ip rule add from all lookup 2005", verdict.Well, "default route by up1"},
		{"the rule goes", "ip rule del from all lookup 2005", verdict.Failed, "no default route (IPv4: "},
	})
}

// systemd flushed the rules of nodes whose CNI needs them (cilium#18706).
func TestRulesAreFlushed(t *testing.T) {
	h, inside := probetest.InOwnNetwork(t)
	if !inside {
		return
	}
	probetest.Sh(t, uplinks)
	follow(t, NewRoute(h), "", []step{
		{"the rules lead there", "ip route add default via 10.0.0.1 table 100\nip rule add from all lookup 100 priority 100", verdict.Well, "by up0"},
		{"flushed", "ip rule flush", verdict.Failed, "no default route (IPv4: network is unreachable"},
		{"back", "ip rule add from all lookup 100 priority 100", verdict.Well, "by up0"},
	})
}

// A host may have rules before lo is up. /proc/net/route then has no heading for
// as long as the namespace has had no route.
func TestRulesBeforeLoIsUp(t *testing.T) {
	h, inside := probetest.InOwnNetwork(t)
	if !inside {
		return
	}
	follow(t, NewRoute(h), "", []step{
		{"nothing", "", verdict.NotKnown, "none seen since the start"},
		{"rules", "ip rule add from all lookup 100", verdict.NotKnown, "none seen since the start"},
		{"lo", "ip link set lo up", verdict.NotKnown, "none seen since the start"},
		{"a way", strings.Replace(uplinks, "ip link set lo up", "", 1) + "ip route add default via 10.0.0.1 table 100", verdict.Well, "by up0"},
	})
}

func TestRoutesThatLeadNowhere(t *testing.T) {
	h, inside := probetest.InOwnNetwork(t)
	if !inside {
		return
	}
	probetest.Sh(t, uplinks)
	for _, kind := range []string{"blackhole", "unreachable", "prohibit"} {
		follow(t, NewRoute(h), "", []step{
			{kind + " alone", "ip route add " + kind + " default metric 50\nip -6 route add " + kind + " default metric 50", verdict.NotKnown, "no default route (IPv4: "},
			{kind + " behind a way", "ip route add default via 10.0.0.1 metric 10", verdict.Well, "by up0"},
			{kind + " alone again", "ip route del default via 10.0.0.1 metric 10", verdict.Failed, "IPv6: "},
		})
		probetest.Sh(t, "ip route flush root 0/0 exact 0.0.0.0/0 table main\nip -6 route del "+kind+" default metric 50")
	}
	follow(t, NewRoute(h), "", []step{
		{"a blackhole next hop over lo", "ip nexthop add id 7 blackhole\nip route add default nhid 7\nip -6 nexthop add id 8 blackhole\nip -6 route add default nhid 8", verdict.NotKnown, "no default route (IPv4: "},
		{"default over lo", "ip route replace default dev lo\nip -6 route replace default dev lo", verdict.NotKnown, "no default route (IPv4: "},
	})
}

// Networks discard the addresses of documentation and others that are nobody's. A way to some
// addresses is no default route, and two halves are one.
func TestDefaultRouteAmongOthers(t *testing.T) {
	h, inside := probetest.InOwnNetwork(t)
	if !inside {
		return
	}
	probetest.Sh(t, uplinks)
	r := NewRoute(h)
	follow(t, r, "", []step{
		{"a private network only", "ip route add 172.16.0.0/12 via 10.0.1.1", verdict.NotKnown, "none seen since the start"},
		{"a default route", "ip route add default via 10.0.0.1", verdict.Well, "default route by up0"},
		{"discards", "ip route add blackhole 192.0.2.1\nip route add unreachable 192.0.2.0/24\nip -6 route add blackhole 2001:db8::/32\nip route add prohibit 198.51.100.0/24\nip route add blackhole 240.0.0.0/4", verdict.Well, "default route by up0"},
		{"halves", "ip route del default\nip route add 0.0.0.0/1 dev up1\nip route add 128.0.0.0/1 dev up1", verdict.Well, "default route by up1"},
		{"gone", "ip route del 0.0.0.0/1\nip route del 128.0.0.0/1", verdict.Failed, "no default route (IPv4: network is unreachable"},
		{"gone, beside a way to a quarter of all", "ip route add 64.0.0.0/2 dev up1", verdict.Failed, "no default route (IPv4: network is unreachable"},
		{"by another interface", "ip route del 64.0.0.0/2\nip route add default dev up1", verdict.Well, "default route by up1"},
		{"all global addresses of IPv6", "ip route del default dev up1\nip -6 route add 2000::/3 dev up1", verdict.Well, "default route by up1"},
		{"which loses its carrier, and then the route", "ip link set tor1 down\nip -6 route del 2000::/3 dev up1", verdict.Failed, "and no carrier on up1, which led there"},
	})
}

// The API server is a target of its own, so a host that never had a default route
// is judged too.
func TestHostThatNeverHadADefaultRoute(t *testing.T) {
	h, inside := probetest.InOwnNetwork(t)
	if !inside {
		return
	}
	probetest.Sh(t, uplinks)
	follow(t, NewRoute(h), "10.0.0.1:6443", []step{
		{"the API server's net", "", verdict.Well, "API server 10.0.0.1 by up0 with carrier"},
		{"no carrier", "ip link set tor0 down", verdict.Failed, "no carrier on up0, the way to 10.0.0.1"},
		{"carrier", "ip link set tor0 up", verdict.Well, "by up0"},
		{"down", "ip link set up0 down", verdict.Failed, "no route to 10.0.0.1"},
	})
	follow(t, NewRoute(h), "127.0.0.1:6443", []step{
		{"the API server is here", "", verdict.NotKnown, "no default route (IPv4: "},
	})
	follow(t, NewRoute(h), "api.example:6443", []step{
		{"a name", "", verdict.NotKnown, "no default route (IPv4: "},
	})
}

// The kernel drops the routes of an interface that goes down. The agent may have
// asked before that.
func TestCarrierOfAnInterfaceThatIsDown(t *testing.T) {
	h, inside := probetest.InOwnNetwork(t)
	if !inside {
		return
	}
	probetest.Sh(t, uplinks+"ip link set up0 down")
	if carrier, err := readCarrier(h, "up0"); carrier || err != nil {
		t.Errorf("%t, %v", carrier, err)
	}
}

func TestLinkFlaps(t *testing.T) {
	h, inside := probetest.InOwnNetwork(t)
	if !inside {
		return
	}
	probetest.Sh(t, uplinks)
	r := NewRoute(h)
	follow(t, r, "", []step{{"up", "ip route add default via 10.0.0.1 dev up0", verdict.Well, "by up0"}})
	for range 5 {
		follow(t, r, "", []step{
			{"down", "ip link set tor0 down", verdict.Failed, "no carrier on up0"},
			{"up", "ip link set tor0 up", verdict.Well, "by up0"},
		})
	}
}
