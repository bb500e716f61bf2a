package hosts_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/measure"
)

// tableEnv names the page that a run writes, such as docs/hosts.md.
const tableEnv = "TAINTLET_HOSTS_TABLE"

const tableHead = `# Real hosts

This page is written by ` + "`make hosts`" + `. Each machine is a virtual machine with Debian's kernel, systemd and containerd, control groups v2,
and a kubelet with its default thresholds. taintlet runs from the image and the manifests as shipped. Only the times until taintlet and
the kubelet clear are shorter, so that the incidents can follow one another. QEMU emulates the machines, on two shared processors: everything takes several times
longer than on a real host. Compare the two columns of seconds with each other, not with a clock.

After each incident, the run waits until the Node is healthy and has no taint.

`

const tableColumns = "| kernel | incident | taintlet, s | the kubelet, s | what the condition said |\n|---|---|---|---|---|\n"

// table has the results in the order of the run.
type table struct {
	origin measure.Origin
	rows   []string
	wrong  []string
}

// write writes the page that TAINTLET_HOSTS_TABLE names, after each incident: a run that is
// broken off says that it was partial.
func (t *table) write(test *testing.T) {
	test.Helper()
	path := os.Getenv(tableEnv)
	if path == "" {
		return
	}
	if err := os.WriteFile(path, []byte(t.text()), 0o644); err != nil {
		test.Error(err)
	}
}

func (t *table) add(kernel, incident string, r result) {
	said := r.words
	switch {
	case !r.right:
		t.wrong = append(t.wrong, fmt.Sprintf("%s, %s", kernel, incident))
	case said == "":
		said = "no taint, which is right"
	}
	t.rows = append(t.rows, fmt.Sprintf("| %s | %s | %s | %s | %s |\n", kernel, incident, seconds(r.taintlet), seconds(r.kubelet), said))
}

// seconds are those from the start of the incident; without any, the condition never came
// while the incident lasted.
func seconds(after time.Duration) string {
	if after == 0 {
		return "never"
	}
	return fmt.Sprintf("%.0f", after.Seconds())
}

func (t *table) text() string {
	machines := map[string]bool{}
	for _, row := range t.rows {
		machines[strings.Fields(row)[1]] = true
	}
	text := tableHead + fmt.Sprintf("%s. %s\n\n", t.origin.Date, t.origin)
	if whole := len(releases()) * len(incidents()); len(t.rows) < whole {
		text += fmt.Sprintf("This was a partial run: %d of %d incidents, on %d of %d machines.\n\n", len(t.rows), whole, len(machines), len(releases()))
	}
	text += tableColumns + strings.Join(t.rows, "")
	for _, wrong := range t.wrong {
		text += "\nNot as demanded: " + wrong + ".\n"
	}
	return text
}
