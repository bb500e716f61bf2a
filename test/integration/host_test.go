package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// fakeHost is a tree of /proc and /sys and a root file system that a test can
// make sick. Probes read it as they would read a host.
type fakeHost struct {
	t    *testing.T
	dir  string
	root string // on a tmpfs: nobody else fills it
}

func newFakeHost(t *testing.T) *fakeHost {
	t.Helper()
	h := &fakeHost{t: t, dir: t.TempDir()}
	var err error
	if h.root, err = os.MkdirTemp("/dev/shm", "taintlet-root-"); err != nil { //nolint:usetesting // t.TempDir is not on a tmpfs
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(h.root); err != nil {
			t.Error(err)
		}
	})
	h.memory(50)
	h.tasks(100)
	h.route(true)
	h.write("proc/sys/kernel/pid_max", "32768\n")
	h.write("proc/sys/kernel/threads-max", "100000\n")
	h.write("sys/class/net/eth0/carrier", "1\n")
	return h
}

// write puts a file into the tree at once, as the kernel would: a reader sees
// the old one or the new one.
func (h *fakeHost) write(name, content string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		h.t.Fatal(err)
	}
}

func (h *fakeHost) remove(name string) {
	h.t.Helper()
	if err := os.Remove(filepath.Join(h.dir, name)); err != nil {
		h.t.Fatal(err)
	}
}

// memory makes that percentage of 16 GiB available, the rest anonymous.
func (h *fakeHost) memory(percent int) {
	h.t.Helper()
	const total = 16 << 20 // KiB
	available := total / 100 * percent
	h.write("proc/meminfo", fmt.Sprintf(`MemTotal:       %d kB
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

func (h *fakeHost) tasks(count int) {
	h.t.Helper()
	h.write("proc/loadavg", fmt.Sprintf("0.10 0.20 0.30 1/%d 4242\n", count))
}

func (h *fakeHost) route(there bool) {
	h.t.Helper()
	routes := "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
		"eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
	if there {
		routes += "eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
	}
	h.write("proc/net/route", routes)
}

// flags are the agent's flags that make it read this tree.
func (h *fakeHost) flags() []string {
	return []string{"--procfs=" + filepath.Join(h.dir, "proc"), "--sysfs=" + filepath.Join(h.dir, "sys"), "--host-root=" + h.root}
}
