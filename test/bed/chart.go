package bed

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/taintlet/taintlet/test/cluster"
)

const (
	// ChartFolder is the chart, seen from a package in test.
	ChartFolder = "../../deploy/helm/taintlet"
	// Namespace is that of the release unless a test says otherwise.
	Namespace = "taintlet-system"
	// Account is the agent's service account in the release's namespace.
	Account = "taintlet"
	// User is who the agents are to the API server.
	User = "system:serviceaccount:" + Namespace + ":" + Account
)

// UserOf is who the agent of a release in that namespace is to the API server.
func UserOf(namespace string) string {
	return "system:serviceaccount:" + namespace + ":" + Account
}

// Helm returns the path of helm, built once and kept in Go's cache. Without
// TAINTLET_REQUIRE=controlplane the test is skipped: that first build takes
// minutes.
func Helm(t *testing.T) string {
	t.Helper()
	cluster.SkipUnlessRequired(t)
	path, err := BuildHelm()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// helmEnv chooses a major version of Helm among those that test/helm has a module file
// for: 3. Not set, it is go.mod's, Helm 4. deploy/generate reads it too.
const helmEnv = "TAINTLET_HELM"

// HelmForcesConflicts says whether helm applies on the server, and so needs --force-conflicts
// where somebody else changed a field. Helm 3 does not.
func HelmForcesConflicts() bool { return os.Getenv(helmEnv) != "3" }

// BuildHelm returns the path of helm, for those who build it ahead of the tests.
func BuildHelm() (string, error) { return helmOnce() }

var helmOnce = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // once for all tests
	modfile := "test/helm/go.mod"
	if major := os.Getenv(helmEnv); major != "" {
		modfile = "test/helm/v" + major + ".mod"
	}
	command := exec.Command("go", "tool", "-modfile="+modfile, "-n", "helm") //nolint:gosec // a file of ours
	command.Dir = "../.."
	command.Stderr = os.Stderr
	out, err := command.Output()
	return strings.TrimSpace(string(out)), err
})

// TryRender renders the chart as deploy/generate does, with more arguments of
// helm template, and returns the text. On failure it returns what helm says.
func TryRender(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return TryRenderFolder(t, ChartFolder, args...)
}

// TryRenderFolder is TryRender for the chart in that folder, such as a copy with a change.
func TryRenderFolder(t *testing.T, folder string, args ...string) (string, error) {
	t.Helper()
	args = append([]string{"template", "taintlet", folder, "--namespace", Namespace, "--kube-version", "1.37"}, args...)
	out, err := exec.CommandContext(t.Context(), Helm(t), args...).CombinedOutput()
	return string(out), err
}

// KeepServed has helm template take the cluster for one that has the kinds of keep.yaml.
const KeepServed = "--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"

// Render is TryRender for values that must be good.
func Render(t *testing.T, args ...string) string {
	t.Helper()
	text, err := TryRender(t, args...)
	if err != nil {
		t.Fatalf("helm template %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return text
}

// ValuesFile writes values for helm's -f.
func ValuesFile(t *testing.T, values any) string {
	t.Helper()
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "values.json", text)
}

// ManifestFile writes a rendered manifest for cluster.Apply or kubectl.
func ManifestFile(t *testing.T, text string) string {
	t.Helper()
	return writeFile(t, "manifest.yaml", []byte(text))
}

func writeFile(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
