package cluster

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// The programs that Build can build. The first four are what a Cluster runs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	KubectlProgram    = "kubectl"
	Kubelet           = "kubelet"
)

// progressEvery is how often a running build says that it is still running.
const progressEvery = 15 * time.Second

// Build makes sure that the named programs (none named: those of the control
// plane) are built from test/controlplane, of the release that TAINTLET_K8S
// chooses, and returns the folder they are in. It is a no-op when they are up
// to date. Processes that build at the same time wait for one another. What is
// being done is written to progress, line by line.
func Build(ctx context.Context, progress io.Writer, names ...string) (string, error) {
	if progress == nil {
		progress = io.Discard
	}
	if len(names) == 0 {
		names = []string{Etcd, APIServer, ControllerManager, Scheduler}
	}
	src, err := findSource()
	if err != nil {
		return "", err
	}
	missing, err := src.missing(names)
	if err != nil || len(missing) == 0 {
		return src.dir, err
	}
	if err := os.MkdirAll(src.dir, 0o755); err != nil {
		return "", fmt.Errorf("create the folder of the control plane's programs: %w", err)
	}
	unlock, err := process.Lock(ctx, filepath.Join(src.dir, ".lock"), nil)
	if err != nil {
		return "", fmt.Errorf("wait for another build of the control plane: %w", err)
	}
	defer unlock()
	// Another process may have built them while this one waited.
	if missing, err = src.missing(names); err != nil || len(missing) == 0 {
		return src.dir, err
	}
	if err := src.build(ctx, progress, missing); err != nil {
		return "", err
	}
	return src.dir, nil
}

// Kubectl returns the path of the kubectl on the PATH, or else of one that it
// builds with Build.
func Kubectl(ctx context.Context, progress io.Writer) (string, error) {
	if path, err := exec.LookPath(KubectlProgram); err == nil {
		return path, nil
	}
	dir, err := Build(ctx, progress, KubectlProgram)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, KubectlProgram), nil
}

// KubectlEnv is the environment of a kubectl that uses the kubeconfig, and leaves
// no files but in the folder for its cache.
func KubectlEnv(kubeconfig, cache string) []string {
	return append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+cache, "KUBERC=off")
}

// KubernetesVersion returns the version of Kubernetes that is built, such as
// v1.37.2: that of TAINTLET_K8S, or else of test/controlplane/go.mod.
func KubernetesVersion() (string, error) {
	src, err := findSource()
	if err != nil {
		return "", err
	}
	return src.version, nil
}

// source is the nested module that the programs are built from.
type source struct {
	module  string // folder of the nested module
	modfile string // its go.mod, or that of another release
	version string // of Kubernetes
	dir     string // where the programs go
	stamp   string // changes when the programs have to be built again
}

func findSource() (*source, error) {
	module, err := findModule()
	if err != nil {
		return nil, err
	}
	chosen, err := chooseRelease(module, os.Getenv(releaseEnv))
	if err != nil {
		return nil, err
	}
	// `go build -modfile` takes the sums from this file too.
	sum, err := os.ReadFile(strings.TrimSuffix(chosen.modfile, ".mod") + ".sum")
	if err != nil {
		return nil, fmt.Errorf("read the control plane's module: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find a folder for the control plane's programs: %w", err)
	}
	hash := sha256.New()
	for _, part := range [][]byte{chosen.mod, sum, []byte(ldflags(chosen.version))} {
		fmt.Fprintf(hash, "%d\n%s", len(part), part)
	}
	return &source{
		module:  module,
		modfile: chosen.modfile,
		version: chosen.version,
		dir:     filepath.Join(cache, "taintlet", chosen.version),
		stamp:   hex.EncodeToString(hash.Sum(nil)),
	}, nil
}

// findModule walks up from the working folder, which for a test is its
// package's, to the folder that contains test/controlplane.
func findModule() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find test/controlplane: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		module := filepath.Join(dir, "test", "controlplane")
		if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
			return module, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("found no test/controlplane/go.mod in %s or above it", start)
		}
	}
}

// ldflags stamps the version, without which a component calls itself
// v0.0.0-master and refuses to compare itself with others.
func ldflags(version string) string {
	const pkg = "k8s.io/component-base/version"
	part := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s",
		pkg, version, part[0], part[1])
}

// packageOf returns the package of a program's main function.
func packageOf(name string) (string, error) {
	switch name {
	case Etcd:
		return "go.etcd.io/etcd/server/v3", nil
	case APIServer, ControllerManager, Scheduler, KubectlProgram, Kubelet:
		return "k8s.io/kubernetes/cmd/" + name, nil
	}
	return "", fmt.Errorf("%q is not a program of the control plane", name)
}

// builtAs is the name that `go build` gives to a program.
func builtAs(name string) string {
	if name == Etcd {
		return "server" // its package's last element that is not a version
	}
	return name
}

func (s *source) path(name string) string      { return filepath.Join(s.dir, name) }
func (s *source) stampPath(name string) string { return filepath.Join(s.dir, name+".stamp") }

