package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
	"github.com/taintlet/taintlet/test/probetest"
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
func find(text []byte, rank func(mountLine) int) mount {
	var search mountSearch
	search.add(rank, new(mount))
	if err := hostfile.MountLines(bytes.NewReader(text), search.take); err != nil {
		panic(err) // a text in memory can be read
	}
	return search[0].at
}

func TestMountAbove(t *testing.T) {
	t.Parallel()
	text := node(t)
	for path, want := range map[string]mount{
		"/":                    {point: "/", fsType: "squashfs", source: "/dev/dm-0", readOnly: true, superReadOnly: true},
		"/var/lib/kubelet/x":   {point: "/var/lib/kubelet", fsType: "ext4", source: "/dev/sda9"},
		"/var/lib/kubelet":     {point: "/var/lib/kubelet", fsType: "ext4", source: "/dev/sda9"},
		"/var/lib/kubelets":    {point: "/var", fsType: "ext4", source: "/dev/sda8"},
		"/var/lib/containerd/": {point: "/var/lib/containerd", fsType: "xfs", source: "/dev/sdb1", quota: true},
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
		got := find(text, above(path))
		got.id, got.device, got.root = 0, 0, ""
		if got != want {
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
	found := mountsOf(probes.Host{Proc: "testdata"}, []wantedMount{{path: "/scratch", mountID: 901, device: unix.Mkdev(8, 9)}, {path: "/", mountID: 900, device: unix.Mkdev(0, 77)}, {path: "/silent", mountID: 0, device: 0}})
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
	found = mountsOf(probes.Host{Proc: "testdata"}, []wantedMount{{path: "/scratch", mountID: 0, device: unix.Mkdev(8, 9)}, {path: "/gone", mountID: 0, device: unix.Mkdev(8, 8)}})
	if found[0].own.point != "/scratch" || found[1].own.point != "/var" {
		t.Errorf("by device: %+v", found)
	}
	points := []wantedMount{{path: "/var/lib/containerd", point: "/var/lib/containerd"}, {path: "/var/lib", point: "/var/lib"}}
	if found := mountsOf(probes.Host{Proc: "testdata"}, points); found[0].isBare() || !found[1].isBare() {
		t.Errorf("mount points: %+v", found)
	}
	if found := mountsOf(nowhere, points); found[1].isBare() {
		t.Errorf("without mountinfo, nothing is mounted: %+v", found)
	}
	if found := mountsOf(nowhere, []wantedMount{{path: "/scratch", mountID: 901, device: unix.Mkdev(8, 9)}}); found[0] != (pathMounts{}) {
		t.Errorf("without mountinfo: %+v", found)
	}
}

// TestFileOfTheRuntime: beside the container's own files the runtime keeps its others, also where
// the name of the upper directory leads through a symbolic link, here to /dev/sdc1.
func TestFileOfTheRuntime(t *testing.T) {
	t.Parallel()
	const overlay = "900 700 0:77 / / ro - overlay overlay rw,upperdir=/var/lib/containerd/snapshots/17/fs\n"
	const host = "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n31 25 8:33 / /data rw - xfs /dev/sdc1 rw,emergency_ro,prjquota\n"
	file := func(root, point, fsType string) string {
		return "903 900 8:33 " + root + " " + point + " ro - " + fsType + " /dev/sdc1 rw,prjquota\n"
	}
	const sandbox = "/containerd/io.containerd.grpc.v1.cri/sandboxes/5f/resolv.conf"
	for name, test := range map[string]struct{ self, first, source, through string }{
		"containerd":            {overlay + file(sandbox, "/etc/resolv.conf", "xfs"), host, "/dev/sdc1", "/etc/resolv.conf"},
		"Docker":                {overlay + file("/docker/containers/5f/hostname", "/etc/hostname", "xfs"), host, "/dev/sdc1", "/etc/hostname"},
		"without process 1":     {overlay + file(sandbox, "/etc/resolv.conf", "xfs"), "", "/dev/sdc1", "/etc/resolv.conf"},
		"CRI-O":                 {overlay + file("/containers/storage/overlay-containers/5f/userdata/resolv.conf", "/etc/resolv.conf", "tmpfs"), host, "/dev/sda1", ""},
		"a file of the kubelet": {overlay + file("/var/lib/kubelet/pods/5f/etc-hosts", "/etc/hosts", "xfs"), host, "/dev/sda1", ""},
		"no file":               {overlay, host, "/dev/sda1", ""},
		"layers elsewhere":      {overlay + file(sandbox, "/etc/resolv.conf", "xfs"), host + "32 25 8:49 / /var/lib/containerd/snapshots rw - ext4 /dev/sdd1 rw\n", "/dev/sdd1", ""},
		"no quota":              {overlay + strings.Replace(file(sandbox, "/etc/resolv.conf", "xfs"), ",prjquota", "", 1), "", "/dev/sdc1", ""},
	} {
		h := probes.Host{Proc: t.TempDir()}
		for process, text := range map[string]string{"self": test.self, "1": test.first} {
			path := filepath.Join(h.Proc, process, "mountinfo")
			if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		m := mountsOf(h, []wantedMount{{path: "/", mountID: 900, device: unix.Mkdev(0, 77)}})[0]
		if m.beneath.source != test.source || m.through.point != test.through || m.beneath.emergency != (test.source == "/dev/sdc1" && test.first != "") {
			t.Errorf("%s: beneath is %+v, through is %+v", name, m.beneath, m.through)
		}
	}
}

// countingReader counts how much is read, a page at a time as from procfs.
type countingReader struct {
	from io.Reader
	read int
}

func (r *countingReader) Read(into []byte) (n int, err error) {
	n, err = r.from.Read(into[:min(len(into), 4096)])
	r.read += n
	return n, err
}

// TestSearchEndsWithTheLastMountWanted: the rest of a long mountinfo is not read.
func TestSearchEndsWithTheLastMountWanted(t *testing.T) {
	t.Parallel()
	kubelet := mount{id: 31, device: unix.Mkdev(8, 9), point: "/var/lib/kubelet", fsType: "ext4"}
	moved := kubelet
	moved.point = "/elsewhere"
	for _, test := range []struct {
		name   string
		ranks  []func(mountLine) int
		isLong bool
	}{
		{"by ID", []func(mountLine) int{withID(25), withID(31)}, false},
		{"known before", []func(mountLine) int{withID(25), again(kubelet, above("/var/lib/kubelet/x"))}, false},
		{"known elsewhere", []func(mountLine) int{again(moved, above("/var/lib/kubelet/x"))}, true},
		{"not known", []func(mountLine) int{withID(31), again(mount{}, above("/var/lib/kubelet/x"))}, true},
		{"by device", []func(mountLine) int{onDevice(unix.Mkdev(8, 9), "/scratch")}, true},
		{"not there", []func(mountLine) int{withID(99_999_999)}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var search mountSearch
			for _, rank := range test.ranks {
				search.add(rank, new(mount))
			}
			text := &countingReader{from: bytes.NewReader(manyMounts())}
			if err := hostfile.MountLines(text, search.take); err != nil {
				t.Fatal(err)
			}
			if isLong := text.read == len(manyMounts()); isLong != test.isLong || !isLong && text.read > 8192 {
				t.Errorf("%d bytes of %d were read", text.read, len(manyMounts()))
			}
			if last := search[len(search)-1].at; test.name != "not there" && last.point != "/var/lib/kubelet" {
				t.Errorf("found %+v", last)
			}
		})
	}
}

// TestOverlayStaysOnItsMount: what is mounted over the directory of an overlay later
// does not take its writes.
func TestOverlayStaysOnItsMount(t *testing.T) {
	t.Parallel()
	h := probes.Host{Proc: t.TempDir()}
	write := func(process, text string) {
		t.Helper()
		path := filepath.Join(h.Proc, process, "mountinfo")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const (
		root    = "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
		runtime = "31 25 8:17 / /var/lib/containerd rw - ext4 /dev/sdb1 rw\n"
		over    = "77 31 8:33 / /var/lib/containerd ro - ext4 /dev/sdc1 ro\n"
	)
	write("self", "900 700 0:77 / / rw - overlay overlay rw,upperdir=/var/lib/containerd/17/fs\n")
	wanted := wantedMount{path: "/", mountID: 900, device: unix.Mkdev(0, 77)}
	for i, step := range []struct{ mounts, source string }{
		{root + runtime, "/dev/sdb1"},
		{root + runtime + over, "/dev/sdb1"},
		{root + strings.Replace(runtime, " rw\n", " rw,emergency_ro\n", 1) + over, "/dev/sdb1"},
		{root + strings.Replace(runtime, "8:17", "8:49", 1) + over, ""}, // its ID is another's
		{root + over, ""}, // it is gone, and no upper directory lies on what is read-only
		{root, "/dev/sda1"},
	} {
		write("1", step.mounts)
		found := mountsOf(h, []wantedMount{wanted})[0]
		if found.beneath.source != step.source || found.beneath.emergency != strings.Contains(step.mounts, "emergency_ro") {
			t.Errorf("step %d: %+v", i, found.beneath)
		}
		wanted.known = found
	}
}

// TestMountsThatCannotBeReadStayKnown: an agent out of file descriptors must not
// forget that a file system failed.
func TestMountsThatCannotBeReadStayKnown(t *testing.T) {
	t.Parallel()
	wanted := []wantedMount{{path: "/", mountID: 900, device: unix.Mkdev(0, 77)}}
	found := mountsOf(probes.Host{Proc: "testdata"}, wanted)
	if found[0].own.fsType != "overlay" || found[0].beneath.fsType != "xfs" {
		t.Fatalf("%+v", found)
	}
	wanted[0].known = found[0]
	if again := mountsOf(nowhere, wanted); again[0] != found[0] {
		t.Errorf("%+v after %+v", again, found)
	}
	unreadable := probes.Host{Proc: t.TempDir()}
	for _, process := range []string{"1", "self"} { // a directory opens, and cannot be read
		if err := os.MkdirAll(filepath.Join(unreadable.Proc, process, "mountinfo"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if again := mountsOf(unreadable, wanted); again[0] != found[0] {
		t.Errorf("%+v after %+v", again, found)
	}
}

// TestMountinfoIsBounded: of one without an end, what is found exactly holds.
func TestMountinfoIsBounded(t *testing.T) {
	t.Parallel()
	if whole := len(manyMounts()) / 5000 * 100_000; whole > hostfile.MostMountinfo {
		t.Errorf("100,000 mounts, as many as the kernel allows, take %d bytes", whole)
	}
	h := probes.Host{Proc: t.TempDir()}
	path := filepath.Join(h.Proc, "self", "mountinfo")
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, manyMounts(), 0o600)); err != nil {
		t.Fatal(err)
	}
	byDevice := wantedMount{path: "/var/lib/kubelet", device: unix.Mkdev(8, 9)}
	wanted := []wantedMount{{path: "/", mountID: 25, device: unix.Mkdev(254, 0)}, byDevice}
	if found := mountsOf(h, wanted); found[0].own.id != 25 || found[1].own.id != 31 {
		t.Errorf("5,000 mounts: %+v", found)
	}
	if err := os.Truncate(path, 2*hostfile.MostMountinfo); err != nil {
		t.Fatal(err)
	}
	if found := mountsOf(h, wanted); found[0].own.id != 25 || found[1].own.id != 0 {
		t.Errorf("without an end: %+v", found)
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
				o := someDisk.judge(onMount(mountSample{mount: m, fell: fell})).join()
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
