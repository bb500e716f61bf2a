package cluster

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

func TestOnlyWhatIsMissingOrOldIsBuilt(t *testing.T) {
	dir := t.TempDir()
	src := &source{dir: dir, stamp: "now"}
	for name, content := range map[string]string{
		Etcd: "program", Etcd + ".stamp": "now",
		APIServer: "program", APIServer + ".stamp": "before", // other go.mod
		Scheduler:                    "program", // died before the stamp
		ControllerManager + ".stamp": "now",     // removed by hand
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got, err := src.missing([]string{Etcd, APIServer, Scheduler, ControllerManager, Kubelet})
	want := []string{APIServer, Scheduler, ControllerManager, Kubelet}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("missing %v, %v; want %v", got, err, want)
	}
	if _, err := src.missing([]string{"server"}); err == nil {
		t.Error("a name that is no program: no error")
	}
}

// inModule makes a folder with a test/controlplane of these files, and works in
// a package beside it.
func inModule(t *testing.T, files map[string]string) {
	t.Helper()
	root := t.TempDir()
	module := filepath.Join(root, "test", "controlplane")
	inside := filepath.Join(root, "some", "package")
	for _, dir := range []string{module, inside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(module, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(inside)
}

func requiring(version string) string { return "require (\n\tk8s.io/kubernetes " + version + "\n)\n" }

func TestSourceChangesWithItsModule(t *testing.T) {
	t.Setenv(releaseEnv, "")
	stamps := map[string]bool{}
	for _, content := range [][2]string{{"a", "b"}, {"c", "b"}, {"cb", ""}, {"a", "c"}} {
		inModule(t, map[string]string{"go.mod": requiring("v1.37.2") + "// " + content[0], "go.sum": content[1]})
		src, err := findSource()
		if err != nil {
			t.Fatal(err)
		}
		if src.version != "v1.37.2" || filepath.Base(src.dir) != "v1.37.2" {
			t.Errorf("version %s in %s", src.version, src.dir)
		}
		stamps[src.stamp] = true
	}
	if len(stamps) != 4 {
		t.Errorf("four modules have %d stamps", len(stamps))
	}
}

func TestOutputOfTheBuildIsCountedOrKept(t *testing.T) {
	output := "k8s.io/api/core/v1\n# k8s.io/kubernetes/cmd/kubelet\nmain.go:3:1: syntax error\nmath\n"
	var compiled atomic.Int64
	got := readBuild(strings.NewReader(output), &compiled)
	if want := "# k8s.io/kubernetes/cmd/kubelet\nmain.go:3:1: syntax error"; got != want || compiled.Load() != 2 {
		t.Errorf("complaints %q and %d packages, want %q and 2", got, compiled.Load(), want)
	}
}

func TestKubectlIsTheOneOnThePath(t *testing.T) {
	want, err := exec.LookPath(KubectlProgram)
	if err != nil {
		t.Skip("needs a kubectl on the PATH; without one it would be built, which takes a minute")
	}
	if got, err := Kubectl(t.Context(), io.Discard); err != nil || got != want {
		t.Errorf("Kubectl: %q, %v; want %q", got, err, want)
	}
}
