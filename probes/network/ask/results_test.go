package ask

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

var updateResults = flag.Bool("update", false, "write what the checks find into testdata/results.golden")

// The verdict's tests play these results, so that its messages have the words of the
// checks.
func TestResults(t *testing.T) { //nolint:paralleltest // it may write its file
	var text strings.Builder
	for _, found := range []struct {
		name string
		verdict.Result
	}{
		{"no carrier", routeTold(noCarrier)},
		{"no route", routeTold(way{target: outside, lost: noRoute})},
		{"no route nor to the API server", routeTold(way{target: outside, lost: noRoute}, way{target: apiTarget, lost: "no route to 10.96.0.1 (network is unreachable)"})},
		{"no carrier since the start", NewRoute(thisHost).evaluate([]way{noCarrier})},
		{"no route since the start", NewRoute(thisHost).evaluate([]way{{target: outside, lost: noRoute}})},
		{"garbled carrier", routeTold(carrierOf(t, "up\n"))},
		{"unreadable carrier", routeTold(carrierOf(t, ""))},
		{"kernel not asked", routeTold(way{target: outside, err: fmt.Errorf("asking the kernel for routes: %w", syscall.EPERM)})},
		{"packets dropped", (&Conntrack{before: &counts{}}).evaluate(counts{drop: 812})},
		{"connection table full", (&Conntrack{host: withTable(t, 262144, 262144)}).withoutCounts()},
		{"no nameserver answers", dnsTold(true, context.DeadlineExceeded)},
		{"no nameserver ever answered", dnsTold(false, context.DeadlineExceeded)},
		{"nameservers fail", dnsTold(true, rcode(2))},
		{"nameservers failed since the start", dnsTold(false, rcode(2))},
		{"DNS pods do not answer", podsTold(true)},
		{"DNS pods never answered", podsTold(false)},
		{"unhealthy daemon", daemonTold()},
	} {
		outcome := []string{"not known", "well", "failed"}[found.Outcome]
		if found.Never {
			outcome = "never"
		}
		if found.IsSure {
			outcome += " surely"
		}
		fmt.Fprintf(&text, "%s | %s | %s\n", found.name, outcome, found.Detail)
	}
	const file = "testdata/results.golden"
	if *updateResults {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != string(want) {
		t.Errorf("%s has:\n%s\nand the checks find:\n%s", file, want, text.String())
	}
}

// routeTold is what the check says of these ways, after a default route was there once.
func routeTold(ways ...way) verdict.Result {
	r := NewRoute(thisHost)
	r.evaluate([]way{{target: outside, by: "eth0"}, {target: apiTarget, by: "eth0"}})
	return r.evaluate(ways)
}

// carrierOf is the way over an interface whose file has that text; empty: it cannot be
// read.
func carrierOf(t *testing.T, text string) way {
	t.Helper()
	root := t.TempDir()
	h := probes.Host{Root: root, Sys: filepath.Join(root, "sys")}
	path := filepath.Join(h.Sys, "class/net/eth0/carrier")
	if err := os.MkdirAll(path, 0o700); err != nil { // a folder cannot be read
		t.Fatal(err)
	}
	if text != "" {
		if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := readCarrier(h, "eth0")
	if err == nil {
		t.Fatalf("carrier %q is read", text)
	}
	return way{target: outside, err: pathless{err, h.Root}}
}

// pathless is an error that names files as on a host.
type pathless struct {
	error
	root string
}

func (e pathless) Error() string { return strings.ReplaceAll(e.error.Error(), e.root, "") }

// noCarrier is what the kernel's answers come to on a host whose only interface is down, and
// noRoute on one that has no default route. apiTarget is an API server.
var noCarrier = way{target: outside, lost: "no carrier on eth0, which has the default route", isDown: true}

const (
	noRoute   = "no default route (IPv4: network is unreachable, IPv6: network is unreachable)"
	apiTarget = "API server 10.96.0.1"
)

// dnsTold is what the check says of a nameserver with that error, which answered once or not.
func dnsTold(once bool, err error) verdict.Result {
	server := netip.MustParseAddrPort("10.96.0.10:53")
	d := &DNS{conf: resolvConf{servers: []netip.AddrPort{server}}, seen: reached{server: once}}
	return d.evaluate([]error{err})
}

// podsTold is the same of two pods.
func podsTold(once bool) verdict.Result {
	pods := []netip.AddrPort{netip.MustParseAddrPort("10.244.3.2:53"), netip.MustParseAddrPort("10.244.7.5:53")}
	p := &Pods{seen: reached{pods[0]: once, pods[1]: once}}
	return p.evaluate(pods, []error{context.DeadlineExceeded, syscall.EHOSTUNREACH})
}

// daemonTold is what the check says of a daemon that was well once and is not.
func daemonTold() verdict.Result {
	l, kubeProxy := NewLocal(), daemons()[:1]
	l.evaluate(kubeProxy, []error{nil}, time.Time{})
	return l.evaluate(kubeProxy, []error{statusError{kubeProxy[0].path, http.StatusServiceUnavailable}}, time.Time{})
}
