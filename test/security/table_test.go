package security

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// row is what one attack came to.
type row struct {
	name             string
	attempts, denied int
	survived         bool
	memory           int // KiB
	delay            time.Duration
}

// table is in Markdown.
func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| attack | attempts | denied | survived | worst memory | worst delay |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		survived := "yes"
		if !r.survived {
			survived = "NO"
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %.1f MiB | %.2f s |\n", r.name, r.attempts, r.denied, survived, float64(r.memory)/1024, r.delay.Seconds())
	}
	return b.String()
}

const (
	page       = "README.md"
	tableBegin = "<!-- by make attack: begin -->\n"
	tableEnd   = "<!-- by make attack: end -->\n"
)

// refresh writes the table into the page if that was asked for.
func refresh(t *testing.T, table string) {
	t.Helper()
	if os.Getenv(writeEnv) == "" {
		return
	}
	if !isLong() {
		t.Fatalf("%s needs %s: the page shows the long form", writeEnv, longEnv)
	}
	commit, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), tableBegin)
	_, tail, foundEnd := strings.Cut(rest, tableEnd)
	if !found || !foundEnd {
		t.Fatalf("%s has no place for the table", page)
	}
	measured := fmt.Sprintf("Measured on %s at commit %s, on a machine with %d cores, by the long form:\n\n", time.Now().UTC().Format(time.DateOnly), strings.TrimSpace(string(commit)), runtime.NumCPU())
	if err := os.WriteFile(page, []byte(head+tableBegin+measured+table+tableEnd+tail), 0o644); err != nil { //nolint:gosec // a page of the documentation
		t.Fatal(err)
	}
}

// The page lists the attacks that there are, with what each does, and the table is
// of them.
func TestReliabilityPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), tableBegin)
	measured, after, _ := strings.Cut(rest, tableEnd)
	var want []string
	for _, a := range attacks() {
		want = append(want, a.name)
		if a.what != "" && !strings.Contains(before+after, a.what) {
			t.Errorf("%s does not say of %q: %s", page, a.name, a.what)
		}
	}
	var got []string
	for _, match := range regexp.MustCompile(`(?m)^\| ([^|]+?) \| \d`).FindAllStringSubmatch(measured, -1) {
		got = append(got, match[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s has %q\nthe code has %q", page, got, want)
	}
}
