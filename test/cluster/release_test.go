package cluster

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReleaseIsTheOneAskedFor(t *testing.T) {
	inModule(t, map[string]string{
		"go.mod": requiring("v1.37.2"), "go.sum": "new",
		"1.35.4.mod": requiring("v1.35.4"), "1.35.4.sum": "old",
		"1.34.4.mod": requiring("v1.34.4"), // and no sums
	})
	stamps := map[string]bool{}
	for _, test := range []struct{ asked, version, modfile, complaint string }{
		{"", "v1.37.2", "go.mod", ""},
		{"1.37.2", "v1.37.2", "go.mod", ""},
		{"1.35.4", "v1.35.4", "1.35.4.mod", ""},
		{"1.35", "", "", "TAINTLET_K8S=1.35: test/controlplane has no such Kubernetes, but 1.34.4, 1.35.4, 1.37.2"},
		{"1.34.4", "", "", "1.34.4.sum: no such file"},
	} {
		t.Setenv(releaseEnv, test.asked)
		src, err := findSource()
		if test.complaint != "" {
			if err == nil || !strings.Contains(err.Error(), test.complaint) {
				t.Errorf("%q: %v, want %q", test.asked, err, test.complaint)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if src.version != test.version || filepath.Base(src.dir) != test.version || filepath.Base(src.modfile) != test.modfile {
			t.Errorf("%q: %s of %s in %s, want %s of %s", test.asked, src.version, src.modfile, src.dir, test.version, test.modfile)
		}
		stamps[src.stamp] = true
	}
	if len(stamps) != 2 {
		t.Errorf("two releases have %d stamps", len(stamps))
	}
}

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
		"deploy/README.md":       `\b1\.\d\d\.\d+\b`,
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

// The version that a program tells is one that Build gave it. The modules that
// it is made of are told by the linker.
func TestProgramsAreOfTheRelease(t *testing.T) {
	c := shared.Require(t)
	for _, name := range []string{APIServer, ControllerManager, Scheduler} {
		info, err := buildinfo.ReadFile(filepath.Join(c.bin, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Main; got.Path != "k8s.io/kubernetes" || got.Version != c.version {
			t.Errorf("%s is built from %s %s, want k8s.io/kubernetes %s", name, got.Path, got.Version, c.version)
		}
	}
}
