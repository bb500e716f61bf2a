package integration

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// fakeHost is a tree of /proc and /sys and a root file system that a test can
// make sick. Probes read it as they would read a host.
//
// Routes are not files: the agent asks the kernel of this machine for them. The
// tree has the carrier of the interface that the kernel then names.
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
	h.carrier(true)
	h.write("proc/sys/kernel/pid_max", "32768\n")
	h.write("proc/sys/kernel/threads-max", "100000\n")
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

// carrier gives this machine's uplink its carrier or takes it.
func (h *fakeHost) carrier(there bool) {
	h.t.Helper()
	text := "0\n"
	if there {
		text = "1\n"
	}
	h.write(uplinkCarrier(h.t), text)
}

// uplinkCarrier is the file of the carrier of the interface that has this
// machine's default route.
func uplinkCarrier(t *testing.T) string {
	t.Helper()
	c, err := net.Dial("udp", "192.0.2.1:9") // sends nothing
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

// flags are the agent's flags that make it read this tree.
func (h *fakeHost) flags() []string {
	return []string{"--procfs=" + filepath.Join(h.dir, "proc"), "--sysfs=" + filepath.Join(h.dir, "sys"), "--host-root=" + h.root}
}

// trouble is one way to make a fake host sick, and well again.
type trouble struct {
	condition string // our condition type
	key       string // of the well-known pair
	config    func(*testing.T) string
	begin     func(*fakeHost)
	end       func(*fakeHost)
	// watched is for how long the kept taint is watched through Node updates.
	watched time.Duration
}

func troubles() map[string]trouble {
	asQuick := func(*testing.T) string { return quick }
	return map[string]trouble{
		"memory": {
			condition: "HostMemoryPressure", key: corev1.TaintNodeMemoryPressure, config: asQuick,
			begin: func(h *fakeHost) { h.memory(2) }, end: func(h *fakeHost) { h.memory(50) }, watched: 30 * time.Second,
		},
		"disk": {
			condition: "HostDiskPressure", key: corev1.TaintNodeDiskPressure, config: diskAlmostFull,
			begin: fill, end: func(h *fakeHost) { h.empty() }, watched: 5 * time.Second,
		},
		"pid": {
			condition: "HostPIDPressure", key: corev1.TaintNodePIDPressure, config: asQuick,
			begin: func(h *fakeHost) { h.tasks(30000) }, end: func(h *fakeHost) { h.tasks(100) }, watched: 5 * time.Second,
		},
		"network": {
			condition: "HostNetworkUnavailable", key: corev1.TaintNodeNetworkUnavailable, config: asQuick,
			begin: func(h *fakeHost) { h.carrier(false) }, end: func(h *fakeHost) { h.carrier(true) }, watched: 5 * time.Second,
		},
	}
}

// The tmpfs of the hosts' root file systems is one for all of them: one test at
// a time may fill it.
var tmpfs sync.Mutex

// The sizes that cross the disk's threshold: ballast is a twentieth of what is
// free, the threshold lies a bit more than halfway down. Until the test ends, no
// other gets past here.
func diskAlmostFull(t *testing.T) string {
	t.Helper()
	tmpfs.Lock()
	t.Cleanup(tmpfs.Unlock)
	var fs syscall.Statfs_t
	if err := syscall.Statfs("/dev/shm", &fs); err != nil {
		t.Fatal(err)
	}
	percent := float64(fs.Bavail) / float64(fs.Blocks) * 100
	threshold := percent * 0.97
	return strings.Replace(quick, "disk: {", "disk: {availablePercent: "+format(threshold)+", clearFactor: 1.001, ", 1)
}

func fill(h *fakeHost) {
	h.t.Helper()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(h.root, &fs); err != nil {
		h.t.Fatal(err)
	}
	ballast, err := os.Create(filepath.Join(h.root, "ballast"))
	if err != nil {
		h.t.Fatal(err)
	}
	defer ballast.Close() //nolint:errcheck // nothing was written through it
	size := int64(fs.Bavail) * fs.Bsize / 20
	if err := syscall.Fallocate(int(ballast.Fd()), 0, 0, size); err != nil {
		h.t.Fatal(err)
	}
}

func (h *fakeHost) empty() {
	h.t.Helper()
	if err := os.Remove(filepath.Join(h.root, "ballast")); err != nil {
		h.t.Fatal(err)
	}
}
