package disk

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

var update = flag.Bool("update", false, "write what the probe says into testdata: hosts.txt of each recorded host, messages.golden of each reason")

// The agent's defaults.
var (
	defaultDisk  = Thresholds{AvailablePercent: 10, InodesPercent: 5, BlockedAfter: 30 * time.Second, ClearFactor: 1.5}
	defaultPaths = []string{"/", "/var/lib/kubelet", "/var/lib/containerd"}
)

func TestHosts(t *testing.T) {
	t.Parallel()
	probetest.Hosts(t, *update, func(name string, h probes.Host) []string {
		kernel := h
		if probetest.IsEdge(name) {
			kernel = probetest.WellHost() // a garbled mountinfo does not change the mounts
		}
		p := recorded(h, kernel)
		return []string{probetest.Text(p.Observe(t.Context()))}
	})
}

// No file of the disk's is without another that tells the same: none makes the
// probe Unknown.
func TestEdgesTouchTheirConditionAlone(t *testing.T) {
	t.Parallel()
	probetest.Edges(t, func(h probes.Host) probes.Observation {
		return recorded(h, probetest.WellHost()).Observe(t.Context())
	}, nil, nil)
}

// recorded is the probe of a recorded host, whose mounts the kernel has.
func recorded(h, kernel probes.Host) *Probe {
	p := New(probes.Host{Root: "/", Proc: h.Proc, Sys: h.Sys}, defaultPaths, defaultDisk)
	p.samplePath = func(_, path string) (pathSample, error) { return sampleIn(kernel, path) }
	return p
}

// sampleIn is what the kernel would say of a path, by the reader's mountinfo:
// statfs(2) tells the kind of a file system, whose numbers are made up.
func sampleIn(kernel probes.Host, path string) (s pathSample, err error) {
	text, err := os.ReadFile(filepath.Join(kernel.Proc, "self", "mountinfo"))
	if err != nil {
		return s, err
	}
	closest := 0
	for line := range bytes.Lines(text) {
		l, ok := splitMountLine(bytes.TrimSuffix(line, []byte("\n")))
		if rank := above(path)(l); !ok || rank < closest || rank == 0 {
			continue
		} else {
			closest = rank
		}
		m := l.mount()
		s = pathSample{readOnly: m.readOnly || m.superReadOnly}
		if s.fileSystem, err = statfsOf(m.fsType, path); err != nil {
			return s, err
		}
		if s.mountID, err = strconv.ParseUint(string(l.id), 10, 64); err != nil {
			return s, err
		}
		if s.device, err = deviceOf(string(l.device)); err != nil {
			return s, err
		}
	}
	if closest == 0 {
		return s, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return s, nil
}

func deviceOf(text string) (uint64, error) {
	var major, minor uint32
	_, err := fmt.Sscanf(text, "%d:%d", &major, &minor)
	return unix.Mkdev(major, minor), err
}

// statfsOf has a half of all free, in file systems that can have anything
// free. Images have not: squashfs_statfs (fs/squashfs/super.c) says that no block
// and no inode is free, erofs_statfs (fs/erofs/super.c) that no block is, and
// that there is no end of inodes.
func statfsOf(fsType, path string) (fileSystem, error) {
	const blocks = 300 * mib / 4096
	var f fileSystem
	var err error
	switch fsType {
	case "squashfs":
		f, err = fromStatfs(&unix.Statfs_t{Type: unix.SQUASHFS_MAGIC, Bsize: 4096, Blocks: blocks, Files: 5000})
	case "erofs":
		f, err = fromStatfs(&unix.Statfs_t{Type: unix.EROFS_SUPER_MAGIC_V1, Bsize: 4096, Blocks: blocks, Files: math.MaxUint64, Ffree: math.MaxUint64 - 5000})
	case "btrfs":
		f = half(path)
		f.inodesFree, f.inodesTotal = 0, 0
	default:
		f = half(path)
	}
	f.path = path
	return f, err
}
