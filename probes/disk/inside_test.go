package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// tree makes directories, files ("text") and links in a directory of its own. A name
// that ends in a slash is a directory, one with an arrow is a link.
func tree(t testing.TB, names ...string) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, name := range names {
		link, target, isLink := strings.Cut(name, " -> ")
		path := filepath.Join(root, link)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		switch {
		case isLink:
			err = errors.Join(err, os.Symlink(target, path))
		case strings.HasSuffix(name, "/"):
			err = errors.Join(err, os.MkdirAll(path, 0o700))
		default:
			err = errors.Join(err, os.WriteFile(path, nil, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// opening is what opening a path leads to: the file's inode, or an error.
func opening(t testing.TB, root, path string) string {
	t.Helper()
	descriptor, err := openInside(root, path)
	if err != nil {
		return errorText(err)
	}
	defer unix.Close(descriptor) //nolint:errcheck // nothing was written
	var file unix.Stat_t
	if err := unix.Fstat(descriptor, &file); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("inode ", file.Ino)
}

func TestLinksStayInsideTheRoot(t *testing.T) {
	t.Parallel()
	// As microk8s and k0s have it (minio/directpv#816).
	root := tree(t, "var/snap/microk8s/common/kubelet/", "var/lib/kubelet -> /var/snap/microk8s/common/kubelet",
		"etc/passwd", "home -> /absolute/../var/./lib//", "absolute -> /var", "up -> ../../../../var/lib", "var/lib/file", "toFile -> var/lib/file",
		"loop -> /loop", "ping -> pong", "pong -> /ping", "dangling -> /none", "self -> .", "top -> /")
	inode := func(path string) string {
		var file unix.Stat_t
		if err := unix.Stat(filepath.Join(root, path), &file); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint("inode ", file.Ino)
	}
	loop, missing, noDirectory := unix.ELOOP.Error(), unix.ENOENT.Error(), unix.ENOTDIR.Error()
	for path, want := range map[string]string{
		"/":                                 inode("."),
		"/var/lib/kubelet":                  inode("var/snap/microk8s/common/kubelet"),
		"/var/lib/kubelet/":                 inode("var/snap/microk8s/common/kubelet"),
		"/var/lib/kubelet/../../../..":      inode("var"),
		"/home":                             inode("var/lib"),
		"/up":                               inode("var/lib"),
		"/../../etc":                        inode("etc"),
		"/toFile":                           inode("var/lib/file"),
		"/self/self/top/self/etc":           inode("etc"),
		"/loop":                             loop,
		"/ping/x":                           loop,
		"/dangling":                         missing,
		"/etc/none/x":                       missing,
		"/toFile/":                          noDirectory,
		"/toFile/..":                        noDirectory,
		"/etc/passwd/.":                     noDirectory,
		"/etc/passwd/x":                     noDirectory,
		"/etc" + strings.Repeat("/", 100):   inode("etc"),
		strings.Repeat("/self", 39) + "/up": inode("var/lib"),
		strings.Repeat("/self", 41):         loop,
	} {
		if got := opening(t, root, path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestPathsLeaveNoDescriptor counts the open files of this process.
func TestPathsLeaveNoDescriptor(t *testing.T) {
	root := tree(t, "a/b/c/", "a/link -> /a/b/c", "loop -> loop")
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skipf("cannot count: %v", err)
		}
		return len(entries)
	}
	before := count()
	for range 100 {
		for _, path := range []string{"/a/b/../link", "/a/b/c", "/loop", "/a/none", "/", "/a/.."} {
			opening(t, root, path)
		}
	}
	if after := count(); after > before+50 { // other tests open files too
		t.Errorf("%d open files, and %d before", after, before)
	}
}

func TestDiskPathsAreUnderTheRoot(t *testing.T) {
	t.Parallel()
	root := tree(t, "var/lib/", "inside -> var/lib", "absolute -> /var/lib", "outside -> /proc", "upward -> ../../proc", "loop -> /loop")
	for path, wrong := range map[string]string{
		"/": "", "/var/lib": "", "/inside": "", "/absolute": "", "/../var": "",
		"/proc": "NoFileSystem", "/outside": "NoFileSystem", "/upward": "NoFileSystem", "/../proc": "NoFileSystem", "/var/none": "NoFileSystem",
		"/loop": "StatfsFailed",
	} {
		o := probetest.Observe(t, New(probes.Host{Root: root}, []string{path}, someDisk))
		if wrong == "" && o.Level == probes.Unknown || wrong != "" && o.Reason != wrong {
			t.Errorf("%s: %+v, want reason %q", path, o, wrong)
		}
	}
	o := probetest.Observe(t, New(probes.Host{Root: filepath.Join(root, "none")}, []string{"/"}, someDisk))
	probetest.Check(t, o, probes.Unknown, "StatfsFailed", "opening: the host's root")
}

func TestWriteDirectoryIsUnderTheRoot(t *testing.T) {
	t.Parallel()
	root := tree(t, "scratch/", "absolute -> /scratch", "outside -> /tmp", "file")
	for directory, reason := range map[string]string{
		"/scratch": "WritePrompt", "/absolute": "WritePrompt", "/../scratch": "WritePrompt",
		"/none": "WriteDirectoryUnusable", "/outside": "WriteDirectoryUnusable", "/../tmp": "WriteDirectoryUnusable", "/file": "WriteDirectoryUnusable",
	} {
		w := Write{Directory: directory}
		o := probetest.Observe(t, New(probes.Host{Root: root, Proc: "/proc"}, nil, Thresholds{}, w))
		if o.Reason != reason {
			t.Errorf("%s: %+v, want %s", directory, o, reason)
		}
	}
	if left := names(t, filepath.Join(root, "scratch")); len(left) != 0 {
		t.Errorf("%q is left", left)
	}
}
