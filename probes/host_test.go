package probes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// healthyHost is the small host in testdata/healthy.
var healthyHost = Host{Root: "testdata/healthy", Proc: "testdata/healthy/proc", Sys: "testdata/healthy/sys"}

var (
	someMemory = MemoryThresholds{AvailablePercent: 5, AvailableBytes: 100 << 20, ClearFactor: 1.5}
	someDisk   = DiskThresholds{AvailablePercent: 10, InodesPercent: 5, ClearFactor: 1.5}
	somePIDs   = PIDThresholds{UsedPercent: 85, FreeTasks: 1000, ClearFactor: 1.5}
)

// copyOfHealthy is a copy of the healthy host that a test may break.
func copyOfHealthy(t testing.TB) Host {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS("testdata/healthy")); err != nil {
		t.Fatal(err)
	}
	return Host{Root: root, Proc: filepath.Join(root, "proc"), Sys: filepath.Join(root, "sys")}
}

// with returns a copy of the healthy host whose file at path holds text.
func with(t testing.TB, path, text string) Host {
	t.Helper()
	h := copyOfHealthy(t)
	write(t, h, path, text)
	return h
}

func write(t testing.TB, h Host, path, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.Root, path), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// without returns a copy of the healthy host that lacks the file at path.
func without(t testing.TB, path string) Host {
	t.Helper()
	h := copyOfHealthy(t)
	remove(t, h, path)
	return h
}

func remove(t testing.TB, h Host, path string) {
	t.Helper()
	if err := os.Remove(filepath.Join(h.Root, path)); err != nil {
		t.Fatal(err)
	}
}

// healthyText is a file of the healthy host.
func healthyText(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(healthyHost.Root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)

// wellFormed checks what holds for every Observation.
func wellFormed(t testing.TB, o Observation) {
	t.Helper()
	switch {
	case o.Condition == "":
		t.Errorf("no condition: %+v", o)
	case !camelCase.MatchString(o.Reason):
		t.Errorf("reason %q is not CamelCase: %+v", o.Reason, o)
	case o.Message == "" || strings.ContainsAny(o.Message, "\n\x00") || strings.Contains(o.Message, "NaN"):
		t.Errorf("message is no sentence: %+v", o)
	case o.Severity < 0 || o.Severity > 100:
		t.Errorf("severity %d is not within 0 to 100: %+v", o.Severity, o)
	case o.Hysteresis && o.Level != OK:
		t.Errorf("hysteresis without OK: %+v", o)
	case o.Certain:
		t.Errorf("one look proves nothing here: %+v", o)
	}
}

// check compares level and reason; a part of the message is optional.
func check(t testing.TB, o Observation, level Level, reason, inMessage string) {
	t.Helper()
	wellFormed(t, o)
	if o.Level != level || o.Reason != reason || !strings.Contains(o.Message, inMessage) {
		t.Errorf("got %v %s %q, want %v %s with %q", o.Level, o.Reason, o.Message, level, reason, inMessage)
	}
}

// observe looks once, with time enough.
func observe(t testing.TB, p Probe) Observation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	o := p.Observe(ctx)
	wellFormed(t, o)
	if o.Condition != p.Condition() {
		t.Errorf("a probe of %s speaks of %s", p.Condition(), o.Condition)
	}
	return o
}

func TestHealthyHostIsOK(t *testing.T) {
	t.Parallel()
	for _, p := range []Probe{NewMemory(healthyHost, someMemory), NewPID(healthyHost, somePIDs), NewNetwork(healthyHost)} {
		if o := observe(t, p); o.Level != OK || o.Hysteresis || o.Severity != 0 {
			t.Errorf("%s: %+v", p.Condition(), o)
		}
		if _, woken := p.(*Memory); !woken && p.Wake() != nil {
			t.Errorf("%s has a Wake", p.Condition())
		}
	}
}

func TestThisHostCanBeRead(t *testing.T) {
	t.Parallel()
	h := Host{Root: "/", Proc: "/proc", Sys: "/sys"}
	for _, p := range []Probe{
		NewMemory(h, someMemory), NewDisk(h, []string{"/", "/var/lib/kubelet", "/var/lib/containerd"}, someDisk),
		NewPID(h, somePIDs), NewNetwork(h),
	} {
		t.Run(string(p.Condition()), func(t *testing.T) {
			t.Parallel()
			if p.Condition() == NetworkUnavailable {
				if text, err := os.ReadFile("/proc/net/route"); err != nil || len(text) == 0 {
					t.Skipf("/proc/net/route has nothing to read here: %d bytes, %v", len(text), err)
				}
			}
			o := observe(t, p)
			t.Logf("%v %d %s: %s", o.Level, o.Severity, o.Reason, o.Message)
			if o.Level == Unknown {
				t.Errorf("could not be read: %s: %s", o.Reason, o.Message)
			}
		})
	}
}

// damage is one way to break one file of the healthy host.
type damage struct {
	name, text string
	missing    bool
	reason     string
}

// testDamage breaks path in every way and wants Unknown with the reason.
func testDamage(t *testing.T, path string, probe func(Host) Probe, damages []damage) {
	t.Helper()
	for _, d := range damages {
		t.Run(filepath.Base(path)+" "+d.name, func(t *testing.T) {
			t.Parallel()
			h := with(t, path, d.text)
			if d.missing {
				remove(t, h, path)
			}
			check(t, observe(t, probe(h)), Unknown, d.reason, filepath.Base(path))
		})
	}
}

const binary = "\x7fELF\x02\x01\x01\x00\xff\xfe \x00\n\x80\x81\x00/\x00\x01"

func TestUnreadableIsNotMissing(t *testing.T) {
	t.Parallel()
	h := copyOfHealthy(t)
	remove(t, h, "proc/net/ipv6_route")
	if err := os.Mkdir(filepath.Join(h.Proc, "net", "ipv6_route"), 0o700); err != nil {
		t.Fatal(err)
	}
	check(t, observe(t, NewNetwork(h)), Unknown, "IPv6RouteUnreadable", "ipv6_route")
}

func TestReasonOfAnErrorThatHasNone(t *testing.T) {
	t.Parallel()
	check(t, unknownBecause(MemoryPressure, errors.New("odd")), Unknown, "ReadFailed", "odd")
	if err := because("X", "reading: %w", fs.ErrNotExist); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the cause is lost")
	}
}
