package network

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// The bed itself: what the agents of the other tests ask answers on every host,
// and each fault breaks what it says and nothing else.
func TestBed(t *testing.T) {
	b := bed.RequireNetwork(t, 4)
	for _, h := range b.Hosts {
		if _, err := h.Listen(fmt.Sprintf(":%d", bed.AgentPort)); err != nil {
			t.Fatal(err)
		}
	}
	waitWell(t, b)

	victim, first := b.Hosts[3], b.Hosts[0]
	for _, fault := range []struct {
		name        string
		begin, mend func() error
		broken      func(from *bed.Host, what string) bool
		someDNS     bool // by the Service it is chance which server is asked
	}{
		{
			name:  "VXLAN",
			begin: func() error { return victim.Break("vxlan", "in udp dport 8472 drop", "out udp dport 8472 drop") },
			mend:  func() error { return victim.Mend("vxlan") },
			broken: func(from *bed.Host, what string) bool {
				return from == victim && (what == "DNS" || strings.HasPrefix(what, "pod"))
			},
		},
		{
			name:  "VXLAN of a host with a DNS server",
			begin: first.LeaveOverlay,
			mend:  func() error { return b.RejoinOverlay(first) },
			broken: func(from *bed.Host, what string) bool {
				return from != first && what == "pod of "+first.Name || from == first && what == "pod of "+b.DNS[1].Name
			},
			someDNS: true,
		},
		{
			name:   "Services",
			begin:  victim.DropServices,
			mend:   func() error { return b.RestoreServices(victim) },
			broken: func(from *bed.Host, what string) bool { return from == victim && what == "DNS" },
		},
		{
			name:  "DNS server",
			begin: first.StopDNS,
			mend:  first.StartDNS,
			broken: func(_ *bed.Host, what string) bool {
				return what == "pod of "+first.Name
			},
			someDNS: true,
		},
		{
			name:   "carrier",
			begin:  func() error { return victim.SetCarrier("eth0", false) },
			mend:   func() error { return victim.SetCarrier("eth0", true) },
			broken: func(from *bed.Host, what string) bool { return from == victim || what == victim.Name },
		},
		{
			name: "peers",
			begin: func() error {
				return victim.Break("peers", "out ip daddr 10.90.0.11-10.90.0.18 drop", "in ip saddr 10.90.0.11-10.90.0.18 drop")
			},
			mend:   func() error { return victim.Mend("peers") },
			broken: func(from *bed.Host, what string) bool { return from == victim || what == victim.Name },
		},
	} {
		t.Run(fault.name, func(t *testing.T) {
			if err := fault.begin(); err != nil {
				t.Fatal(err)
			}
			wantBroken(t, b, fault.broken, fault.someDNS)
			if err := fault.mend(); err != nil {
				t.Fatal(err)
			}
			waitWell(t, b)
		})
	}
}

// waitWell waits until everything answers: the kernel hears of a cable that was
// plugged in a moment later.
func waitWell(t *testing.T, b *bed.Network) {
	t.Helper()
	cluster.Eventually(t, "an end of the fault", func() error {
		for _, from := range b.Hosts {
			for what, err := range askAll(b, from) {
				if err != nil {
					return fmt.Errorf("%s to %s: %w", from.Name, what, err)
				}
			}
		}
		return nil
	})
}

// wantBroken asks everything of every host: hosts by name, pods by "pod of" their
// host, "DNS" by the address of the Service.
func wantBroken(t *testing.T, b *bed.Network, broken func(from *bed.Host, what string) bool, someDNS bool) {
	t.Helper()
	var all sync.WaitGroup
	for _, from := range b.Hosts {
		all.Go(func() {
			for what, err := range askAll(b, from) {
				if want := broken(from, what); (err != nil) != want && (!someDNS || what != "DNS") {
					t.Errorf("%s to %s: want broken %t, is %v", from.Name, what, want, err)
				}
			}
		})
	}
	all.Wait()
}

func askAll(b *bed.Network, from *bed.Host) map[string]error {
	answers := map[string]error{}
	for _, to := range b.Hosts {
		if to != from {
			answers[to.Name] = errors.Join(from.Reach(netip.AddrPortFrom(to.Address, bed.AgentPort)),
				from.Reach(netip.AddrPortFrom(to.Address, bed.KubeletPort)))
		}
	}
	for _, d := range b.DNS {
		answers["pod of "+d.Name] = from.Reach(netip.AddrPortFrom(bed.PodAddress(d.Number), bed.DNSPort))
	}
	answers["DNS"] = from.Resolve(netip.MustParseAddrPort(bed.DNSService + ":53"))
	return answers
}
