package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// ImageName is the image's, without a version.
const ImageName = "docker.io/taintlet/taintlet"

// builderImage is what BUILD_IMAGE is set to.
const builderImage = "localhost/builder"

// Where the builder image finds the host's caches. Not where the golang image
// has its own: there the Dockerfile mounts caches that are empty here.
const (
	buildCache  = "/go-cache"
	moduleCache = "/go-modules"
)

// BuildImage builds the image of that version for this host's architecture, from the
// Dockerfile with buildah, and returns the path of an archive in dir. `ctr -n k8s.io
// images import` makes it ImageName:version. No registry is asked: this host's /usr, Go
// and caches stand in for the golang image. It needs root, because buildah's chroot
// isolation mounts. All it leaves is a small file of digests, whose place,
// /var/lib/containers/cache, buildah lets nobody choose.
func BuildImage(ctx context.Context, dir, version string) (path string, err error) {
	b, err := newBuilder(ctx, dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, b.remove()) }()
	id, err := b.build(ctx, spec{source: b.source, arch: runtime.GOARCH, version: version, created: time.Unix(0, 0)})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "taintlet-"+version+".tar")
	return path, b.export(ctx, id, version, path)
}

// builder is buildah with a storage of its own.
type builder struct {
	dir    string // of all its files
	source string // the repository
	mounts []string
}

// newBuilder makes the builder image. Its files are in a folder in dir until
// remove.
func newBuilder(ctx context.Context, dir string) (*builder, error) {
	if err := checkBuilder(); err != nil {
		return nil, fmt.Errorf("build the image: %w", err)
	}
	b := &builder{}
	if err := b.prepare(ctx, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare to build the image: %w", err), b.remove())
	}
	return b, nil
}

// checkBuilder says what is missing, and how to get it.
func checkBuilder() error {
	if os.Geteuid() != 0 {
		return errors.New("it needs root")
	}
	if _, err := exec.LookPath("buildah"); err != nil {
		return errors.New("this host lacks buildah; on Debian: apt-get install -y buildah")
	}
	return nil
}

func (b *builder) prepare(ctx context.Context, dir string) (err error) {
	if b.dir, err = os.MkdirTemp(dir, "builder-"); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD", "GOROOT", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	env := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(env) != 4 {
		return fmt.Errorf("go env: %d lines, want 4: %s", len(env), out)
	}
	module, goroot, cache, modules := env[0], env[1], env[2], env[3]
	b.source = filepath.Dir(module)
	b.mounts = []string{"/usr:/usr:ro", goroot + ":" + goroot + ":ro", cache + ":" + buildCache, modules + ":" + moduleCache + ":ro"}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	download := exec.CommandContext(ctx, "go", "mod", "download")
	download.Dir = b.source
	if out, err := download.CombinedOutput(); err != nil {
		return fmt.Errorf("go mod download: %w\n%s", err, out)
	}
	return b.makeBuilderImage(ctx, goroot)
}

// makeBuilderImage makes an image that has nothing but links into /usr. What
// programs there are, and Go, is mounted from the host: copying them for each
// build, as a storage without overlays does, would take longer than the build.
func (b *builder) makeBuilderImage(ctx context.Context, goroot string) error {
	root := filepath.Join(b.dir, "root")
	for _, folder := range []string{root, filepath.Join(root, "tmp"), filepath.Join(b.dir, "tmp")} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
	}
	for _, link := range []string{"bin", "lib", "lib64"} {
		if err := os.Symlink(filepath.Join("usr", link), filepath.Join(root, link)); err != nil {
			return err
		}
	}
	file := filepath.Join(b.dir, "Dockerfile")
	text := fmt.Sprintf("FROM scratch\nCOPY . /\nENV PATH=%s/bin:/usr/bin GOCACHE=%s GOMODCACHE=%s GOPROXY=off GOTOOLCHAIN=local\n",
		goroot, buildCache, moduleCache)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	_, err := b.buildah(ctx, "build", "--tag="+builderImage, "--file="+file, root)
	return err
}

// spec says which image to build, from what.
type spec struct {
	source                  string // the folder with the Dockerfile
	arch, version, revision string
	created                 time.Time
	flags                   []string // of buildah's, besides
}

// build returns the image's ID.
func (b *builder) build(ctx context.Context, s spec) (id string, err error) {
	args := []string{
		"build", "--isolation=chroot", "--pull=never", "--identity-label=false", "--platform=linux/" + s.arch,
		// Buildah before 1.29 does not set it before the first FROM.
		"--build-arg=BUILDPLATFORM=linux/" + runtime.GOARCH,
		"--build-arg=BUILD_IMAGE=" + builderImage,
		"--build-arg=VERSION=" + s.version,
		"--build-arg=REVISION=" + s.revision,
		"--build-arg=CREATED=" + s.created.UTC().Format(time.RFC3339),
		fmt.Sprintf("--build-arg=SOURCE_DATE_EPOCH=%d", s.created.Unix()),
	}
	for _, mount := range b.mounts {
		args = append(args, "--volume="+mount)
	}
	file := filepath.Join(b.dir, "id")
	args = append(append(args, s.flags...), "--iidfile="+file, s.source)
	if _, err := b.buildah(ctx, args...); err != nil {
		return "", err
	}
	content, err := os.ReadFile(file)
	return string(content), err
}

// export writes an archive of one image, named Name:version.
func (b *builder) export(ctx context.Context, id, version, path string) error {
	_, err := b.buildah(ctx, "push", id, "docker-archive:"+path+":"+ImageName+":"+version)
	return err
}

// buildah runs it to its end and returns what it prints, even if it fails.
func (b *builder) buildah(ctx context.Context, args ...string) (string, error) {
	args = append([]string{
		"--root=" + filepath.Join(b.dir, "storage"), "--runroot=" + filepath.Join(b.dir, "run"), "--storage-driver=vfs",
	}, args...)
	cmd := process.CommandContext(ctx, "buildah", args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(b.dir, "tmp"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := process.Run(cmd); err != nil {
		return stdout.String(), fmt.Errorf("buildah %s: %w\n%s%s", args[3], errors.Join(err, ctx.Err()), stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

func (b *builder) remove() error { return os.RemoveAll(b.dir) }
