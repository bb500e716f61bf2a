// Package test holds the tests of the repository as a whole.
package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	functionPattern = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(`)
	// namedPattern finds the tests that a page names, as `TestX/subtest` or [TestX](x_test.go).
	namedPattern = regexp.MustCompile("[`\\[]((?:Test|Fuzz)[A-Z][\\w/-]*)[`\\]](?:\\(([^)]+)\\))?")
	// pagePattern finds the pages that a test names as a string, scriptPattern the commands of a page.
	pagePattern   = regexp.MustCompile(`"((?:[a-z-]+/)?[\w-]+\.md)"`)
	scriptPattern = regexp.MustCompile("(?s)```sh\n(.*?)```")
)

// Each test that a page names is there, and where a link leads to it in that file. So nobody
// who removes a test leaves a claim of SECURITY.md, an answer of complaints.md or a fault of
// trackrecord.md without one.
func TestNamedTestsExist(t *testing.T) {
	files := map[string][]string{} // of each test
	for _, path := range filesOf(t, "_test.go") {
		for _, match := range functionPattern.FindAllStringSubmatch(readText(t, path), -1) {
			files[match[1]] = append(files[match[1]], path)
		}
	}
	count := 0
	for _, page := range filesOf(t, ".md") {
		for _, match := range namedPattern.FindAllStringSubmatch(readText(t, page), -1) {
			count++
			name, subtest, _ := strings.Cut(match[1], "/")
			in := files[name]
			if match[2] != "" {
				in = []string{filepath.Join(filepath.Dir(page), match[2])}
			}
			if err := hasTest(t, in, name, subtest); err != nil {
				t.Errorf("%s names %s: %v", page, match[1], err)
			}
		}
	}
	if count < 250 {
		t.Errorf("only %d tests were found", count)
	}
}

// The commands of each page are run by a test, which takes them from the page. Those of
// CONTRIBUTING.md are steps of CI.
func TestCommandsOfPagesAreRun(t *testing.T) {
	isRun := map[string]bool{}
	for _, file := range filesOf(t, "_test.go") {
		if text := readText(t, file); strings.Contains(text, "bed.Scripts(") {
			for _, match := range pagePattern.FindAllStringSubmatch(text, -1) {
				isRun[match[1]] = true
			}
		}
	}
	ci, count := readText(t, "../.ci/run"), 0
	for _, page := range filesOf(t, ".md") {
		for _, script := range scriptPattern.FindAllStringSubmatch(readText(t, page), -1) {
			count++
			if page = strings.TrimPrefix(page, "../"); page == "CONTRIBUTING.md" {
				for line := range strings.Lines(script[1]) {
					if command := strings.TrimSpace(strings.Split(line, "#")[0]); !strings.Contains(ci, command) {
						t.Errorf("CI does not run %q of %s", command, page)
					}
				}
			} else if !isRun[page] {
				t.Errorf("no test runs the commands of %s:\n%s", page, script[1])
			}
		}
	}
	if count < 30 {
		t.Errorf("only %d scripts were found", count)
	}
}

// hasTest is an error if none of the files has a test. That of a subtest has to stand as a
// string in the same file, or as a scenario of its own.
func hasTest(t *testing.T, files []string, name, subtest string) error {
	t.Helper()
	for _, file := range files {
		text := readText(t, file)
		if !strings.Contains(text, "\nfunc "+name+"(") {
			continue
		}
		if name == "TestScenarios" && subtest != "" {
			_, err := os.Stat(filepath.Join(filepath.Dir(file), "testdata", subtest+".txt"))
			return err
		}
		// The name of a subtest has underscores in place of spaces.
		if subtest == "" || strings.Contains(text, `"`+subtest+`"`) || strings.Contains(text, `"`+strings.ReplaceAll(subtest, "_", " ")+`"`) {
			return nil
		}
	}
	return fmt.Errorf("it is not in %v", files)
}
