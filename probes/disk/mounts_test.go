package disk

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes/probetest"
)

// node is the mountinfo of a node, its root an immutable system's, with the
// kubelet on ext4, the runtime on xfs, and some others.
func node(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/1/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// find returns the mount of the best rank in a text.
func find(text []byte, rank func(mountLine) int) (m mount) {
	var search mountSearch
	search.add(rank, &m)
	search.read(bytes.NewReader(text))
	return m
}

func TestMountAbove(t *testing.T) {
	t.Parallel()
	text := node(t)
	for path, want := range map[string]mount{
		"/":                    {point: "/", fsType: "squashfs", source: "/dev/dm-0", readOnly: true, superReadOnly: true},
		"/var/lib/kubelet/x":   {point: "/var/lib/kubelet", fsType: "ext4", source: "/dev/sda9"},
		"/var/lib/kubelet":     {point: "/var/lib/kubelet", fsType: "ext4", source: "/dev/sda9"},
		"/var/lib/kubelets":    {point: "/var", fsType: "ext4", source: "/dev/sda8"},
		"/var/lib/containerd/": {point: "/var/lib/containerd", fsType: "xfs", source: "/dev/sdb1"},
		"/data/my disk/x":      {point: "/data/my disk", fsType: "btrfs", source: "/dev/disk/by-label/my disk"},
		"/mnt/nfs/home":        {point: "/mnt/nfs", fsType: "nfs4", source: "server:/export"},
		"/failed":              {point: "/failed", fsType: "ext4", source: "/dev/sdd1", emergency: true},
		"/downed":              {point: "/downed", fsType: "ext4", source: "/dev/sde1", shutdown: true},
		"/old":                 {point: "/old", fsType: "ext4", source: "/dev/sdf1", superReadOnly: true},
		"/twice":               {point: "/twice", fsType: "tmpfs", source: "second"},
		"/nameless":            {point: "/nameless", fsType: "tmpfs"},
		"/run/containerd/abc/rootfs": {point: "/run/containerd/abc/rootfs", fsType: "overlay", source: "overlay",
			upper: "/var/lib/containerd/snap,shots/17/fs"},
	} {
		if got := find(text, above(path)); got != want {
			t.Errorf("%s lies on %+v, want %+v", path, got, want)
		}
	}
}

func TestMountOnDevice(t *testing.T) {
	t.Parallel()
	text := node(t)
	for _, test := range []struct {
		major, minor uint32
		path, want   string
	}{
		{8, 9, "/var/lib/kubelet/pods", "/var/lib/kubelet"},
		{8, 9, "/scratch", "/var/lib/kubelet"}, // a name of another namespace
		{8, 9, "/var/lib/kubelet/pods/a/volume-subpaths/x/0/file", "/var/lib/kubelet/pods/a/volume-subpaths/x/0"},
		{8, 99, "/", ""},
		{80, 9, "/", ""},
	} {
		if got := find(text, onDevice(unix.Mkdev(test.major, test.minor), test.path)); got.point != test.want {
			t.Errorf("%d:%d above %s is %+v, want %s", test.major, test.minor, test.path, got, test.want)
		}
	}
	if got := find(text, withID(31)); got.point != "/var/lib/kubelet" {
		t.Errorf("mount 31 is %+v", got)
	}
	if got := find(text, withID(3)); got != (mount{}) {
		t.Errorf("mount 3 is %+v", got)
	}
}

// TestMountsOfAPod: an emptyDir, known by its mount in the pod, and the root,
// an overlay that lies on the runtime's file system.
func TestMountsOfAPod(t *testing.T) {
	t.Parallel()
	found := mountsOf("testdata", []wantedMount{{"/scratch", 901, unix.Mkdev(8, 9)}, {"/", 900, unix.Mkdev(0, 77)}, {"/silent", 0, 0}})
	if m := found[0]; m.own.point != "/scratch" || m.own.source != "/dev/sda9" || m.beneath != (mount{}) {
		t.Errorf("the emptyDir: %+v", m)
	}
	if m := found[1]; m.own.fsType != "overlay" || !m.own.readOnly || m.own.superReadOnly || m.beneath.point != "/var/lib/containerd" {
		t.Errorf("the root: %+v", m)
	}
	if found[2] != (pathMounts{}) {
		t.Errorf("a path that has not answered: %+v", found[2])
	}
	// Before Linux 5.8 there is no mount ID.
	found = mountsOf("testdata", []wantedMount{{"/scratch", 0, unix.Mkdev(8, 9)}, {"/gone", 0, unix.Mkdev(8, 8)}})
	if found[0].own.point != "/scratch" || found[1].own.point != "/var" {
		t.Errorf("by device: %+v", found)
	}
	if found := mountsOf("testdata/none", []wantedMount{{"/scratch", 901, unix.Mkdev(8, 9)}}); found[0] != (pathMounts{}) {
		t.Errorf("without mountinfo: %+v", found)
	}
}

func TestOddMountLinesArePassedOver(t *testing.T) {
	t.Parallel()
	good := "31 25 8:9 / /x rw,relatime shared:4 - ext4 /dev/sda9 rw\n"
	for _, odd := range []string{
		"\n", "garbage\n", "31 25 8:9\n", "31 25 8:9 / /x rw - ext4\n", "31 25 8:9 / /x rw ext4 /dev/sda9 rw\n", "31 25 8:9 / /x rw - ext4 /dev/y \n",
		"31  25 8:9 / /x rw - ext4 /dev/y rw\n", strings.Repeat("x", 200_000) + "\n", strings.Repeat("x", 64<<10) + "31 25 8:9 / /x rw - ext4 /dev/long rw\n", "\x00\xff - \x00 \x00 \x00\n",
		"31 25 8:9 / /x rw,lower=" + strings.Repeat("y", 100_000) + " - ext4 /dev/long rw\n",
	} {
		for _, text := range []string{odd + good, good + odd} {
			if got := find([]byte(text), withID(31)); got.source != "/dev/sda9" {
				t.Errorf("%.60q: %+v", text, got)
			}
		}
	}
	if got := find([]byte(strings.TrimSuffix(good, "\n")), withID(31)); got != (mount{}) {
		t.Errorf("a line that was cut off: %+v", got)
	}
}

// TestMountsAgreeWithProcfs compares with another parser, over the lines that
// it takes: one that is odd costs it the whole file.
func TestMountsAgreeWithProcfs(t *testing.T) {
	t.Parallel()
	for name, text := range map[string][]byte{"node": node(t), "this host": readAll(t, "/proc/self/mountinfo")} {
		for line := range bytes.Lines(text) {
			root := t.TempDir()
			if err := os.MkdirAll(filepath.Join(root, "1"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, "1", "mountinfo"), line, 0o600); err != nil {
				t.Fatal(err)
			}
			tree, err := procfs.NewFS(root)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := tree.GetProcMounts(1)
			if err != nil || len(theirs) != 1 {
				t.Logf("%s: procfs refuses %q: %v", name, line, err)
				continue
			}
			ours := find(line, withID(uint64(theirs[0].MountID)))
			_, readOnly := theirs[0].Options["ro"]
			_, superReadOnly := theirs[0].SuperOptions["ro"]
			_, emergency := theirs[0].SuperOptions["emergency_ro"]
			if ours.point != unescape([]byte(theirs[0].MountPoint)) || ours.fsType != theirs[0].FSType ||
				ours.source != unescape([]byte(theirs[0].Source)) || ours.readOnly != readOnly ||
				ours.superReadOnly != superReadOnly || ours.emergency != emergency {
				t.Errorf("%s: %q is %+v, procfs says %+v", name, line, ours, theirs[0])
			}
		}
	}
}

func readAll(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestUnescape(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`/a\040b`: "/a b", `\011\012\134\043`: "\t\n\\#", `/a\04`: `/a\04`, `/a\`: `/a\`, `\999`: `\999`, `\400`: `\400`, `\\040`: `\ `, "": "",
	} {
		if got := unescape([]byte(text)); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func FuzzMounts(f *testing.F) {
	for line := range bytes.Lines(node(f)) {
		f.Add(line, "/var/lib/kubelet/x", uint64(31))
	}
	f.Add(node(f), "/", uint64(1))
	f.Add([]byte(probetest.Binary), "/\xff", uint64(0))
	f.Fuzz(func(t *testing.T, text []byte, path string, number uint64) {
		m := find(text, above(path))
		below, ok := strings.CutPrefix(path, strings.TrimSuffix(m.point, "/"))
		if !ok || m.point != path && m.point != "" && !strings.HasPrefix(below, "/") {
			t.Errorf("%q is not above %q", m.point, path)
		}
		for _, m := range []mount{m, find(text, withID(number)), find(text, onDevice(number, path))} {
			if m == (mount{}) {
				continue
			}
			if m.point == "" || m.fsType == "" || m.upper != "" && m.upper[0] != '/' {
				t.Errorf("%+v", m)
			}
			for _, fell := range []bool{false, true} {
				o := someDisk.judge(sample{fileSystems: []fileSystem{half("/")}, mounts: []mountSample{{"/x", m, fell}}})
				o.Certain = false
				probetest.WellFormed(t, o)
			}
		}
	})
}

// manyMounts is the mountinfo of a node with many pods: 5,000 lines.
func manyMounts() []byte {
	var text bytes.Buffer
	text.WriteString("25 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n31 25 8:9 / /var/lib/kubelet rw,relatime shared:4 - ext4 /dev/sda9 rw\n")
	for i := range 4998 {
		layer := "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/"
		if i%10 == 0 {
			fmt.Fprintf(&text, "%d 25 0:%d / /run/containerd/io.containerd.runtime.v2.task/k8s.io/%064x/rootfs rw,relatime shared:%d - overlay overlay rw,lowerdir=", i+100, i+50, i, i)
			for layerID := range 12 {
				fmt.Fprintf(&text, "%s%d/fs:", layer, layerID)
			}
			fmt.Fprintf(&text, "/x,upperdir=%s%d/fs,workdir=%s%d/work\n", layer, i, layer, i)
			continue
		}
		fmt.Fprintf(&text, "%d 25 0:%d / /var/lib/kubelet/pods/%08x-aaaa-bbbb-cccc-0123456789ab/volumes/kubernetes.io~projected/kube-api-access-x rw,relatime shared:%d - tmpfs tmpfs rw,size=65536k,inode64\n", i+100, i+50, i, i)
	}
	return text.Bytes()
}

// procOfManyPods is a procfs with that mountinfo.
func procOfManyPods(b *testing.B) string {
	b.Helper()
	proc := b.TempDir()
	for _, process := range []string{"1", "self"} {
		if err := os.Mkdir(filepath.Join(proc, process), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, process, "mountinfo"), manyMounts(), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return proc
}

func BenchmarkMountsOfManyPods(b *testing.B) {
	proc := procOfManyPods(b)
	wanted := []wantedMount{{"/", 25, unix.Mkdev(254, 0)}, {"/var/lib/kubelet", 31, unix.Mkdev(8, 9)}, {"/run", 25, unix.Mkdev(254, 0)}}
	b.ReportAllocs()
	for b.Loop() {
		mountsOf(proc, wanted)
	}
}
