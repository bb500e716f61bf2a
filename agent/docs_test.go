package agent

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
)

// rows returns the cells of the first table of a page whose heading row begins
// with that word.
func rows(t *testing.T, page, heading string) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	var found [][]string
	inside := false
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch first := strings.TrimSpace(cells[0]); {
		case first == heading:
			inside = true
		case inside && !strings.HasPrefix(line, "|"):
			return found
		case inside && !strings.HasPrefix(line, "|---"):
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			found = append(found, cells)
		}
	}
	return found
}

var wordPattern = regexp.MustCompile("`([^`]+)`")

// docs/events.md has every reason of an Event that the code can write.
func TestEventsAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, row := range rows(t, "events.md", "reason") {
		documented[wordPattern.FindStringSubmatch(row[0])[1]] = true
	}
	compare(t, "docs/events.md", documented, eventReasons(t))
}

// What each Event says is in a golden file.
func TestEventsHaveAGoldenText(t *testing.T) {
	var golden string
	for _, file := range []string{"testdata/events.golden", "decide/testdata/messages.golden"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		golden += string(text)
	}
	for reason := range eventReasons(t) {
		if !strings.Contains(golden, strings.ReplaceAll(reason, "<Condition>", "MemoryPressure")+": ") {
			t.Errorf("no golden file has what %s says", reason)
		}
	}
}

// eventReasons are the reasons of Events that the code can write.
func eventReasons(t *testing.T) map[string]bool {
	t.Helper()
	written := map[string]bool{"Host<Condition>Degraded": true, "Host<Condition>Critical": true, "Host<Condition>OK": true}
	for _, kind := range kinds(t) {
		switch decide.Kind(kind) {
		case decide.LevelChanged, decide.TaintLost, decide.RecordRefused: // the first three; none; those below
		default:
			written[kind] = true
		}
	}
	for _, reason := range slices.Concat(literalReasons(t, "decide", "Reason"), calledWith(t, "event", 1), warnings(t)) {
		written[reason] = true
	}
	return written
}

// warnings are the reasons of the probes' good samples that people are told of.
func warnings(t *testing.T) (reasons []string) {
	t.Helper()
	text, err := os.ReadFile("../probes/network/verdict/rows.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`reason: Reason(\w+),.* warns: true`).FindAllStringSubmatch(string(text), -1) {
		reasons = append(reasons, match[1])
	}
	return reasons
}

// docs/metrics.md has every metric with its type and labels.
func TestMetricsAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, row := range rows(t, "metrics.md", "metric") {
		documented[strings.Trim(row[0], "`")+" "+row[1]+" "+strings.ReplaceAll(row[2], ", ", ",")] = true
	}
	served := map[string]bool{}
	for _, c := range newMetrics("test").own() {
		descriptions := make(chan *prometheus.Desc, 1)
		c.Describe(descriptions)
		match := descPattern.FindStringSubmatch((<-descriptions).String())
		served[match[1]+" "+typeOf(c)+" "+match[2]] = true
	}
	compare(t, "docs/metrics.md", documented, served)
}

// The reasons that failures are counted by are those of Unknown samples in
// docs/reasons.md.
func TestFailureReasonsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	documented, counted := map[string]bool{}, map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| Unknown\\.").FindAllStringSubmatch(string(text), -1) {
		documented[match[1]] = true
	}
	for _, reason := range failureReasons() {
		counted[reason] = true
	}
	compare(t, "docs/reasons.md", documented, counted)
}

// The kinds of notices begin at 0, all of them.
func TestNoticesBeginAtZero(t *testing.T) {
	all, begun := map[string]bool{}, map[string]bool{string(decide.LevelChanged): true}
	for _, kind := range kinds(t) {
		all[kind] = true
	}
	for _, kind := range noticeKinds() {
		begun[string(kind)] = true
	}
	compare(t, "agent/decide", all, begun)
}

// docs/metrics.md has every input, with its condition and unit.
func TestInputsAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, row := range rows(t, "metrics.md", "input") {
		documented[row[1]+" "+strings.Trim(row[0], "`")+" "+row[2]] = true
	}
	shown := map[string]bool{}
	for _, definition := range config.HostSchema() {
		err := filepath.WalkDir("../probes/"+definition.Field, func(path string, entry fs.DirEntry, err error) error {
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
	compare(t, "docs/metrics.md", documented, shown)
}

// measuresIn returns the names and units of the probes.Measure literals in a folder. A
// name with something behind it ends in an asterisk.
func measuresIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	inspect(t, folder, func(n ast.Node) {
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
					name = text(value)
				}
			case *ast.BinaryExpr:
				if field.Key.(*ast.Ident).Name == "Name" {
					name = text(value.X) + "*"
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

func compare(t *testing.T, page string, documented, real map[string]bool) {
	t.Helper()
	if len(documented) == 0 || len(real) == 0 {
		t.Fatalf("%s has %d, the code %d", page, len(documented), len(real))
	}
	for _, name := range slices.Sorted(maps.Keys(real)) {
		if !documented[name] {
			t.Errorf("%s lacks %s", page, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if !real[name] {
			t.Errorf("%s has %s, which the code does not", page, name)
		}
	}
}

// inspect calls visit for each node of the package's files but tests.
func inspect(t *testing.T, folder string, visit func(ast.Node)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool { visit(n); return true })
	}
}

// text is the value of a string literal; empty for anything else.
func text(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return value
}

// kinds returns the values of all constants of type decide.Kind.
func kinds(t *testing.T) (values []string) {
	t.Helper()
	inspect(t, "decide", func(n ast.Node) {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Kind" && len(spec.Values) == 1 {
			values = append(values, text(spec.Values[0]))
		}
	})
	return values
}

// literalReasons returns what stands as a literal in a field of that name.
func literalReasons(t *testing.T, folder, field string) (values []string) {
	t.Helper()
	inspect(t, folder, func(n ast.Node) {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return
		}
		if key, ok := pair.Key.(*ast.Ident); ok && key.Name == field && text(pair.Value) != "" {
			values = append(values, text(pair.Value))
		}
	})
	return values
}

// calledWith returns the literals with which a method is called.
func calledWith(t *testing.T, method string, argument int) (values []string) {
	t.Helper()
	inspect(t, ".", func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) <= argument {
			return
		}
		if called, ok := call.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == method && text(call.Args[argument]) != "" {
			values = append(values, text(call.Args[argument]))
		}
	})
	return values
}
