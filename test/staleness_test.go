package test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// figures are the results of a long run: pages that name the commit that was measured.
type figures struct {
	command string
	// pages is a pattern of the pages that name a commit.
	pages string
	// results is a file beside the page that names no commit itself; empty: none.
	results string
}

func longRuns() []figures {
	return []figures{
		{"make attack", "security/README.md", ""},
		{"make exhaust", "exhaust/README.md", "exhaust/results.txt"},
		{"make faults", "faults/results.md", ""},
		{"make network", "network/README.md", ""},
		{"make simulate-network", "simulate/network/README.md", "simulate/network/confusion.txt"},
		{"make culprit", "culprit/results.md", ""},
		{"make soak", "measure/soak/results/*.md", ""},
		{"make scale", "measure/scale/results/*.md", ""},
		{"make bench", "measure/bench/results/*.md", ""},
	}
}

// measuredPattern finds the commits that a page names, the newest figures first.
var measuredPattern = regexp.MustCompile(`\b[Cc]ommit ([0-9a-f]{7})[0-9a-f]*\b`)

// lostCommits were measured on a branch that was merged as other commits. No new one is to
// come here: a run on the final state names a commit of the history.
func lostCommits() []string { return []string{"16b3616"} }

// TestFiguresNameTheirCommit checks that each page with figures of a long run names the
// commit that was measured, and that no newer results stand beside an older commit. Its log
// says how much newer the product is: make staleness.
func TestFiguresNameTheirCommit(t *testing.T) {
	commits := history(t)
	for _, run := range longRuns() {
		pages, err := filepath.Glob(run.pages)
		if err != nil || len(pages) == 0 {
			t.Fatalf("%s: no page %s: %v", run.command, run.pages, err)
		}
		slices.Sort(pages)
		for _, page := range pages {
			found := measuredPattern.FindStringSubmatch(readText(t, page))
			if found == nil {
				t.Errorf("%s does not name the commit that was measured", page)
				continue
			}
			commit := found[1]
			switch {
			case commits == nil:
			case slices.Contains(lostCommits(), commit):
				t.Logf("%-22s %s: %s is not in the history", run.command, page, commit)
			case !commits[commit]:
				t.Errorf("%s names %s, which is no commit of the history", page, commit)
			default:
				checkAge(t, run, page, commit)
			}
		}
	}
}

// checkAge logs how many commits changed the product since a commit was measured. Results
// that were committed twice since then are not of that commit.
func checkAge(t *testing.T, run figures, page, commit string) {
	t.Helper()
	out, err := git("log", "--format=%h", commit+"..HEAD", "--", ":(top)agent/*.go", ":(top)probes/*.go", ":(top)taints/*.go", ":(top)cmd/*.go",
		":(top)deploy/helm", ":(exclude,top)*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%-22s %s: %d commits changed the product since %s", run.command, page, len(strings.Fields(out)), commit)
	if run.results == "" {
		return
	}
	if out, err = git("log", "--format=%h", commit+"..HEAD", "--", run.results); err != nil {
		t.Fatal(err)
	}
	if newer := strings.Fields(out); len(newer) > 1 {
		t.Errorf("%s names commit %s, and %s is newer: it was written again in %s", page, commit, run.results, newer[0])
	}
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
