package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
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
func opening(t testing.TB, open func(root, path string) (int, error), root, path string) string {
	t.Helper()
	descriptor, err := open(root, path)
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

// resolve lets the kernel resolve the path, by which ours is checked.
func resolve(root, path string) (descriptor int, err error) {
	top, err := openAt(root, unix.O_DIRECTORY)
	if err != nil {
		// Not wrapped, because a missing root is trouble, unlike a missing path
		// in it.
		return -1, fmt.Errorf("the host's root: %v", err) //nolint:errorlint // on purpose
	}
	defer unix.Close(top) //nolint:errcheck // nothing was written
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
	open := func() (err error) {
		descriptor, err = unix.Openat2(top, path, &how)
		return err
	}
	// O_DIRECTORY makes the kernel mount what autofs mounts on demand.
	err = uninterrupted(open)
	if errors.Is(err, unix.ENOTDIR) {
		how.Flags &^= unix.O_DIRECTORY
		err = uninterrupted(open)
	}
	return descriptor, err
}

// waysInside are the two ways to open a path inside a root.
var waysInside = map[string]func(root, path string) (int, error){"openat2": resolve, "walk": openInside}

// hasOpenat2 skips the test of openat2 where the kernel lacks it.
func hasOpenat2(t testing.TB, way string) {
	t.Helper()
	if _, err := resolve("/", "."); way == "openat2" && err != nil {
		t.Skipf("no openat2 here: %v", err)
	}
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
		for name, way := range waysInside {
			t.Run(name+path, func(t *testing.T) {
				hasOpenat2(t, name)
				if got := opening(t, way, root, path); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			})
		}
	}
}

// TestWalkAgreesWithTheKernel compares the two ways on trees of random links.
func TestWalkAgreesWithTheKernel(t *testing.T) {
	t.Parallel()
	hasOpenat2(t, "openat2")
	random := rand.New(rand.NewPCG(3, 4))
	somePath := func() string {
		parts := make([]string, 1+random.IntN(5))
		for i := range parts {
			parts[i] = []string{"a", "b", "c", "d", "..", ".", ""}[random.IntN(7)]
		}
		return strings.Join(parts, "/")
	}
	outcomes := map[string]int{}
	for range 60 {
		root := tree(t, "a/a/", "b/c/", "c")
		for range 12 {
			target := somePath()
			if target == "" {
				continue
			}
			// Where the name is taken or the directory is none, the tree has one link less.
			os.Symlink(target, filepath.Join(root, []string{"a/b", "b/a", "d", "a/a/c", "b/c/d", "a/d"}[random.IntN(6)])) //nolint:errcheck // see above
		}
		for range 50 {
			path := "/" + somePath()
			kernel, ours := opening(t, resolve, root, path), opening(t, openInside, root, path)
			if kernel != ours {
				t.Errorf("%s: openat2 says %s, the walk %s", path, kernel, ours)
			}
			kind, _, _ := strings.Cut(ours, " ")
			outcomes[kind]++
		}
	}
	if len(outcomes) < 4 { // an inode, ENOENT, ENOTDIR and ELOOP begin with words of their own
		t.Errorf("the trees are too simple: %v", outcomes)
	}
}

// TestWaysInsideLeaveNoDescriptor counts the open files of this process.
func TestWaysInsideLeaveNoDescriptor(t *testing.T) {
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
			for _, way := range waysInside {
				opening(t, way, root, path)
			}
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

func BenchmarkSampleInside(b *testing.B) {
	root := tree(b, "var/snap/microk8s/common/kubelet/", "var/lib/kubelet -> /var/snap/microk8s/common/kubelet")
	for name, way := range waysInside {
		b.Run(name, func(b *testing.B) {
			hasOpenat2(b, name)
			for b.Loop() {
				opening(b, way, root, "/var/lib/kubelet")
			}
		})
	}
}

func FuzzWalk(f *testing.F) {
	root := tree(f, "a/b/", "a/link -> /a/b", "up -> ../..", "loop -> loop", "file")
	for _, path := range []string{"/a/link", "/up/a", "/loop", "/file/..", "//", "a\x00b", "..", "\xff"} {
		f.Add(path)
	}
	hasOpenat2(f, "openat2")
	f.Fuzz(func(t *testing.T, path string) {
		if path == "" || strings.ContainsRune(path, 0) || len(path) >= unix.PathMax {
			t.Skip("no path that the kernel takes")
		}
		if kernel, ours := opening(t, resolve, root, path), opening(t, openInside, root, path); kernel != ours {
			t.Errorf("%q: openat2 says %s, the walk %s", path, kernel, ours)
		}
	})
}
