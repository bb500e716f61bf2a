package metrics

import (
	"flag"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/test/fixtures"
)

var update = flag.Bool("update", false, "write the table of metrics into docs/metrics.md")

// The table in docs/metrics.md has every metric with its type, its labels and its help text.
func TestMetricsAreDocumented(t *testing.T) {
	const page, begin, end = "../../docs/metrics.md", "<!-- generated: go test ./agent/metrics -run TestMetricsAreDocumented -update -->\n", "<!-- end -->"
	var rows []string
	for _, c := range all(New("test")) {
		name, labels, help := described(c)
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, typeOf(c), strings.ReplaceAll(labels, ",", ", "), help))
	}
	slices.Sort(rows)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, hasBegin := strings.Cut(string(text), begin)
	_, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd || len(rows) == 0 {
		t.Fatalf("%s has no table of the %d metrics", page, len(rows))
	}
	table := "| metric | type | labels | meaning |\n|---|---|---|---|\n" + strings.Join(rows, "")
	fixtures.CompareGolden(t, *update, page, before+begin+table+end+after)
}

// all are the metrics of taintlet itself.
func all(m *Metrics) []prometheus.Collector { return slices.Concat(m.counters, m.gauges.series) }

// described returns the name, the labels and the help text of a metric.
func described(c prometheus.Collector) (name, labels, help string) {
	descriptions := make(chan *prometheus.Desc, 1)
	c.Describe(descriptions)
	match := descPattern.FindStringSubmatch((<-descriptions).String())
	return match[1], match[3], match[2]
}

var descPattern = regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]*)".*variableLabels: \{([^}]*)\}`)

// Each Node of a cluster serves all of them, so there are few, and each has a use: a
// dashboard, an alert, or a page that says what to look up.
func TestMetricsAreUsed(t *testing.T) {
	const most = 28
	own := all(New("test"))
	if len(own) > most {
		t.Errorf("%d metrics, more than %d", len(own), most)
	}
	uses := ""
	for _, pattern := range []string{"deploy/monitoring/*.json", "deploy/monitoring/rules.yaml", "docs/*.md", "*.md"} {
		files, err := filepath.Glob("../../" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v (%v)", pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(file) != "metrics.md" {
				uses += string(text)
			}
		}
	}
	for _, c := range own {
		if name, _, _ := described(c); !regexp.MustCompile(`\b` + name + `\b`).MatchString(uses) {
			t.Errorf("%s is used by no dashboard, no alert and no page", name)
		}
	}
}

func typeOf(c prometheus.Collector) string {
	if _, isCounter := c.(*prometheus.CounterVec); isCounter {
		return "counter"
	}
	return "gauge"
}

// docs/metrics.md has every input, with its condition and unit.
func TestInputsAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, row := range fixtures.TableRows(t, "../../docs/metrics.md", "input") {
		for name := range strings.SplitSeq(row[0], ", ") {
			documented[row[1]+" "+strings.Trim(name, "`")+" "+row[2]] = true
		}
	}
	shown := map[string]bool{}
	for _, definition := range config.HostSchema() {
		err := filepath.WalkDir("../../probes/"+definition.Field, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				for input, unit := range measuresIn(t, path) {
					shown[string(definition.Name)+" "+input+" "+strings.ToLower(unit)] = true
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	fixtures.CompareNames(t, "docs/metrics.md", documented, shown)
}

// measuresIn returns the names and units of the probes.Measure literals in a folder. A
// name with something behind it ends in an asterisk.
func measuresIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	fixtures.Inspect(t, folder, func(n ast.Node) {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return
		}
		if of, ok := literal.Type.(*ast.SelectorExpr); !ok || of.Sel.Name != "Measure" {
			return
		}
		name, unit := "", ""
		for _, element := range literal.Elts {
			field := element.(*ast.KeyValueExpr)
			switch value := field.Value.(type) {
			case *ast.BasicLit:
				if field.Key.(*ast.Ident).Name == "Name" {
					name = fixtures.Literal(value)
				}
			case *ast.BinaryExpr:
				if field.Key.(*ast.Ident).Name == "Name" {
					name = fixtures.Literal(value.X) + "*"
				}
			case *ast.SelectorExpr:
				if field.Key.(*ast.Ident).Name == "Unit" {
					unit = value.Sel.Name
				}
			}
		}
		found[name] = unit
	})
	return found
}
