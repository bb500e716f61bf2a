// Package test holds the tests of the repository as a whole.
package test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	complaintsPage = "complaints.md"
	// scenarioTest names its subtests after the files in scenarioFiles.
	scenarioTest  = "TestScenarios"
	scenarioFiles = "../agent/decide/testdata"
)

// complaints are the issues and pull requests that the page has to answer.
var complaints = map[string][]int{
	"NVIDIA/NVSentinel":                         {1424},
	"antrea-io/antrea":                          {4651},
	"aws/eks-node-monitoring-agent":             {39, 215, 250, 275},
	"cilium/cilium":                             {17103, 31943},
	"gocrane/crane":                             {709, 894},
	"kubernetes-sigs/descheduler":               {1060},
	"kubernetes-sigs/node-readiness-controller": {260, 342, 347, 357, 382},
	"kubernetes/autoscaler":                     {1350},
	"kubernetes/kubernetes":                     {47899, 90794, 115516, 119645, 122779, 126755, 128304},
	"kubernetes/node-problem-detector":          {37, 124, 304, 423, 457, 474, 565, 622, 625, 640, 652, 662, 669, 893, 1011},
	"kubevirt/kubevirt":                         {9109},
	"planetlabs/draino":                         {89},
	"projectcalico/calico":                      {11331},
	"uswitch/nidhogg":                           {24},
}

// row is one complaint of the page: its heading and references, the answer, and
// the tests.
type row struct{ complaint, why, test string }

// The table of complaints answers each of them, and no answer names a test
// that does not exist. "to come: ..." is an answer that does not hold yet.
func TestComplaintsAreAnswered(t *testing.T) {
	page := readPage(t)
	tests := testFiles(t)
	answered := map[string]bool{}
	for _, r := range page {
		for _, reference := range references(r.complaint) {
			answered[reference] = true
		}
		if err := r.check(tests); err != nil {
			t.Errorf("%s\n%v", r.complaint, err)
		}
	}
	for repository, numbers := range complaints {
		for _, number := range numbers {
			if reference := repository + "#" + strconv.Itoa(number); !answered[reference] {
				t.Errorf("no row answers %s", reference)
			}
		}
	}
}

// readPage returns the complaints of the page. Each has a heading, a line of
// references, the answer, and a line of tests.
func readPage(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile(complaintsPage)
	if err != nil {
		t.Fatal(err)
	}
	var page []row
	for _, entry := range strings.Split(string(text), "\n### ")[1:] {
		entry, _, _ = strings.Cut(entry, "\n## ")
		complaint, rest, _ := strings.Cut(entry, "\n\n")
		why, tests, found := strings.Cut(rest, "\n\nTests: ")
		if !found {
			t.Fatalf("no line of tests: %s", entry)
		}
		page = append(page, row{complaint, strings.TrimSpace(why), strings.TrimSpace(tests)})
	}
	return page
}

var referencePattern = regexp.MustCompile(`([\w.-]+/[\w.-]+)?#(\d+)`)

// references returns what a cell refers to as owner/repository#number. One
// without a repository belongs to the repository before it.
func references(cell string) []string {
	var all []string
	repository := ""
	for _, match := range referencePattern.FindAllStringSubmatch(cell, -1) {
		if match[1] != "" {
			repository = match[1]
		}
		all = append(all, repository+"#"+match[2])
	}
	return all
}

var (
	testPattern   = regexp.MustCompile("`(Test[^`]*)`")
	toComePattern = regexp.MustCompile(`to come: \w`)
)

// check is an error when the row has no answer, or one that names a test that
// does not exist.
func (r row) check(tests map[string][]string) error {
	switch {
	case len(references(r.complaint)) == 0:
		return fmt.Errorf("the row refers to no complaint")
	case r.why == "":
		return fmt.Errorf("the row does not say why")
	case strings.Contains(r.test, "TODO"):
		return fmt.Errorf("still to do: %s", r.test)
	}
	named := testPattern.FindAllStringSubmatch(r.test, -1)
	if len(named) == 0 && !toComePattern.MatchString(r.test) {
		return fmt.Errorf("%q is neither a test nor \"to come: ...\"", r.test)
	}
	for _, match := range named {
		if !exists(tests, match[1]) {
			return fmt.Errorf("there is no test %s", match[1])
		}
	}
	return nil
}

// exists reports whether there is a test of that name. That of a subtest has to
// stand as a string in the same file, or as a scenario of its own.
func exists(tests map[string][]string, name string) bool {
	name, subtest, _ := strings.Cut(name, "/")
	if name == scenarioTest && subtest != "" {
		_, err := os.Stat(filepath.Join(scenarioFiles, subtest+".txt"))
		return err == nil && len(tests[name]) > 0
	}
	for _, text := range tests[name] {
		// The name of a subtest has underscores in place of spaces.
		if subtest == "" || strings.Contains(text, `"`+subtest+`"`) || strings.Contains(text, `"`+strings.ReplaceAll(subtest, "_", " ")+`"`) {
			return true
		}
	}
	return false
}

var functionPattern = regexp.MustCompile(`(?m)^func (Test\w*)\(\w+ \*testing\.T\)`)

// testFiles returns the texts of the files in which each test is.
func testFiles(t *testing.T) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range functionPattern.FindAllStringSubmatch(string(text), -1) {
			tests[match[1]] = append(tests[match[1]], string(text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
