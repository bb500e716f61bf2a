package metrics

import (
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/test/fixtures"
)

// docs/metrics.md has every metric with its type and labels.
func TestMetricsAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, row := range fixtures.TableRows(t, "../../docs/metrics.md", "metric") {
		for name := range strings.SplitSeq(row[0], ", ") {
			documented[strings.Trim(name, "`")+" "+row[1]+" "+strings.ReplaceAll(row[2], ", ", ",")] = true
		}
	}
	served := map[string]bool{}
	for _, c := range New("test").own {
		descriptions := make(chan *prometheus.Desc, 1)
		c.Describe(descriptions)
		match := descPattern.FindStringSubmatch((<-descriptions).String())
		served[match[1]+" "+typeOf(c)+" "+match[2]] = true
	}
	fixtures.CompareNames(t, "docs/metrics.md", documented, served)
}

var descPattern = regexp.MustCompile(`fqName: "([^"]*)".*variableLabels: \{([^}]*)\}`)

func typeOf(c prometheus.Collector) string {
	switch c.(type) {
	case *prometheus.CounterVec, prometheus.Counter:
		if _, isGauge := c.(prometheus.Gauge); !isGauge {
			return "counter"
		}
		return "gauge"
	case *prometheus.HistogramVec:
		return "histogram"
	}
	return "gauge"
}

// The reasons that failures are counted by are those of Unknown samples in
// docs/reasons.md.
func TestFailureReasonsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	documented, counted := map[string]bool{}, map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.+`) \\| Unknown\\.").FindAllStringSubmatch(string(text), -1) {
		for reason := range strings.SplitSeq(row[1], ", ") {
			documented[strings.Trim(reason, "`")] = true
		}
	}
	for _, reason := range failureReasons() {
		counted[reason] = true
	}
	fixtures.CompareNames(t, "docs/reasons.md", documented, counted)
}

// The kinds of notices begin at 0, all of them.
func TestNoticesBeginAtZero(t *testing.T) {
	all, begun := map[string]bool{}, map[string]bool{string(decide.LevelChanged): true}
	for _, kind := range fixtures.ConstantsOf(t, "../decide", "Kind") {
		all[kind] = true
	}
	for _, kind := range noticeKinds() {
		begun[string(kind)] = true
	}
	fixtures.CompareNames(t, "agent/decide", all, begun)
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
