package hosts_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/measure"
)

// tableEnv names the page that a run writes, such as test/hosts/results.md.
const tableEnv = "TAINTLET_HOSTS_TABLE"

const tableHead = `# Real hosts

This page is written by ` + "`make hosts`" + `. Each machine is a virtual machine with Debian's kernel, systemd and containerd, and a kubelet
with its default thresholds. Control groups are v2, on Linux 5.10 v1. taintlet runs from the image and the manifests as shipped. Only the times
until taintlet and the kubelet clear are shorter, so that the incidents can follow one another. QEMU emulates the machines, on two shared
processors: everything takes several times longer than on a real host. Compare the two columns of seconds with each other, not with a clock.

After each incident, the run waits until the Node is healthy and has no taint.

`

const tableColumns = "| kernel | incident | taintlet, s | the kubelet, s | the condition | run |\n|---|---|---|---|---|---|\n"

// table has the results of this run, in its order, and those on the page that another run wrote.
type table struct {
	origin measure.Origin
	rows   []string
}

// readTable reads the page that TAINTLET_HOSTS_TABLE names: a run of some incidents
// replaces their rows.
func readTable(t *testing.T) *table {
	t.Helper()
	read := &table{origin: measure.Here("../..")}
	page, err := os.ReadFile(os.Getenv(tableEnv))
	if err != nil {
		return read // there is none yet
	}
	if _, rows, found := strings.Cut(string(page), tableColumns); found {
		read.rows = slices.Collect(strings.Lines(rows))
	}
	return read
}

func (t *table) add(kernel, incident string, r result) {
	said := r.words
	if !r.right {
		said = "**Not as demanded.** " + cmp.Or(said, "the taint, or what it has to say, did not come")
	}
	row := fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", kernel, incident, seconds(r.taintlet), seconds(r.kubelet), said, t.origin.Date+", "+t.origin.Commit)
	if i := slices.IndexFunc(t.rows, func(other string) bool { return rowKey(other) == rowKey(row) }); i >= 0 {
		t.rows[i] = row
		return
	}
	t.rows = append(t.rows, row)
}

// rowKey tells rows apart: the incident and the first two numbers of the kernel, of which there are updates.
func rowKey(row string) [3]string {
	cells := strings.SplitN(row, " | ", 3)
	numbers := strings.SplitN(cells[0], ".", 3)
	return [3]string{numbers[0], numbers[1], cells[1]}
}

// seconds are those from the start of the incident; without any, the condition never came
// while the incident lasted.
func seconds(after time.Duration) string {
	if after == 0 {
		return "never"
	}
	return fmt.Sprintf("%.0f", after.Seconds())
}

// write writes the page after each incident, so that a run that is broken off leaves what
// it found.
func (t *table) write(test *testing.T) {
	test.Helper()
	path := os.Getenv(tableEnv)
	if path == "" {
		return
	}
	text := tableHead + fmt.Sprintf("The last column names the day and the commit of each row. The newest run: %s, %s\n\n", t.origin.Date, t.origin)
	if whole := len(releases()) * len(incidents()); len(t.rows) < whole {
		text += fmt.Sprintf("The table is partial: %d of %d incidents were run.\n\n", len(t.rows), whole)
	}
	if err := os.WriteFile(path, []byte(text+tableColumns+strings.Join(t.rows, "")), 0o644); err != nil {
		test.Error(err)
	}
}
