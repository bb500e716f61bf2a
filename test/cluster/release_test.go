package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A release is called by its file's name, and built of what the file says of
// each of Kubernetes' own modules.
func TestReleasesAreWhatTheirFilesAreCalled(t *testing.T) {
	module, err := findModule()
	if err != nil {
		t.Fatal(err)
	}
	found, err := readReleases(module)
	if err != nil {
		t.Fatal(err)
	}
	published := regexp.MustCompile(`(?m)^\t(k8s\.io/\S+) => \S+ (\S+)$`)
	for _, r := range found {
		name := strings.TrimPrefix(r.version, "v")
		if file := filepath.Base(r.modfile); file != name+".mod" && file != "go.mod" {
			t.Errorf("%s requires Kubernetes %s", file, name)
		}
		replaced := published.FindAllSubmatch(r.mod, -1)
		if len(replaced) < 30 {
			t.Errorf("%s: %d of Kubernetes' own modules are replaced, want all", name, len(replaced))
		}
		for _, match := range replaced {
			if want := "v0" + strings.TrimPrefix(name, "1"); string(match[2]) != want {
				t.Errorf("%s: %s is replaced by %s, want %s", name, match[1], match[2], want)
			}
		}
	}
}

// The pages that say what taintlet is tested on name each release, and no other.
func TestPagesNameTheReleases(t *testing.T) {
	root, found := releases(t)
	slices.Sort(found)
	for page, pattern := range map[string]string{
		"README.md":              `\b1\.\d\d\.\d+\b`,
		"test/release/README.md": `(?m)^\| (1\.\d\d\.\d+) \|`,
	} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			got = append(got, match[len(match)-1])
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, found) {
			t.Errorf("%s names Kubernetes %v, test/controlplane has %v", page, got, found)
		}
	}
}

// The workflow runs .ci/run on the release of go.mod, and on the one before.
func TestWorkflowRunsTheNewestReleases(t *testing.T) {
	root, found := releases(t)
	text, err := os.ReadFile(filepath.Join(root, ".github/workflows/ci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	last := len(found) - 1
	if want := "matrix: {kubernetes: [" + found[last] + ", " + found[last-1] + "]}"; !strings.Contains(string(text), want) {
		t.Errorf("ci.yml has no %s", want)
	}
}

// releases returns the root of the repository and the releases of test/controlplane, go.mod's last.
func releases(t *testing.T) (root string, found []string) {
	t.Helper()
	module, err := findModule()
	if err != nil {
		t.Fatal(err)
	}
	all, err := readReleases(module)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		found = append(found, strings.TrimPrefix(r.version, "v"))
	}
	return filepath.Join(module, "..", ".."), found
}

// The API server has the last word on which tests may be skipped.
func TestMutatingAdmissionPolicyIsServedWhereItIsSaidToBe(t *testing.T) {
	c := shared.Require(t)
	served, err := c.Client().Discovery().ServerResourcesForGroupVersion(admissionregistrationv1.SchemeGroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	got := slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == "MutatingAdmissionPolicy" })
	if want := HasMutatingAdmissionPolicy(t); got != want {
		t.Errorf("Kubernetes %s serves MutatingAdmissionPolicy v1: %v, want %v", c.version, got, want)
	}
}
