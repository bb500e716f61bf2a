package network

import (
	"flag"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/probetest"
)

var update = flag.Bool("update", false, "write what the probe says of each recorded host into testdata/hosts.txt")

func TestHosts(t *testing.T) {
	t.Parallel()
	probetest.Hosts(t, *update, func(_ string, h probes.Host) []string {
		return []string{probetest.Text(probetest.Observe(t, New(h)))}
	})
}

func TestEdgesTouchTheirConditionAlone(t *testing.T) {
	t.Parallel()
	probetest.Edges(t, func(h probes.Host) probes.Observation { return New(h).Observe(t.Context()) },
		map[string]string{
			"proc/net/route":             "RouteGarbled",
			"proc/net/ipv6_route":        "IPv6RouteGarbled",
			"sys/class/net/eth0/carrier": "CarrierGarbled",
		},
		map[string]probes.Observation{
			// 0 is what the kernel writes of an interface without carrier.
			"edges-zero/sys/class/net/eth0/carrier": {Level: probes.Degraded, Reason: "NoCarrier"},
		})
}
