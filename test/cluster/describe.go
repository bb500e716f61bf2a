// What kubectl describe says of Nodes, cut to what matters here.

package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/test/fixtures"
)

// Describe returns what kubectl describe says of a Node's taints and conditions and in
// taintlet's Events, without what differs from run to run.
func (c *Cluster) Describe(t testing.TB, node string) string {
	t.Helper()
	text := Timeless(NodeDescribed(c.RunKubectl(t, "describe", "node", node)))
	text = regexp.MustCompile(` {3,}`).ReplaceAllString(text, "  ")
	text = regexp.MustCompile(`(?m) +$`).ReplaceAllString(text, "")
	state, events, _ := strings.Cut(text, "Events:")
	lines := strings.Split(strings.TrimSpace(events), "\n")
	slices.Sort(lines[min(2, len(lines)):]) // those of the same second come in any order
	if len(lines) <= 2 {
		return state + "Events:  <none>\n"
	}
	return state + "Events:\n  " + strings.Join(lines, "\n") + "\n"
}

// NodeDescribed returns the part of kubectl describe node that is about taintlet. The
// Event RegisteredNode comes when the controller gets to it.
func NodeDescribed(text string) string {
	text = WithoutTimes(Sections(text, "Taints", "Conditions", "Events"))
	return regexp.MustCompile(`(?m)^ .* RegisteredNode .*\n`).ReplaceAllString(text, "")
}

// Timeless is what a program prints, without times, names of agents, and what it says of
// this machine's disk and interfaces.
func Timeless(text string) string {
	for _, volatile := range [][2]string{
		{`\b(\d+m)?\d+s( \(x\d+ over (\d+m)?\d+s\))?`, "…"},
		{`(clears after \d+) s\b`, "${1}s"}, // it is configured, and stays
		{`\b\d+ (s|min)\b`, "…"},
		{`(clears after \d+)s\b`, "$1 s"},
		{`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\dZ| UTC)`, "…"},
		{`\d\d:\d\d UTC`, "…"},
		{`available \S+ \SiB of \S+ \SiB \(\S+ %\) on [^;\n]*, threshold \S+ (%|\SiB)`, "available … on …, threshold … %"},
		{`(on …, threshold … %[^\n]* above) \S+ (%|\SiB)`, "$1 … %"},
		{`; \S+ \SiB written in [^;\n]*`, ""},        // on a large disk it is too little to tell
		{`no carrier on [^;\n]*`, "no carrier on …"}, // this machine's interface and routes
		{`by the agent \S+`, "by the agent …"},
		{`-{3,}`, "…"},
	} {
		text = regexp.MustCompile(volatile[0]).ReplaceAllString(text, volatile[1])
	}
	return text
}

// Golden compares a text with a file of the test's folder testdata.
// TAINTLET_UPDATE_GOLDEN=1 writes it.
func Golden(t testing.TB, name, got string) {
	t.Helper()
	fixtures.CompareGolden(t, os.Getenv("TAINTLET_UPDATE_GOLDEN") != "", filepath.Join("testdata", name), got)
}

// Sections returns those sections of what kubectl describe prints. A section
// begins with its name at the begin of a line.
func Sections(text string, names ...string) string {
	var kept strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") {
			name, _, _ := strings.Cut(line, ":")
			inside = slices.Contains(names, name)
		}
		if inside {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// WithoutTimes cuts the two columns of times out of the table of conditions,
// which makes it fit a terminal.
func WithoutTimes(text string) string {
	var kept strings.Builder
	from, to := -1, -1 // the columns; -1 outside of the table
	for line := range strings.Lines(text) {
		if at := strings.Index(line, "LastHeartbeatTime"); at >= 0 {
			from, to = at, strings.Index(line, "Reason")
		} else if !strings.HasPrefix(line, " ") {
			from, to = -1, -1
		}
		if 0 <= from && from < to && to < len(line) {
			line = line[:from] + line[to:]
		}
		kept.WriteString(line)
	}
	return kept.String()
}
