package kubelet

import (
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
)

const (
	// maxSize is of the layers, not compressed, in bytes.
	maxSize = 18_500_000
	version = "v0.0.0-test"
)

// created is an hour at which nothing of the sources was written.
var created = time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)

// TestImage needs root and buildah: it runs where TAINTLET_REQUIRE lists image.
func TestImage(t *testing.T) {
	b := requireBuilder(t)
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		t.Run(arch, func(t *testing.T) {
			s := b.spec(arch)
			id := mustBuild(t, b, s)
			image := exported(t, b, id)
			checkConfig(t, image, s)
			checkFiles(t, image, b.source)
			checkProgram(t, image.files["taintlet"].content, machine)
			if arch == runtime.GOARCH {
				checkRuns(t, b, id, image.config.Config.Entrypoint)
			}
		})
	}
}

// Whoever builds the sources again gets the same image: from another folder,
// with another umask, at another time.
func TestImageIsReproducible(t *testing.T) {
	b := requireBuilder(t)
	here := b.spec(runtime.GOARCH)
	elsewhere := here
	elsewhere.source = checkout(t, b.source)
	// The time of the image itself. To Docker, SOURCE_DATE_EPOCH says it.
	stamp := fmt.Sprintf("--timestamp=%d", created.Unix())
	here.flags, elsewhere.flags = []string{stamp}, []string{stamp}
	id := mustBuild(t, b, here)
	if again := mustBuild(t, b, elsewhere); again != id {
		t.Errorf("images differ:\n%+v\n%+v", exported(t, b, id).config, exported(t, b, again).config)
	}
	// --timestamp gives the files a time too. Other builders leave them theirs.
	here.flags = nil
	want, got := exported(t, b, id).config.RootFS, exported(t, b, mustBuild(t, b, here)).config.RootFS
	if !reflect.DeepEqual(got, want) {
		t.Errorf("layers %v without --timestamp, want %v", got, want)
	}
}

