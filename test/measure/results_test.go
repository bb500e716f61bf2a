package measure

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A page of results names the commit, and says when the checkout is not that
// commit.
func TestCommitOfADirtyCheckout(t *testing.T) {
	folder := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		command := exec.Command("git", append([]string{"-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...) //nolint:gosec // our own arguments
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	const code, result = "file", "of/results/day.md"
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "--quiet")
	if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(result)), 0o700); err != nil {
		t.Fatal(err)
	}
	write(code, "one")
	write(result, "one")
	git("add", ".")
	git("commit", "--quiet", "--message=one")
	clean := Here(folder)
	if clean.Commit == "unknown" || strings.Contains(clean.Commit, "dirty") {
		t.Errorf("a clean checkout is %q", clean.Commit)
	}
	write(result, "two")
	if got := Here(folder).Commit; got != clean.Commit {
		t.Errorf("with another result the checkout is %q, without %q", got, clean.Commit)
	}
	write(code, "two")
	if dirty := Here(folder); dirty.Commit != clean.Commit+"-dirty" {
		t.Errorf("a dirty checkout is %q, a clean one %q", dirty.Commit, clean.Commit)
	}
	if got := Here(t.TempDir()).Commit; got != "unknown" {
		t.Errorf("what is no checkout is %q", got)
	}
	for _, part := range []string{clean.Machine, clean.Kernel, clean.Kubernetes, clean.Commit, clean.Load} {
		if part == "" || part == "unknown" || !strings.Contains(clean.String(), part) {
			t.Errorf("%q lacks %q", clean, part)
		}
	}
}

// Figures that embed their origin are flat in the file, and Write replaces the
// files of an earlier run.
func TestWrite(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "results")
	type figures struct {
		Origin
		Count int
	}
	for count := range 2 {
		path, err := Write(folder, "2026-11-22", figures{Origin{Date: "2026-11-22"}, count}, "# text\n")
		if err != nil || path != filepath.Join(folder, "2026-11-22.md") {
			t.Fatal(path, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, "2026-11-22.json"))
	if err != nil {
		t.Fatal(err)
	}
	var flat map[string]any
	if err := json.Unmarshal(text, &flat); err != nil || flat["Date"] != "2026-11-22" || flat["Count"] != 1.0 {
		t.Errorf("%v %s", err, text)
	}
}
