package monitoring

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recording is what a Prometheus would have stored of the agents, as OpenMetrics text
// with times. What it lacks are the metrics of processes (go_, process_): all agents of
// the incident run in the process of the test.
type recording struct {
	t    *testing.T
	dir  string
	file *os.File
	text *bufio.Writer
}

func newRecording(t *testing.T) *recording {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "recorded.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return &recording{t, dir, file, bufio.NewWriter(file)}
}

// scraped takes in what an agent served, with the labels that a scrape adds.
func (r *recording) scraped(node, page string, answers bool, at time.Time) {
	labels := fmt.Sprintf(`job="taintlet",instance="%s:4808",node="%s"`, node, node)
	up := 0
	if answers {
		up = 1
	}
	r.put("up", labels, fmt.Sprint(up), at)
	for line := range strings.Lines(page) {
		name, value, found := cutLast(strings.TrimSpace(line), " ")
		if !found || !strings.HasPrefix(name, "taintlet_") {
			continue
		}
		name, own, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		if own != "" {
			own = "," + own
		}
		r.put(name, labels+own, value, at)
	}
}

func (r *recording) put(name, labels, value string, at time.Time) {
	fmt.Fprintf(r.text, "%s{%s} %s %d\n", name, labels, value, at.Unix())
}

// cutLast cuts a text at the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}

// blocks makes the recording what Prometheus stores, and returns the folder.
func (r *recording) blocks() string {
	r.t.Helper()
	fmt.Fprintln(r.text, "# EOF")
	if err := r.text.Flush(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.file.Close(); err != nil {
		r.t.Fatal(err)
	}
	data := filepath.Join(r.dir, "data")
	promtool := exec.CommandContext(r.t.Context(), "promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", r.file.Name(), data) //nolint:gosec // our own files
	if out, err := promtool.CombinedOutput(); err != nil {
		r.t.Fatalf("promtool tsdb create-blocks-from openmetrics: %v\n%s", err, out)
	}
	return data
}
