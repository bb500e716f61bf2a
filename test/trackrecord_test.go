package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	foundPage   = "trackrecord.md"
	foundFaults = "trackrecord.txt"
	// unknownCommit stands where nobody looked for a commit, or found it.
	unknownCommit = "unknown"
)

// fault is an entry of foundFaults.
type fault struct{ what, found, brought, mended, shown string }

// TestTrackRecord checks that trackrecord.md has the table of all faults that were
// found, that their commits are in the history, and that the tests which cover them exist.
func TestTrackRecord(t *testing.T) {
	faults := readFaults(t)
	commits := history(t)
	table := "| fault | found by | brought by | fixed by | covered by |\n|---|---|---|---|---|\n"
	for _, f := range faults {
		for _, commit := range []string{f.brought, f.mended} {
			if commits != nil && commit != unknownCommit && !commits[commit] {
				t.Errorf("%s\n%s is no commit of the history", f.what, commit)
			}
		}
		link, err := f.coveredBy()
		if err != nil {
			t.Errorf("%s\n%v", f.what, err)
		}
		table += fmt.Sprintf("| %s | %s | %s | %s | %s |\n", f.what, f.found, f.brought, f.mended, link)
	}
	table += fmt.Sprintf("\n%d faults.\n", len(faults))
	checkGenerated(t, foundPage, "faults", table)
}

// readFaults reads foundFaults: entries of five fields, in a fixed order, and comments.
func readFaults(t *testing.T) (all []fault) {
	t.Helper()
	for block := range strings.SplitSeq(readText(t, foundFaults), "\n\n") {
		if strings.HasPrefix(block, "#") {
			continue
		}
		var values []string
		for i, line := range strings.Split(strings.TrimSpace(block), "\n") {
			name, value, found := strings.Cut(line, ": ")
			if i > 4 || !found || name != []string{"what", "found", "brought", "mended", "shown"}[i] || strings.Contains(value, "|") {
				t.Fatalf("%s: %q is not field %d of a fault", foundFaults, line, i+1)
			}
			values = append(values, value)
		}
		if len(values) != 5 {
			t.Fatalf("%s: %d fields: %s", foundFaults, len(values), block)
		}
		all = append(all, fault{values[0], values[1], values[2], values[3], values[4]})
	}
	return all
}

// coveredBy links the test that covers the fault now, or says why none does.
func (f fault) coveredBy() (string, error) {
	if why, isGone := strings.CutPrefix(f.shown, "nothing: "); isGone {
		return why, nil
	}
	folder, name, found := strings.Cut(strings.TrimPrefix(f.shown, "./"), " ")
	function, _, _ := strings.Cut(name, "/")
	file, text := fileOfTest(filepath.Join("..", folder), function)
	if !found || file == "" || !exists(map[string][]string{function: {text}}, name) {
		return "", fmt.Errorf("there is no test %s", f.shown)
	}
	return fmt.Sprintf("[%s](%s)", name, file), nil
}

// fileOfTest returns the file of a folder that has the test, and its text; empty: none has.
func fileOfTest(folder, function string) (path, text string) {
	files, _ := filepath.Glob(filepath.Join(folder, "*_test.go")) // the pattern is valid
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err == nil && regexp.MustCompile(`(?m)^func `+function+`\(`).Match(content) {
			return filepath.ToSlash(file), string(content)
		}
	}
	return "", ""
}

// history returns the short hashes of all commits before this one. It is nil, with a line
// that says why, where git or a part of the history is missing.
func history(t *testing.T) map[string]bool {
	t.Helper()
	if out, err := git("rev-parse", "--is-shallow-repository"); err != nil || out != "false" {
		t.Logf("commits are not looked up: this is no whole clone (shallow: %q, %v)", out, err)
		return nil
	}
	out, err := git("log", "--abbrev=7", "--format=%h")
	if err != nil {
		t.Fatal(err)
	}
	commits := map[string]bool{}
	for line := range strings.Lines(out + "\n") {
		commits[strings.TrimSpace(line)[:7]] = true
	}
	return commits
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output() //nolint:gosec // reads this repository
	return strings.TrimSpace(string(out)), err
}

// checkGenerated compares the part of a page between its marks with a text; -update writes it.
func checkGenerated(t *testing.T, page, part, text string) {
	t.Helper()
	begin, end := "<!-- generated: "+part+" -->\n", "<!-- end -->"
	whole := readText(t, page)
	before, rest, hasBegin := strings.Cut(whole, begin)
	_, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		t.Fatalf("%s has no part %q", page, part)
	}
	wanted := before + begin + text + end + after
	switch {
	case *writeGenerated:
		if err := os.WriteFile(page, []byte(wanted), 0o600); err != nil {
			t.Fatal(err)
		}
	case whole != wanted:
		t.Errorf("the part %q of %s is not as generated; go test ./test -run %s -update writes it:\n%s", part, page, t.Name(), text)
	}
}
