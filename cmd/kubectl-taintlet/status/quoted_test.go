package status

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/decide/describe"
)

// quoted are the outputs in docs/status.md, in its order.
var quoted = []string{
	"../../../test/deploy/testdata/broken.txt",
}

// docs/status.md shows real output: that of the golden files. -update puts it in.
func TestDocumentationShowsRealOutput(t *testing.T) {
	const file = "../../../docs/status.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	wanted := regexp.MustCompile("(?s)```\n(\\$ [^\n]+\n).*?```\n").ReplaceAllStringFunc(string(page), func(block string) string {
		lines := strings.SplitAfterN(block, "\n", 3)
		if next == len(quoted) {
			t.Fatalf("the page has more outputs than %d", next)
		}
		golden, err := os.ReadFile(quoted[next])
		if err != nil {
			t.Fatal(err)
		}
		next++
		output := string(golden)
		if _, left, found := strings.Cut(strings.TrimSpace(lines[1]), " | grep --invert-match "); found {
			output = regexp.MustCompile("(?m)^.*"+left+".*\n").ReplaceAllString(output, "")
		}
		return lines[0] + lines[1] + output + "```\n"
	})
	if next != len(quoted) {
		t.Fatalf("the page has %d outputs, not %d", next, len(quoted))
	}
	if wanted == string(page) {
		return
	}
	if !*update {
		t.Errorf("%s does not show the golden files; go test ./cmd/kubectl-taintlet/status -update puts them in", file)
		return
	}
	if err := os.WriteFile(file, []byte(wanted), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Each word of the column HELD BACK BY is explained.
func TestDocumentationExplainsEachHold(t *testing.T) {
	page, err := os.ReadFile("../../../docs/status.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, hold := range []describe.Hold{
		describe.HeldPaused, describe.HeldMaintenance, describe.HeldContested, describe.HeldVetoed, describe.HeldAcknowledged, describe.HeldAwaitsRemoval,
		describe.HeldFleetBrake, describe.HeldWriteBudget,
		describe.HeldEvictionSlot, describe.HeldEvictionInterval, describe.HeldControlPlane,
	} {
		if !strings.Contains(string(page), "| `"+string(hold)+"` |") {
			t.Errorf("docs/status.md does not explain %s", hold)
		}
	}
	for _, heading := range headings()[2:] {
		if heading != "REASON" && !strings.Contains(string(page), "| "+heading+" |") {
			t.Errorf("docs/status.md does not explain the column %s", heading)
		}
	}
}
