package network

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/probetest"
)

const heading = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"

// route is a line of net/route with so much behind the interface.
func route(name, destination, flags, metric, mask string) string {
	return strings.Join([]string{name, destination, "010200C0", flags, "0", "0", metric, mask, "0", "0", "0"}, "\t") + "\n"
}

// route6 is a line of net/ipv6_route.
func route6(destination, length, flags, name string) string {
	return destination + " " + length + " " + zeros + " 00 " + zeros + " 00000400 00000002 00000000 " + flags + "     " + name + "\n"
}

const (
	zeros     = "00000000000000000000000000000000"
	rejectAll = zeros + " 00 " + zeros + " 00 " + zeros + " ffffffff 00000001 00000000 00200200       lo\n"
)

func TestParseRoutes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"none", heading, ""},
		{"default", heading + route("eth0", "00000000", "0003", "0", "00000000"), "eth0"},
		{"another network", heading + route("eth0", "0000000A", "0003", "0", "000000FF"), ""},
		{"the lower half", heading + route("tun0", "00000000", "0003", "0", "00000080"), ""},
		{"negative metric of older kernels", heading + route("eth0", "00000000", "0003", "-16769024", "00000000"), "eth0"},
		{"large metric", heading + route("eth0", "00000000", "0003", "4278198272", "00000000"), "eth0"},
		{"unreachable", heading + route("*", "00000000", "0201", "0", "00000000"), ""},
		{"blackhole has no flag", heading + route("*", "00000000", "0001", "0", "00000000"), ""},
		{"rejecting by flag", heading + route("eth0", "00000000", "0201", "0", "00000000"), ""},
		{"not up", heading + route("eth0", "00000000", "0002", "0", "00000000"), ""},
		{"vlan", heading + route("eth0.100", "00000000", "0003", "0", "00000000"), "eth0.100"},
	} {
		names, err := parseRoutes(strings.NewReader(test.text))
		if err != nil || strings.Join(names, ",") != test.want {
			t.Errorf("%s: %v, %v, want %q", test.name, names, err, test.want)
		}
	}
}

func TestCheckInterface(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"eth0": true, "eth0.100": true, "br-1234567890ab": true, "...": true, "*": true,
		"": false, ".": false, "..": false, "a/b": false, "eth0:1": false, "a b": false, "sixteen-letters-": false,
	} {
		if err := checkInterface(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestParseIPv6Routes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"none", rejectAll, ""},
		{"default", route6(zeros, "00", "00000003", "eth0") + rejectAll, "eth0"},
		{"two next hops", route6(zeros, "00", "00000003", "eth0") + route6(zeros, "00", "00000003", "eth1"), "eth0,eth1"},
		{"by router advertisement", route6(zeros, "00", "00450003", "eth0"), "eth0"},
		{"another length", route6(zeros, "60", "00000003", "eth0"), ""},
		{"another network", route6("2"+zeros[1:], "00", "00000003", "eth0"), ""},
		{"rejecting", route6(zeros, "00", "00200201", "eth0"), ""},
		{"not up", route6(zeros, "00", "00000002", "eth0"), ""},
		{"lo", route6(zeros, "00", "00000001", "lo"), ""},
	} {
		names, err := parseIPv6Routes(strings.NewReader(test.text))
		if err != nil || strings.Join(names, ",") != test.want {
			t.Errorf("%s: %v, %v, want %q", test.name, names, err, test.want)
		}
	}
}

func TestNetworkDamage(t *testing.T) {
	t.Parallel()
	probe := func(h probes.Host) probes.Probe { return New(h) }
	good := route("eth0", "00000000", "0003", "0", "00000000")
	probetest.Missing(t, "proc/net/route", probe, "RouteUnreadable")
	probetest.Damaged(t, "proc/net/route", probe, "RouteGarbled", map[string]string{
		"empty":                       "",
		"binary":                      probetest.Binary,
		"one endless line":            strings.Repeat("x", 1<<17),
		"no heading":                  good,
		"cut off in the heading":      heading[:30],
		"cut off in a line":           heading + good[:20],
		"cut off at the very end":     heading + strings.TrimSuffix(good, "\n"),
		"short line":                  heading + good + "eth0\t00000000\n",
		"empty line":                  heading + "\n",
		"words":                       heading + route("eth0", "default", "0003", "0", "00000000"),
		"garbled flags":               heading + route("eth0", "00000000", "00zz", "0", "00000000"),
		"garbled metric":              heading + route("eth0", "00000000", "0003", "1e3", "00000000"),
		"2^63 metric":                 heading + route("eth0", "00000000", "0003", "9223372036854775808", "00000000"),
		"garbled mask":                heading + route("eth0", "00000000", "0003", "0", "0"),
		"an interface that is a path": heading + route("../eth0", "00000000", "0003", "0", "00000000"),
	})
	good = route6(zeros, "00", "00000003", "eth0")
	probetest.Damaged(t, "proc/net/ipv6_route", probe, "IPv6RouteGarbled", map[string]string{
		"empty":                       "",
		"binary":                      probetest.Binary,
		"one endless line":            strings.Repeat("x", 1<<17),
		"cut off in a line":           good[:90],
		"cut off at the very end":     strings.TrimSuffix(good, "\n"),
		"short destination":           route6(zeros[1:], "00", "00000003", "eth0"),
		"garbled destination":         route6("x"+zeros[1:], "00", "00000003", "eth0"),
		"negative length":             route6(zeros, "-1", "00000003", "eth0"),
		"garbled flags":               route6(zeros, "00", "0x000003", "eth0"),
		"no interface":                route6(zeros, "00", "00000003", ""),
		"an interface that is a path": route6(zeros, "00", "00000003", "a/../.."),
	})
}

func FuzzParseRoutes(f *testing.F) {
	f.Add(heading + route("eth0", "00000000", "0003", "0", "00000000"))
	f.Add(probetest.HealthyText(f, "proc/net/route"))
	f.Add(probetest.Binary)
	f.Fuzz(func(t *testing.T, text string) {
		names, err := parseRoutes(strings.NewReader(text))
		routesAreSane(t, text, names, err)
	})
}

func FuzzParseIPv6Routes(f *testing.F) {
	f.Add(probetest.HealthyText(f, "proc/net/ipv6_route"))
	f.Add(route6(zeros, "00", "00000003", "eth0"))
	f.Add(probetest.Binary)
	f.Fuzz(func(t *testing.T, text string) {
		names, err := parseIPv6Routes(strings.NewReader(text))
		routesAreSane(t, text, names, err)
	})
}

// routesAreSane checks what holds for every table that was understood.
func routesAreSane(t *testing.T, text string, names []string, err error) {
	t.Helper()
	if err != nil {
		return
	}
	if !strings.HasSuffix(text, "\n") {
		t.Errorf("%q is cut off and was understood", text)
	}
	for _, name := range names {
		if filepath.Base(filepath.Join("net", name)) != name || !strings.Contains(text, name) {
			t.Errorf("%q is not an interface of %q", name, text)
		}
	}
}
