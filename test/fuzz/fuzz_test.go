// Package fuzz holds what belongs to all fuzz tests: that every parser has one, that their
// corpora are committed, and how OSS-Fuzz builds them.
package fuzz

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// target is a fuzz test: its folder, its name and its package.
type target struct{ folder, name, in string }

var (
	targetPattern  = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	packagePattern = regexp.MustCompile(`(?m)^package (\w+)$`)
)

// targets are all fuzz tests of the repository, by folder and name.
func targets(t *testing.T) (all []target) {
	t.Helper()
	walk(t, func(path, text string) {
		for _, match := range targetPattern.FindAllStringSubmatch(text, -1) {
			all = append(all, target{filepath.ToSlash(filepath.Dir(path)), match[1], packagePattern.FindStringSubmatch(text)[1]})
		}
	}, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	if len(all) == 0 {
		t.Fatal("no fuzz test was found")
	}
	return all
}

func namesOf(targets []target) (names []string) {
	for _, one := range targets {
		names = append(names, one.name)
	}
	return names
}

// walk reads the Go files of the product's rooms.
func walk(t *testing.T, read func(path, text string), wants func(path string) bool) {
	t.Helper()
	for _, room := range []string{"agent", "cmd", "probes", "taints"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || !wants(path) {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			inside, err := filepath.Rel(root, path)
			read(inside, string(text))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// parserPattern finds functions that turn text or bytes into something.
var parserPattern = regexp.MustCompile(`(?m)^func (?:\(\w+ \*?\w+\) )?((?:[pP]arse|[rR]ead|Unmarshal|Decode)\w*)\((?:text|data|body|value|answer|line|field|digits)\b`)

// parsedElsewhere has parsers that no fuzz test calls by name, and the fuzz test that reaches
// them.
func parsedElsewhere() map[string]string {
	return map[string]string{
		"agent/config Decode":        "FuzzConfiguration",
		"agent/decide UnmarshalJSON": "FuzzConfiguration",
		"agent/decide parseRecord":   "FuzzRecord",
		"agent/decide parsePause":    "FuzzPaused",
		"probes/pid parsePositive":   "FuzzParseCount",
	}
}

// TestEveryParserIsFuzzed finds each parser of the product, and the fuzz test of its folder
// that calls it.
func TestEveryParserIsFuzzed(t *testing.T) {
	fuzzed := map[string]string{} // texts of the files with fuzz tests, by folder
	walk(t, func(path, text string) {
		if targetPattern.MatchString(text) {
			fuzzed[filepath.Dir(path)] += text
		}
	}, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	names := namesOf(targets(t))
	elsewhere, used, found := parsedElsewhere(), map[string]bool{}, 0
	walk(t, func(path, text string) {
		for _, match := range parserPattern.FindAllStringSubmatch(text, -1) {
			found++
			folder, parser := filepath.Dir(path), match[1]
			by, isElsewhere := elsewhere[folder+" "+parser]
			used[folder+" "+parser] = true
			if isElsewhere && !slices.Contains(names, by) {
				t.Errorf("%s: there is no %s", path, by)
			}
			if !isElsewhere && !regexp.MustCompile(`\b`+parser+`\(`).MatchString(fuzzed[folder]) {
				t.Errorf("%s: no fuzz test of %s calls %s", path, folder, parser)
			}
		}
	}, func(path string) bool { return !strings.HasSuffix(path, "_test.go") })
	for parser := range elsewhere {
		if !used[parser] {
			t.Errorf("there is no parser %s", parser)
		}
	}
	if found < 20 {
		t.Errorf("only %d parsers were found", found)
	}
}

// TestOSSFuzzBuildsAll holds the list in build.sh against the fuzz tests. A test in package
// main or in a package beside that of the folder cannot be built there.
func TestOSSFuzzBuildsAll(t *testing.T) {
	text, err := os.ReadFile("oss-fuzz/build.sh")
	if err != nil {
		t.Fatal(err)
	}
	every := targets(t)
	var want []string
	for _, one := range every {
		line := "build " + one.folder + " " + one.name
		if one.in == "main" || strings.HasSuffix(one.in, "_test") {
			line = "# " + one.folder + " " + one.name
		}
		want = append(want, line)
		// The builder looks for the name's beginning, in the folder and below it.
		for _, other := range every {
			isBelow := other.folder == one.folder || strings.HasPrefix(other.folder, one.folder+"/")
			if other.name != one.name && isBelow && strings.HasPrefix(other.name, one.name) {
				t.Errorf("%s begins like %s: the builder cannot tell them apart", other.name, one.name)
			}
		}
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); regexp.MustCompile(`^(build|#) \S+/?\S* Fuzz\w+$`).MatchString(line) {
			got = append(got, line)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("build.sh has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestCorporaAreCommitted checks that every committed seed belongs to a fuzz test, and that
// what others write is fuzzed from real examples.
func TestCorporaAreCommitted(t *testing.T) {
	seeds := map[string]int{}
	files, err := filepath.Glob(root + "/*/testdata/fuzz/*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{root + "/*/*/testdata/fuzz/*/*", root + "/*/*/*/testdata/fuzz/*/*"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 16<<10 {
			t.Errorf("%s has %d bytes; a seed is small", file, info.Size())
		}
		seeds[filepath.Base(filepath.Dir(file))]++
	}
	names := namesOf(targets(t))
	for name := range seeds {
		if !slices.Contains(names, name) {
			t.Errorf("there are seeds of %s, and no such test", name)
		}
	}
	for _, name := range []string{"FuzzRecord", "FuzzNode", "FuzzHeld", "FuzzPaused", "FuzzStatus", "FuzzConfiguration", "FuzzChoose", "FuzzSlice", "FuzzHeard", "FuzzParseAnswer", "FuzzRequest", "FuzzShown"} {
		if seeds[name] == 0 {
			t.Errorf("no seed of %s is committed", name)
		}
	}
}
