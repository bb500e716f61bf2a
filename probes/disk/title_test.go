package disk

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// Two paths of a pod, and in the messages the file systems as the host knows them.
func TestFileSystemsHaveTheHostsNames(t *testing.T) {
	t.Parallel()
	sda, sdb := unix.Mkdev(8, 1), unix.Mkdev(8, 17)
	root := mount{point: "/", fsType: "overlay", source: "overlay", upper: "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/17/fs"}
	emptyDir := mount{point: "/scratch", root: "/var/lib/kubelet/pods/5f/volumes/kubernetes.io~empty-dir/scratch", fsType: "ext4", source: "/dev/sda1", device: sda}
	ownDisk := emptyDir
	ownDisk.root = "/pods/5f/volumes/kubernetes.io~empty-dir/scratch"
	on := func(device uint64, source, fsType string) mount {
		return mount{point: "/x", device: device, source: source, fsType: fsType}
	}
	data := func(host string, own mount) pathMounts { return pathMounts{own: own, host: mount{point: host}} }
	for name, test := range map[string]struct {
		root, scratch pathMounts
		full          string
		want          string
	}{
		"the kubelet's":          {pathMounts{own: root, beneath: on(sdb, "/dev/sdb1", "xfs")}, pathMounts{own: emptyDir}, "/scratch", "the kubelet's file system, /dev/sda1 ext4"},
		"the runtime's":          {pathMounts{own: root, beneath: on(sdb, "/dev/sdb1", "xfs")}, pathMounts{own: ownDisk}, "/", "the container runtime's file system, /dev/sdb1 xfs"},
		"one disk of both":       {pathMounts{own: root, beneath: on(sda, "/dev/sda1", "ext4")}, pathMounts{own: ownDisk}, "/", "the kubelet's and the container runtime's file system, /dev/sda1 ext4"},
		"without process 1":      {pathMounts{own: root}, pathMounts{own: emptyDir}, "/", "the container runtime's file system"},
		"another disk":           {pathMounts{own: root}, data("/data", on(sdb, "/dev/sdb1", "xfs")), "/scratch", "the file system at /data, /dev/sdb1 xfs"},
		"the root, without name": {data("/", on(sdb, "none", "tmpfs")), pathMounts{own: emptyDir}, "/", "the root file system, tmpfs"},
		"not found":              {pathMounts{}, pathMounts{own: emptyDir}, "/", "the file system of /"},
		"a quota":                {pathMounts{own: root, beneath: mount{device: sdb, source: "/dev/sdb1", fsType: "xfs", quota: true}}, pathMounts{own: emptyDir}, "/", "the container runtime's file system, /dev/sdb1 xfs, as a container sees it"},
	} {
		d := New(nowhere, []string{"/", "/scratch"}, someDisk)
		d.samplePath = func(_, path string) (pathSample, error) {
			f := half("")
			f.device = uint64(len(path))
			if path == test.full {
				f.available = gib
			}
			return pathSample{fileSystem: f}, nil
		}
		d.mounts.read = func([]wantedMount) []pathMounts { return []pathMounts{test.root, test.scratch} }
		t.Run(name, func(t *testing.T) {
			probetest.Check(t, probetest.Observe(t, d), probes.Degraded, "SpaceLow", "on "+test.want+", threshold 10 %")
		})
	}
}

// The runtime gives each container a quota of 10 GiB, of which nothing is used. What lies beneath
// is full, as another path or a file of the runtime shows.
func TestQuotaOfAContainerDoesNotCount(t *testing.T) {
	t.Parallel()
	sda := unix.Mkdev(8, 1)
	own := mount{point: "/", fsType: "overlay", upper: "/var/lib/docker/overlay2/5f/diff"}
	beneath := mount{point: "/var/lib/docker", fsType: "xfs", source: "/dev/sda1", device: sda, quota: true}
	emptyDir := pathMounts{own: mount{point: "/scratch", root: "/volumes/kubernetes.io~empty-dir/x", fsType: "xfs", source: "/dev/sda1", device: sda}}
	for name, mounts := range map[string][]pathMounts{
		"a file of the runtime": {{own: own, beneath: beneath, isSure: true, through: mount{point: "/etc/hostname"}}, {}},
		"another path":          {{own: own, beneath: beneath, isSure: true}, emptyDir},
		"a larger one":          {{own: own, beneath: beneath}, emptyDir}, // the name leads through a link to another disk, and both count
	} {
		d := New(nowhere, []string{"/", "/scratch"}, someDisk)
		d.samplePath = func(_, path string) (pathSample, error) {
			switch {
			case path == "/" && name == "a larger one":
				return pathSample{fileSystem: fileSystem{"", 7, 500 * gib, 1000 * gib, 0, 0}}, nil
			case path == "/":
				return pathSample{fileSystem: fileSystem{"", 7, 9 * gib, 10 * gib, 0, 0}}, nil
			case path == "/etc/hostname" || name != "a file of the runtime":
				return pathSample{fileSystem: fileSystem{"", 8, gib, 100 * gib, 0, 0}}, nil
			}
			return pathSample{fileSystem: half("")}, nil
		}
		d.mounts.read = func([]wantedMount) []pathMounts { return mounts }
		for range 2 {
			probetest.Check(t, probetest.Observe(t, d), probes.Degraded, "SpaceLow", "available 1 GiB of 100 GiB (1.0 %)")
		}
	}
}
