package network

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/probetest"
)

func TestUnreadableIsNotMissing(t *testing.T) {
	t.Parallel()
	h := probetest.CopyOfHealthy(t)
	probetest.Remove(t, h, "proc/net/ipv6_route")
	if err := os.Mkdir(filepath.Join(h.Proc, "net", "ipv6_route"), 0o700); err != nil {
		t.Fatal(err)
	}
	probetest.Check(t, probetest.Observe(t, New(h)), probes.Unknown, "IPv6RouteUnreadable", "ipv6_route")
}

func TestNetworkWithoutIPv6(t *testing.T) {
	t.Parallel()
	h := probetest.Without(t, "proc/net/ipv6_route")
	probetest.Check(t, probetest.Observe(t, New(h)), probes.OK, "DefaultRouteUp", "over eth0 with")
}

func TestNetworkCarrierDamage(t *testing.T) {
	t.Parallel()
	only := func(h probes.Host) probes.Probe { // one interface with a default route
		probetest.Remove(t, h, "proc/net/ipv6_route")
		return New(h)
	}
	probetest.Missing(t, "sys/class/net/eth0/carrier", only, "CarrierUnreadable")
	probetest.Damaged(t, "sys/class/net/eth0/carrier", only, "CarrierGarbled", map[string]string{
		"empty":          "",
		"binary":         probetest.Binary,
		"cut off":        "1",
		"negative":       "-1\n",
		"another number": "10\n",
	})
}

// TestCarrierOfAnInterfaceThatIsDown needs a file that answers EINVAL, which no
// test can write, so it uses an interface of this host that is down.
func TestCarrierOfAnInterfaceThatIsDown(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("/sys/class/net/*/carrier")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if _, err := os.ReadFile(path); errors.Is(err, syscall.EINVAL) {
			if carrier, err := readCarrier(path); carrier || err != nil {
				t.Errorf("%s: %t, %v", path, carrier, err)
			}
			return
		}
	}
	t.Skip("this host has no interface that is down")
}
