package network

import (
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/probetest"
)

func TestNetworkJudge(t *testing.T) {
	t.Parallel()
	up := func(name string) link { return link{name, true, nil} }
	down := func(name string) link { return link{name, false, nil} }
	unsure := func(name string) link {
		return link{name, false, probes.Because("CarrierUnreadable", "reading carrier of %s", name)}
	}
	for _, test := range []struct {
		name            string
		links           []link
		seen            bool
		level           probes.Level
		reason, message string
		severity        int
	}{
		{"one up", []link{up("eth0")}, true, probes.OK, "DefaultRouteUp", "default route over eth0 with carrier", 0},
		{"two up", []link{up("eth0"), up("eth1")}, true, probes.OK, "DefaultRouteUp", "eth0, eth1", 0},
		{"one of two down", []link{up("eth0"), down("eth1")}, true, probes.OK, "SomeCarrierLost", "no carrier on eth1", 25},
		{"two of three down", []link{down("eth0"), up("eth1"), down("eth2")}, true, probes.OK, "SomeCarrierLost", "no carrier on eth0, eth2", 33},
		{"all down", []link{down("eth0"), down("eth1")}, true, probes.Degraded, "NoCarrier", "no carrier on eth0, eth1", 100},
		{"gone", nil, true, probes.Degraded, "DefaultRouteGone", "there was one", 100},
		{"never there", nil, false, probes.OK, "NoDefaultRouteSeen", "none seen since the start", 0},
		{"not known", []link{unsure("eth0")}, true, probes.Unknown, "CarrierUnreadable", "eth0", 0},
		{"not known, another down", []link{unsure("eth0"), down("eth1")}, true, probes.Unknown, "CarrierUnreadable", "eth0", 0},
		{"not known, another up", []link{unsure("eth0"), up("eth1")}, true, probes.OK, "DefaultRouteUp", "eth1", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := sample{test.links}.judge(test.seen)
			probetest.Check(t, o, test.level, test.reason, test.message)
			if o.Severity != test.severity {
				t.Errorf("severity %d, want %d", o.Severity, test.severity)
			}
			if o.Hysteresis != (test.reason == "NoDefaultRouteSeen") {
				t.Errorf("hysteresis is %t", o.Hysteresis)
			}
		})
	}
}