// missing returns those of the names that are not built, or built from other
// module and sum files than the present ones.
func (s *source) missing(names []string) ([]string, error) {
	var missing []string
	for _, name := range names {
		if _, err := packageOf(name); err != nil {
			return nil, err
		}
		stamp, err := os.ReadFile(s.stampPath(name))
		if err == nil && string(stamp) == s.stamp {
			_, err = os.Stat(s.path(name))
		} else if err == nil {
			err = os.ErrNotExist
		}
		switch {
		case errors.Is(err, os.ErrNotExist):
			missing = append(missing, name)
		case err != nil:
			return nil, fmt.Errorf("find a built %s: %w", name, err)
		}
	}
	return missing, nil
}

// build runs one `go build` for all names, so that they share what they have
// in common, into a folder of its own. Only whole programs are moved to their
// place, by rename: one that is running keeps its file.
func (s *source) build(ctx context.Context, progress io.Writer, names []string) error {
	// The lock is held, so whatever lies here was left by a build that died.
	out := filepath.Join(s.dir, ".building")
	if err := os.RemoveAll(out); err != nil {
		return fmt.Errorf("remove what an earlier build left: %w", err)
	}
	defer func() { _ = os.RemoveAll(out) }()

	fmt.Fprintf(progress, "building %s (Kubernetes %s) into %s; the first time takes some minutes\n",
		strings.Join(names, ", "), s.version, s.dir)
	if err := s.goBuild(ctx, progress, out, names); err != nil {
		return err
	}
	for _, name := range names {
		// The stamp goes first and comes last, so that no stamp is ever beside
		// a program that it does not belong to.
		if err := os.Remove(s.stampPath(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("install %s: %w", name, err)
		}
		if err := os.Rename(filepath.Join(out, builtAs(name)), s.path(name)); err != nil {
			return fmt.Errorf("install %s: %w", name, err)
		}
		if err := os.WriteFile(s.stampPath(name), []byte(s.stamp), 0o644); err != nil {
			return fmt.Errorf("install %s: %w", name, err)
		}
	}
	return nil
}

func (s *source) goBuild(ctx context.Context, progress io.Writer, out string, names []string) error {
	args := []string{"build", "-v", "-buildvcs=false", "-modfile", s.modfile, "-ldflags", ldflags(s.version), "-o", out + string(filepath.Separator)}
	for _, name := range names {
		pkg, err := packageOf(name)
		if err != nil {
			return err
		}
		args = append(args, pkg)
	}
	cmd := process.CommandContext(ctx, "go", args...)
	cmd.Dir = s.module
	// What the caller's flags and workspace say is meant for another module.
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "PWD="+s.module)
	output, write := io.Pipe()
	cmd.Stderr = write
	built := make(chan error)
	go func() {
		err := process.Run(cmd)
		_ = write.Close() // it never fails
		built <- err
	}()

	var compiled atomic.Int64
	stop := report(progress, out, names, &compiled)
	complaints := readBuild(output, &compiled)
	_ = output.Close() // nobody reads what may follow a line that is too long
	err := <-built
	stop()
	if err != nil {
		return fmt.Errorf("go build %s in test/controlplane: %w\n%s", strings.Join(names, " "), errors.Join(err, ctx.Err()), complaints)
	}
	return nil
}

// readBuild counts the packages that `go build -v` names and returns the other
// lines, which are what it complains about.
func readBuild(stderr io.Reader, compiled *atomic.Int64) string {
	var complaints bytes.Buffer
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		line := lines.Text()
		if line != "" && !strings.ContainsAny(line, " \t") {
			compiled.Add(1)
			continue
		}
		fmt.Fprintln(&complaints, line)
	}
	return strings.TrimSpace(complaints.String())
}

// report writes a line for every program that appears in out, and every
// progressEvery a line that says that the build goes on, until the function it
// returns is called.
func report(progress io.Writer, out string, names []string, compiled *atomic.Int64) (stop func()) {
	start := time.Now()
	end, ended := make(chan struct{}), make(chan struct{})
	waiting := append([]string(nil), names...)
	check := func() {
		var still []string
		for _, name := range waiting {
			if _, err := os.Stat(filepath.Join(out, builtAs(name))); err != nil {
				still = append(still, name)
				continue
			}
			fmt.Fprintf(progress, "  %s: done after %.0f s\n", name, time.Since(start).Seconds())
		}
		waiting = still
	}
	go func() {
		defer close(ended)
		every, second := time.NewTicker(progressEvery), time.NewTicker(time.Second)
		defer every.Stop()
		defer second.Stop()
		for {
			select {
			case <-end:
				check()
				return
			case <-second.C:
				check()
			case <-every.C:
				fmt.Fprintf(progress, "  %.0f s: %d packages compiled, waiting for %s\n",
					time.Since(start).Seconds(), compiled.Load(), strings.Join(waiting, ", "))
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}
