package network

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/probetest"
)

// TestNetworkFollowsAHost takes one probe through a host's day.
func TestNetworkFollowsAHost(t *testing.T) {
	t.Parallel()
	h := probetest.CopyOfHealthy(t)
	n := New(h)
	v4 := heading + route("eth0", "00000000", "0003", "100", "00000000")
	for _, step := range []struct {
		what, path, text string
		level            probes.Level
		reason           string
	}{
		{"IPv4 goes", "proc/net/route", heading, probes.OK, "DefaultRouteUp"},
		{"IPv6 goes too", "proc/net/ipv6_route", rejectAll, probes.Degraded, "DefaultRouteGone"},
		{"a sample in between shows nothing", "proc/net/route", "", probes.Unknown, "RouteGarbled"},
		{"it is still gone", "proc/net/route", heading, probes.Degraded, "DefaultRouteGone"},
		{"IPv4 is back", "proc/net/route", v4, probes.OK, "DefaultRouteUp"},
		{"the cable is pulled", "sys/class/net/eth0/carrier", "0\n", probes.Degraded, "NoCarrier"},
		{"a second way", "proc/net/route", v4 + route("eth1", "00000000", "0003", "200", "00000000"), probes.OK, "SomeCarrierLost"},
		{"the cable is back", "sys/class/net/eth0/carrier", "1\n", probes.OK, "DefaultRouteUp"},
	} {
		probetest.Write(t, h, step.path, step.text)
		o := probetest.Observe(t, n)
		if o.Level != step.level || o.Reason != step.reason {
			t.Errorf("%s: got %+v, want %v %s", step.what, o, step.level, step.reason)
		}
	}
}

func TestNetworkThatNeverHadARoute(t *testing.T) {
	t.Parallel()
	h := probetest.With(t, "proc/net/route", heading)
	probetest.Write(t, h, "proc/net/ipv6_route", rejectAll)
	n := New(h)
	for range 3 {
		probetest.Check(t, probetest.Observe(t, n), probes.OK, "NoDefaultRouteSeen", "")
	}
}

func TestNetworkThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := New(probetest.Healthy())
		release := make(chan struct{})
		n.call.Start(func() answer { <-release; return answer{} }) // stands for a read that hangs
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		probetest.Check(t, n.Observe(ctx), probes.Unknown, "NetworkReadBlocked", "no answer for 1s")
		close(release)
		synctest.Wait()
		probetest.Check(t, n.Observe(t.Context()), probes.OK, "DefaultRouteUp", "")
	})
}

func BenchmarkNetworkObserve(b *testing.B) {
	n := New(probes.Host{Proc: "/proc", Sys: "/sys"})
	b.ReportAllocs()
	for b.Loop() {
		n.Observe(b.Context())
	}
}
