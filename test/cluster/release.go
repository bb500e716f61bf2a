package cluster

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

// releaseEnv chooses a release of Kubernetes, such as 1.35.4, among those that
// test/controlplane has a module file for. Not set, it is go.mod's.
const releaseEnv = "TAINTLET_K8S"

// release is one that can be built.
type release struct {
	version string // such as v1.35.4
	modfile string // go.mod, or one that stands in for it
	mod     []byte // its content
}

// readReleases returns what test/controlplane has, go.mod's last. What a file
// requires counts, and not its name: that is what will be built.
func readReleases(module string) ([]release, error) {
	names, err := fs.Glob(os.DirFS(module), "*.mod")
	if err != nil {
		return nil, fmt.Errorf("find releases of Kubernetes: %w", err)
	}
	requirement := regexp.MustCompile(`(?m)^\s+k8s\.io/kubernetes (v\d+\.\d+\.\S+)`)
	var found []release
	for _, name := range names {
		path := filepath.Join(module, name)
		mod, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the control plane's module: %w", err)
		}
		match := requirement.FindSubmatch(mod)
		if match == nil {
			return nil, fmt.Errorf("test/controlplane/%s does not require k8s.io/kubernetes", name)
		}
		found = append(found, release{version: string(match[1]), modfile: path, mod: mod})
	}
	return found, nil
}

func chooseRelease(module, wanted string) (release, error) {
	found, err := readReleases(module)
	if err != nil {
		return release{}, err
	}
	var names []string
	for _, r := range found {
		name := strings.TrimPrefix(r.version, "v")
		if name == wanted || wanted == "" && filepath.Base(r.modfile) == "go.mod" {
			return r, nil
		}
		names = append(names, name)
	}
	return release{}, fmt.Errorf("%s=%s: test/controlplane has no such Kubernetes, but %s", releaseEnv, wanted, strings.Join(names, ", "))
}

// The first release that serves what deploy/keep.yaml consists of. Before there
// is v1beta1 at most, behind the feature gate MutatingAdmissionPolicy, which is
// off.
const mutatingAdmissionPolicySince = "1.36"

// HasMutatingAdmissionPolicy says whether the release can have
// deploy/keep.yaml. Like all that is said here of a release, it goes by the
// version and does not ask the API server: one that should have a thing and has
// not must fail a test.
func HasMutatingAdmissionPolicy(t testing.TB) bool {
	t.Helper()
	return atLeast(chosenVersion(t), mutatingAdmissionPolicySince)
}

// SkipWithoutMutatingAdmissionPolicy skips a test that needs deploy/keep.yaml
// on a release that cannot have it.
func SkipWithoutMutatingAdmissionPolicy(t testing.TB) {
	t.Helper()
	SkipBefore(t, mutatingAdmissionPolicySince, "MutatingAdmissionPolicy admissionregistration.k8s.io/v1")
}

// SkipBefore skips a test on releases of Kubernetes before the one, such as
// 1.36, that first has what the test needs.
func SkipBefore(t testing.TB, first, what string) {
	t.Helper()
	chosen := chosenVersion(t)
	if atLeast(chosen, first) {
		return
	}
	t.Skipf("Kubernetes %s has no %s", strings.TrimPrefix(chosen, "v"), what)
}

func chosenVersion(t testing.TB) string {
	t.Helper()
	chosen, err := KubernetesVersion()
	if err != nil {
		t.Fatal(err)
	}
	return chosen
}

func atLeast(chosen, first string) bool {
	return version.MustParseGeneric(chosen).AtLeast(version.MustParseGeneric(first))
}
