package scale

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what the results say into docs/scale.md and tables.md")

const scalePage = "../../../docs/scale.md"

func committedResults(t *testing.T) *results {
	t.Helper()
	all, err := readResults("results")
	if err != nil {
		t.Fatal(err)
	}
	return resultsOf(all)
}

func resultsOf(all []*figures) *results {
	full := slices.DeleteFunc(newestFull(all), func(f *figures) bool { return !slices.Contains(pageSizes(), f.Nodes) })
	return &results{all, full}
}

// pages are the pages with generated parts, and these parts by name.
func pages() map[string]map[string]func(*results, printer) {
	return map[string]map[string]func(*results, printer){scalePage: summarySections(), "tables.md": tableSections()}
}

func summarySections() map[string]func(*results, printer) {
	return map[string]func(*results, printer){"short": (*results).short, "limits": (*results).limits}
}

func tableSections() map[string]func(*results, printer) {
	return map[string]func(*results, printer){
		"runs": (*results).runs, "demands": (*results).demands, "growth": (*results).growth, "larger": (*results).larger,
		"idle": (*results).idle, "cost": (*results).cost, "incidents": (*results).incidents, "incident requests": (*results).incidentRequests,
		"restarts": (*results).restarts, "restart requests": (*results).restartRequests, "held": (*results).held, "status": (*results).status, "own": (*results).own, "cores": (*results).cores,
	}
}

// generated finds a part that is generated: its name, and its text.
func generated() *regexp.Regexp {
	return regexp.MustCompile(`(?s)<!-- generated: ([a-z ]+) -->\n(.*?)<!-- end -->`)
}

// generate returns the page with each generated part as the results have it.
func generate(page string, left map[string]func(*results, printer), r *results) (string, error) {
	var err error
	page = generated().ReplaceAllStringFunc(page, func(part string) string {
		name := generated().FindStringSubmatch(part)[1]
		section := left[name]
		if section == nil {
			err = fmt.Errorf("<!-- generated: %s -->: no such part, or it is there twice", name)
			return part
		}
		delete(left, name)
		var b strings.Builder
		section(r, func(format string, args ...any) { fmt.Fprintf(&b, format, args...) })
		return fmt.Sprintf("<!-- generated: %s -->\n%s<!-- end -->", name, b.String())
	})
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("the page lacks the parts %q", slices.Sorted(maps.Keys(left)))
	}
	return page, err
}

// The figures of docs/scale.md and of its tables are those of the newest full runs.
func TestScalePage(t *testing.T) {
	t.Parallel()
	for page, sections := range pages() {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		want, err := generate(string(text), sections, committedResults(t))
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(page, []byte(want), 0o644); err != nil { //nolint:gosec // for everybody to read
				t.Fatal(err)
			}
			text = []byte(want)
		}
		if string(text) != want {
			t.Errorf("%s is not what the results say; after a look at the difference: go test ./test/measure/scale -run TestScalePage -update\n%s", page, firstDifference(string(text), want))
		}
		for _, figure := range figuresIn(generated().ReplaceAllString(string(text), "")) {
			t.Errorf("%s: the figure %s is outside the generated tables", page, figure)
		}
	}
}

func firstDifference(is, want string) string {
	a, b := strings.Split(is, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is   %s\nand should be %s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, and should be %d", len(a), len(b))
}

// figuresIn returns the numbers of a text, but for those in code, addresses of links, and
// words such as p99.
func figuresIn(text string) []string {
	text = regexp.MustCompile("(?s)```.*?```|`[^`]*`|\\]\\([^)]*\\)").ReplaceAllString(text, " ")
	var all []string
	for _, found := range regexp.MustCompile(`(?:^|[^\w.,-])(\d+(?:,\d{3})*(?:\.\d+)?)`).FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	return all
}

// Partial runs are in no table of full runs, and a size without a full run is named.
func TestPageTellsPartialRuns(t *testing.T) {
	t.Parallel()
	partial, older := good(5000), good(1000)
	partial.Partial, partial.file = "only incident", "partial-5000"
	older.Incidents[1].Last, older.file = 7777*time.Millisecond, "older"
	newer := good(1000)
	newer.file = "newer"
	r := resultsOf([]*figures{older, partial, newer, good(100), good(333)})
	text := map[string]string{}
	for _, sections := range pages() {
		for name, section := range sections {
			var b strings.Builder
			section(r, func(format string, args ...any) { fmt.Fprintf(&b, format, args...) })
			text[name] = b.String()
		}
	}
	text["limits of one run"] = render(newer, nil)
	for section, want := range map[string]string{
		"limits of one run": "## Mass incidents\n\n| incident | nodes |", "runs": "| 5,000 | no full run |", "limits": "results/partial-5000.md), partial | 5,000 of 5,000 |", "demands": "| demand | 100 nodes | 1,000 nodes |\n",
		"larger": "From the run of 1,000 nodes", "incidents": "| brake off | 1,000 | 1,000 of 1,000 | 5.0 s |",
	} {
		if !strings.Contains(text[section], want) {
			t.Errorf("%s lacks %q:\n%s", section, want, text[section])
		}
	}
	for section, got := range text {
		if !strings.HasPrefix(section, "limits") && strings.Contains(got, "partial-5000") || strings.Contains(got, "7.8 s") || strings.Contains(got, "| 333 |") && !strings.HasPrefix(section, "limits") {
			t.Errorf("%s has a run that is partial, old or of another size:\n%s", section, got)
		}
	}
}
