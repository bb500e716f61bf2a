package integration

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/fixtures"
)

// trouble is one way to make a fake host sick, and well again.
type trouble struct {
	condition string // our condition type
	key       string // of the well-known pair
	config    func(*testing.T) string
	begin     func(*fixtures.Host)
	end       func(*fixtures.Host)
	// watched is for how long the kept taint is watched through Node updates.
	watched time.Duration
}

func troubles() map[string]trouble {
	asQuick := func(*testing.T) string { return quick }
	return map[string]trouble{
		"memory": {
			condition: "HostMemoryPressure", key: corev1.TaintNodeMemoryPressure, config: asQuick,
			begin: func(h *fixtures.Host) { h.Memory(2) }, end: func(h *fixtures.Host) { h.Memory(50) }, watched: 30 * time.Second,
		},
		"disk": {
			condition: "HostDiskPressure", key: corev1.TaintNodeDiskPressure, config: diskAlmostFull,
			begin: fill, end: empty, watched: 5 * time.Second,
		},
		"pid": {
			condition: "HostPIDPressure", key: corev1.TaintNodePIDPressure, config: asQuick,
			begin: func(h *fixtures.Host) { h.Tasks(30000) }, end: func(h *fixtures.Host) { h.Tasks(100) }, watched: 5 * time.Second,
		},
		"network": {
			condition: "HostNetworkUnavailable", key: corev1.TaintNodeNetworkUnavailable, config: asQuick,
			begin: func(h *fixtures.Host) { h.Carrier(false) }, end: func(h *fixtures.Host) { h.Carrier(true) }, watched: 5 * time.Second,
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
	return strings.Replace(quick, "disk: {period: 500ms, debounce: {", "disk: {period: 500ms, availablePercent: "+format(threshold)+", debounce: {clearFactor: 1.001, ", 1)
}

// fill crosses the threshold of diskAlmostFull.
func fill(h *fixtures.Host) { h.Fill(5) }

func empty(h *fixtures.Host) {
	h.T.Helper()
	if err := os.Remove(filepath.Join(h.Root, "ballast")); err != nil {
		h.T.Fatal(err)
	}
}
