package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// longEnv asks for all platforms, each build with a cache of its own.
const longEnv = "TAINTLET_LONG_RELEASE"

// testImage is another name than the default.
const testImage = "registry.example.com/team/taintlet"

// A release is built twice, from clones in two folders, and is the same byte for byte.
// Only the long form proves that the compiler gives the same twice; the short one is of
// linux/amd64 and shares the cache, in which no path is, thanks to -trimpath.
func TestReleaseIsReproducible(t *testing.T) {
	requireRelease(t)
	first, second := built(t, "0.1.0"), built(t, "0.1.0")
	checkChecksums(t, first.out)
	checkLayouts(t, first.out, len(first.hosts))
	want, got := files(t, first.out), files(t, second.out)
	if len(want) != len(got) || len(want) == 0 {
		t.Fatalf("%d files, then %d", len(want), len(got))
	}
	for name, content := range want {
		if !bytes.Equal(content, got[name]) {
			t.Errorf("%s differs between two builds", name)
		}
	}
}

// requireRelease skips a test that builds releases, unless TAINTLET_REQUIRE lists release.
func requireRelease(t *testing.T) {
	t.Helper()
	if !cluster.Required("release") {
		t.Skip("builds releases: set TAINTLET_REQUIRE=release, for all platforms run `make reproduce`")
	}
	trusting := filepath.Join(t.TempDir(), "gitconfig") // somebody else may own the checkout
	if err := os.WriteFile(trusting, []byte("[safe]\n\tdirectory = *\n[user]\n\tname = t\n\temail = t@localhost\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", trusting)
}

func built(t *testing.T, version string) *release {
	t.Helper()
	return builtAs(t, version, testImage)
}

// builtAs builds a release of a clone of HEAD, in the short form of linux/amd64 alone. The
// changelog of the clone gets a section of the version where it lacks one.
func builtAs(t *testing.T, version, image string) *release {
	t.Helper()
	source, out := filepath.Join(t.TempDir(), "clone"), filepath.Join(t.TempDir(), "release")
	git(t, "clone", "-q", "../..", source)
	changelog := filepath.Join(source, "CHANGELOG.md")
	text, err := os.ReadFile(changelog)
	if err != nil {
		t.Fatal(err)
	}
	if section := "\n## " + version + "\n"; !bytes.Contains(text, []byte(section)) {
		if err := os.WriteFile(changelog, append(text, section+"\nThe same again.\n"...), 0o600); err != nil {
			t.Fatal(err)
		}
		git(t, "-C", source, "commit", "-q", "-a", "-m", version)
	}
	r, err := newRelease(source, out, image, version)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(longEnv) != "" {
		t.Setenv("GOCACHE", t.TempDir())
	} else {
		r.hosts, r.people = r.hosts[:1], r.hosts[:1]
	}
	if err := r.build(); err != nil {
		t.Fatal(err)
	}
	return r
}

func git(t *testing.T, args ...string) {
	t.Helper()
	if text, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", args, err, text)
	}
}

func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		all[name], err = os.ReadFile(filepath.Join(dir, name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func checkChecksums(t *testing.T, dir string) {
	t.Helper()
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = dir
	if text, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// checkLayouts follows each layout from its index to the blobs: all are there, under their
// digests and with their sizes, and there are no others.
func checkLayouts(t *testing.T, dir string, hosts int) {
	t.Helper()
	for layout, blobs := range map[string]int{"taintlet-image": 1 + 3*hosts, "taintlet-chart": 3} {
		root := filepath.Join(dir, layout)
		seen := map[string]bool{}
		content, err := os.ReadFile(filepath.Join(root, "index.json"))
		if err != nil {
			t.Fatal(err)
		}
		follow(t, root, content, seen)
		left, err := filepath.Glob(filepath.Join(root, "blobs", "sha256", "*"))
		if err != nil || len(left) != len(seen) || len(seen) != blobs {
			t.Errorf("%s: %d blobs, %d used, want %d (%v)", layout, len(left), len(seen), blobs, err)
		}
	}
}

func follow(t *testing.T, root string, content []byte, seen map[string]bool) {
	t.Helper()
	var node struct {
		Manifests, Layers []descriptor
		Config            json.RawMessage
	}
	if err := json.Unmarshal(content, &node); err != nil {
		t.Fatal(err)
	}
	next := append(node.Manifests, node.Layers...)
	var config descriptor
	if json.Unmarshal(node.Config, &config) == nil && config.Digest != "" {
		next = append(next, config)
	}
	for _, d := range next {
		sum := strings.TrimPrefix(d.Digest, "sha256:")
		blob, err := os.ReadFile(filepath.Join(root, "blobs", "sha256", sum))
		if err != nil || len(blob) != d.Size || sum256(blob) != sum {
			t.Errorf("%s: %d bytes with digest %s, want %d (%v)", d.Digest, len(blob), sum256(blob), d.Size, err)
		}
		seen[sum] = true
		if d.MediaType == indexType || d.MediaType == manifestType {
			follow(t, root, blob, seen)
		}
	}
}

// What cannot be a release is refused before anything is built.
func TestRefuses(t *testing.T) {
	for _, version := range []string{"", "v0.1.0", "0.1", "0.1.0/x"} {
		if _, err := newRelease("../..", t.TempDir(), testImage, version); err == nil || !strings.Contains(err.Error(), "is not a version") {
			t.Errorf("version %q: %v", version, err)
		}
	}
	for _, image := range []string{"", "taintlet", "ghcr.io/Owner/taintlet", "ghcr.io/owner/taintlet:0.1.0"} {
		if _, err := newRelease("../..", t.TempDir(), image, "0.1.0"); err == nil || !strings.Contains(err.Error(), "is not a name in lower case") {
			t.Errorf("image %q: %v", image, err)
		}
	}
	source := filepath.Join(t.TempDir(), "source")
	git(t, "init", "-q", source)
	git(t, "-C", source, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "--allow-empty", "-m", "x")
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "left"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newRelease(source, full, testImage, "0.1.0"); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a folder with files: %v", err)
	}
	if err := os.WriteFile(filepath.Join(source, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newRelease(source, t.TempDir(), testImage, "0.1.0"); err == nil || !strings.Contains(err.Error(), "not clean") {
		t.Errorf("a tree with changes: %v", err)
	}
}

// The image is that of the Dockerfile: flags of the compiler, labels, user, entry point.
func TestImageIsThatOfTheDockerfile(t *testing.T) {
	content, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	r := &release{version: "${VERSION}", revision: "${REVISION}"}
	config := r.imageConfig("amd64", "")["config"].(map[string]any)
	wanted := []string{strings.Join(process.Lean(), " "), "\nUSER " + config["User"].(string) + "\n", fmt.Sprintf("\nENTRYPOINT [%q]\n", config["Entrypoint"].([]string)[0])}
	for key, value := range config["Labels"].(map[string]string) {
		if key == "org.opencontainers.image.created" {
			value = "${CREATED}"
		}
		wanted = append(wanted, fmt.Sprintf("%s=%q", key, value))
	}
	for _, text := range wanted {
		if !strings.Contains(string(content), text) {
			t.Errorf("the Dockerfile lacks %s", text)
		}
	}
	if got := strings.Count(string(content), "org.opencontainers.image."); got != len(wanted)-3 {
		t.Errorf("the Dockerfile has %d labels, want %d", got, len(wanted)-3)
	}
}
