package agent

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/test/fixtures"
)

var wordPattern = regexp.MustCompile("`([^`]+)`")

// docs/events.md has every reason of an Event that the code can write.
func TestEventsAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, row := range fixtures.TableRows(t, "../docs/events.md", "reason") {
		documented[wordPattern.FindStringSubmatch(row[0])[1]] = true
	}
	fixtures.CompareNames(t, "docs/events.md", documented, eventReasons(t))
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
	for _, kind := range fixtures.ConstantsOf(t, "decide", "Kind") {
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
	text, err := os.ReadFile("../probes/network/verdict/judge.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`case Reason(\w+):\n\s*o\.Warns`).FindAllStringSubmatch(string(text), -1) {
		reasons = append(reasons, match[1])
	}
	return reasons
}

// literalReasons returns what stands as a literal in a field of that name.
func literalReasons(t *testing.T, folder, field string) (values []string) {
	t.Helper()
	fixtures.Inspect(t, folder, func(n ast.Node) {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return
		}
		if key, ok := pair.Key.(*ast.Ident); ok && key.Name == field && fixtures.Literal(pair.Value) != "" {
			values = append(values, fixtures.Literal(pair.Value))
		}
	})
	return values
}

// calledWith returns the literals with which a method is called.
func calledWith(t *testing.T, method string, argument int) (values []string) {
	t.Helper()
	fixtures.Inspect(t, ".", func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) <= argument {
			return
		}
		if called, ok := call.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == method && fixtures.Literal(call.Args[argument]) != "" {
			values = append(values, fixtures.Literal(call.Args[argument]))
		}
	})
	return values
}
