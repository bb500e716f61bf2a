// Command release builds what a release publishes, into an empty folder: OCI
// layouts of the image and of the chart, the plugin's archives, SBOMs, a
// provenance statement, the krew manifest, release notes and checksums. It
// needs no container daemon and no registry. `make release` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// repository is where sources and releases are published.
const repository = "https://github.com/taintlet/taintlet"

// release is one release and where it is built.
type release struct {
	version  string    // such as 0.1.0
	name     string    // of the image, in its registry
	revision string    // the commit
	created  time.Time // of the commit
	source   string    // the repository's folder
	out      string
	hosts    []platform // of the image
	people   []platform // of the plugin
}

var (
	semver    = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	imageName = regexp.MustCompile(`^[a-z0-9.-]+(:\d+)?(/[a-z0-9]+([._-][a-z0-9]+)*)+$`)
)

func main() {
	version := flag.String("version", "", "the release, such as 0.1.0")
	image := flag.String("image", "ghcr.io/taintlet/taintlet", "where the image will be pushed to, without a tag; the chart refers to it")
	out := flag.String("out", "", "an empty or absent folder")
	source := flag.String("source", ".", "a clean working tree of the repository")
	flag.Parse()
	r, err := newRelease(*source, *out, *image, *version)
	if err == nil {
		err = r.build()
	}
	if err != nil {
		log.Fatal(err)
	}
}

// newRelease refuses a version or an image's name that is none, a tree with changes and a
// folder with files.
func newRelease(source, out, image, version string) (*release, error) {
	if !semver.MatchString(version) {
		return nil, fmt.Errorf("--version=%q is not a version such as 0.1.0", version)
	}
	if !imageName.MatchString(image) {
		return nil, fmt.Errorf("--image=%q is not a name in lower case such as ghcr.io/taintlet/taintlet, without a tag", image)
	}
	r := &release{version: version, name: image, people: []platform{
		{"amd64", "darwin"}, {"arm64", "darwin"}, {"amd64", "linux"}, {"arm64", "linux"}, {"amd64", "windows"}, {"arm64", "windows"},
	}}
	r.hosts = r.people[2:4]
	var err error
	if r.source, err = filepath.Abs(source); err != nil {
		return nil, err
	}
	if r.out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	changes, err := r.run(nil, "git", "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if changes != "" {
		return nil, fmt.Errorf("the tree is not clean:\n%s", changes)
	}
	if r.revision, err = r.run(nil, "git", "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	stamp, err := r.run(nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return nil, err
	}
	r.created = time.Unix(seconds, 0).UTC()
	if entries, err := os.ReadDir(r.out); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty", r.out)
	}
	return r, os.MkdirAll(r.out, 0o755)
}

func (r *release) build() (err error) {
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	steps := []func(string) error{r.notes, r.image, r.plugins, r.chart, r.krew, r.provenance, r.checksums}
	for _, step := range steps {
		if err := step(work); err != nil {
			return err
		}
	}
	return nil
}

// run returns what a command prints, in the repository's folder.
func (r *release) run(env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Dir, cmd.Env = r.source, append(os.Environ(), env...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}

// notes writes the changelog's section of the release.
func (r *release) notes(string) error {
	text, err := os.ReadFile(filepath.Join(r.source, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	heading := regexp.MustCompile(`(?m)^## \[?` + regexp.QuoteMeta(r.version) + `\]?( .*)?$`).FindIndex(text)
	if heading == nil {
		return fmt.Errorf("CHANGELOG.md has no section %s", r.version)
	}
	section, _, _ := strings.Cut(string(text[heading[1]:]), "\n## ")
	return r.write("release-notes.md", []byte(strings.TrimSpace(section)+"\n"))
}