func TestArchive(t *testing.T) {
	requireImage(t)
	dir := t.TempDir()
	path, err := BuildImage(t.Context(), dir, version)
	if err != nil {
		t.Fatal(err)
	}
	image := readArchive(t, path)
	if want := []string{ImageName + ":" + version}; !slices.Equal(image.tags, want) {
		t.Errorf("tags %q, want %q", image.tags, want)
	}
	if image.config.Architecture != runtime.GOARCH {
		t.Errorf("architecture %s, want %s", image.config.Architecture, runtime.GOARCH)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || !slices.Equal(left, []string{path}) {
		t.Errorf("left in the folder: %q (%v), want the archive", left, err)
	}
}

func requireImage(t *testing.T) {
	t.Helper()
	if !cluster.Required("image") {
		t.Skip("needs root and buildah: set TAINTLET_REQUIRE=image")
	}
}

func requireBuilder(t *testing.T) *builder {
	t.Helper()
	requireImage(t)
	b, err := newBuilder(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *builder) spec(arch string) spec {
	return spec{source: b.source, arch: arch, version: version, revision: "0123456789abcdef", created: created}
}

func mustBuild(t *testing.T, b *builder, s spec) (id string) {
	t.Helper()
	start := time.Now()
	id, err := b.build(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: built in %.1f s", s.arch, time.Since(start).Seconds())
	return id
}

func exported(t *testing.T, b *builder, id string) *archive {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := b.export(t.Context(), id, version, path); err != nil {
		t.Fatal(err)
	}
	return readArchive(t, path)
}

func checkConfig(t *testing.T, image *archive, s spec) {
	t.Helper()
	got := image.config
	if got.Architecture != s.arch {
		t.Errorf("architecture %s, want %s", got.Architecture, s.arch)
	}
	if got.Config.User != "65532:65532" {
		t.Errorf("user %q, want 65532:65532", got.Config.User)
	}
	if want := []string{"/taintlet"}; !slices.Equal(got.Config.Entrypoint, want) {
		t.Errorf("entrypoint %q, want %q", got.Config.Entrypoint, want)
	}
	const prefix = "org.opencontainers.image."
	want := map[string]string{
		prefix + "title":       "taintlet",
		prefix + "description": "Watches the health of the host it runs on and keeps the right taints on its own Kubernetes Node",
		prefix + "source":      "https://github.com/taintlet/taintlet",
		prefix + "licenses":    "Apache-2.0",
		prefix + "version":     s.version,
		prefix + "revision":    s.revision,
		prefix + "created":     "2001-02-03T04:05:06Z",
	}
	if !maps.Equal(got.Config.Labels, want) {
		t.Errorf("labels %q\nwant %q", got.Config.Labels, want)
	}
}

// checkFiles finds the program and the licence, which its user cannot write,
// and nothing else.
func checkFiles(t *testing.T, image *archive, source string) {
	t.Helper()
	modes := map[string]fs.FileMode{}
	for name, file := range image.files {
		modes[name] = file.header.FileInfo().Mode()
		if file.header.Uid != 0 || file.header.Gid != 0 {
			t.Errorf("%s belongs to %d:%d, want root", name, file.header.Uid, file.header.Gid)
		}
	}
	if want := map[string]fs.FileMode{"taintlet": 0o755, "LICENSE": 0o644}; !maps.Equal(modes, want) {
		t.Errorf("files %v, want %v", modes, want)
	}
	licence, err := os.ReadFile(filepath.Join(source, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(image.files["LICENSE"].content, licence) {
		t.Error("the image's LICENSE is not the repository's")
	}
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	for _, file := range image.files {
		if _, err := writer.Write(file.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.2f MB, compressed %.2f MB", float64(image.size)/1e6, float64(compressed.Len())/1e6)
	if image.size >= maxSize {
		t.Errorf("%d bytes, want less than %d", image.size, maxSize)
	}
}

// checkProgram finds a static program that does not tell where it was built.
func checkProgram(t *testing.T, content []byte, machine elf.Machine) {
	t.Helper()
	program, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if program.Machine != machine {
		t.Errorf("the program is for %v, want %v", program.Machine, machine)
	}
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has %v: it is not static", part.Type)
		}
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	if settings["-trimpath"] != "true" || settings["CGO_ENABLED"] != "0" || settings["vcs"] != "" {
		t.Errorf("built with %v, want -trimpath, no cgo and no version control", settings)
	}
}

// checkRuns runs the program as the image's user, with the image's files and
// /proc and /sys alone.
func checkRuns(t *testing.T, b *builder, id string, entrypoint []string) {
	t.Helper()
	container := strings.TrimSpace(mustBuildah(t, b, "from", "--pull=never", id))
	run := func(argument string) (string, error) {
		return b.buildah(t.Context(), slices.Concat([]string{"run", "--isolation=chroot", container, "--"}, entrypoint, []string{argument})...)
	}
	if out, err := run("--version"); err != nil || out != "taintlet version "+version+"\n" {
		t.Errorf("version: %q (%v), want %s", out, err, version)
	}
	out, err := run("once")
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) { // 3: some condition is not OK
		t.Errorf("once: %v", err)
	}
	for _, condition := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"} {
		if !strings.Contains(out, condition) {
			t.Errorf("once shows no %s:\n%s", condition, out)
		}
	}
}

func mustBuildah(t *testing.T, b *builder, args ...string) string {
	t.Helper()
	out, err := b.buildah(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkout copies what the image is built from, as .dockerignore lists it, as
// it is for somebody whose umask lets nobody else read.
func checkout(t *testing.T, source string) string {
	t.Helper()
	ignore, err := os.ReadFile(filepath.Join(source, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{".dockerignore", "Dockerfile"}
	for line := range strings.Lines(string(ignore)) {
		if name, kept := strings.CutPrefix(strings.TrimSpace(line), "!"); kept {
			names = append(names, name)
		}
	}
	copied := t.TempDir()
	for _, name := range names {
		if err := copyTree(filepath.Join(copied, name), filepath.Join(source, name)); err != nil {
			t.Fatal(err)
		}
	}
	return copied
}

func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if entry.IsDir() {
			return os.Mkdir(target, 0o700)
		}
		if !entry.Type().IsRegular() { // a link in testdata
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
}
