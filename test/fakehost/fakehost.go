// Package fakehost makes hosts of files, in place of /proc and /sys, that a test
// can make sick.
package fakehost

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// Host is a tree of /proc and /sys and a root file system that a test can
// make sick. Probes read it as they would read a host. Routes are not files: the
// agent asks the kernel of this machine for them. The tree has the carrier of the
// interface that the kernel then names.
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
	for _, path := range []string{"var/lib/kubelet", "var/lib/containerd"} { // of the default configuration
		if err := os.MkdirAll(filepath.Join(h.Root, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.Memory(50)
	h.Tasks(100)
	h.Carrier(true)
	h.Write("proc/sys/kernel/pid_max", "32768\n")
	h.Write("proc/sys/kernel/threads-max", "100000\n")
	return h
}

// Write puts a file into the tree at once, as the kernel would: a reader sees
// the old one or the new one.
func (h *Host) Write(name, content string) {
	h.T.Helper()
	path := filepath.Join(h.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.T.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(content), 0o644); err != nil {
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
	h.Write("proc/meminfo", Meminfo(total, total/100*percent))
}

// Meminfo returns the text of a meminfo with that much memory in all and available, in
// KiB. All that is not available is anonymous.
func Meminfo(total, available int) string {
	return fmt.Sprintf(`MemTotal:       %d kB
MemFree:        %d kB
MemAvailable:   %d kB
Buffers:               0 kB
Cached:                0 kB
Active(anon):   %d kB
Inactive(anon):        0 kB
AnonPages:      %d kB
SwapTotal:             0 kB
SwapFree:              0 kB
VmallocTotal: 34359738367 kB
`, total, available, available, total-available, total-available)
}

// Tasks makes the host have that many tasks.
func (h *Host) Tasks(count int) {
	h.T.Helper()
	h.Write("proc/loadavg", fmt.Sprintf("0.10 0.20 0.30 1/%d 4242\n", count))
}

// Carrier gives this machine's uplink its carrier or takes it.
func (h *Host) Carrier(there bool) {
	h.T.Helper()
	text := "0\n"
	if there {
		text = "1\n"
	}
	h.Write(UplinkCarrier(h.T), text)
}

// UplinkCarrier is the file of the carrier of the interface that has this
// machine's default route.
func UplinkCarrier(t testing.TB) string {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "udp", "192.0.2.1:9") // sends nothing
	if err != nil {
		t.Fatalf("this machine has no default route for the agent to find: %v", err)
	}
	defer c.Close() //nolint:errcheck // nothing went through it
	own := c.LocalAddr().(*net.UDPAddr).IP
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addresses {
			if a.(*net.IPNet).IP.Equal(own) {
				return filepath.Join("sys/class/net", i.Name, "carrier")
			}
		}
	}
	t.Fatalf("no interface has %s", own)
	return ""
}

// Flags returns the agent's flags that make it read this tree.
func (h *Host) Flags() []string {
	return []string{"--procfs=" + filepath.Join(h.Dir, "proc"), "--sysfs=" + filepath.Join(h.Dir, "sys"), "--host-root=" + h.Root}
}
