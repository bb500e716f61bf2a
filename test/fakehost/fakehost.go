// Package fakehost makes hosts of files, in place of /proc and /sys, that a test
// can make sick.
package fakehost

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Host is a tree of /proc and /sys and a root file system that a test can
// make sick. Probes read it as they would read a host.
type Host struct {
	// T is the test.
	T testing.TB
	// Dir has proc and sys.
	Dir string
	// Root is the root file system, on a tmpfs: nobody else fills it.
	Root string
}

// New returns a healthy host for the length of the test.
func New(t testing.TB) *Host {
	t.Helper()
	h := &Host{T: t, Dir: t.TempDir()}
	var err error
	if h.Root, err = os.MkdirTemp("/dev/shm", "taintlet-root-"); err != nil { //nolint:usetesting // t.TempDir is not on a tmpfs
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(h.Root); err != nil {
			t.Error(err)
		}
	})
	h.Memory(50)
	h.Tasks(100)
	h.Route(true)
	h.Write("proc/sys/kernel/pid_max", "32768\n")
	h.Write("proc/sys/kernel/threads-max", "100000\n")
	h.Write("sys/class/net/eth0/carrier", "1\n")
	return h
}

// Write puts a file into the tree at once, as the kernel would: a reader sees
// the old one or the new one.
func (h *Host) Write(name, content string) {
	h.T.Helper()
	path := filepath.Join(h.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		h.T.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		h.T.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		h.T.Fatal(err)
	}
}

// Remove removes a file of the tree.
func (h *Host) Remove(name string) {
	h.T.Helper()
	if err := os.Remove(filepath.Join(h.Dir, name)); err != nil {
		h.T.Fatal(err)
	}
}

// Memory makes that percentage of 16 GiB available, the rest anonymous.
func (h *Host) Memory(percent int) {
	h.T.Helper()
	const total = 16 << 20 // KiB
	available := total / 100 * percent
	h.Write("proc/meminfo", fmt.Sprintf(`MemTotal:       %d kB
MemFree:        %d kB
MemAvailable:   %d kB
Buffers:               0 kB
Cached:                0 kB
Active(anon):   %d kB
Inactive(anon):        0 kB
AnonPages:      %d kB
SwapTotal:             0 kB
SwapFree:              0 kB
`, total, available, available, total-available, total-available))
}

// Tasks makes the host have that many tasks.
func (h *Host) Tasks(count int) {
	h.T.Helper()
	h.Write("proc/loadavg", fmt.Sprintf("0.10 0.20 0.30 1/%d 4242\n", count))
}

// Route gives the host its default route, or takes it away.
func (h *Host) Route(there bool) {
	h.T.Helper()
	routes := "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
		"eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
	if there {
		routes += "eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
	}
	h.Write("proc/net/route", routes)
}

// Flags returns the agent's flags that make it read this tree.
func (h *Host) Flags() []string {
	return []string{"--procfs=" + filepath.Join(h.Dir, "proc"), "--sysfs=" + filepath.Join(h.Dir, "sys"), "--host-root=" + h.Root}
}
