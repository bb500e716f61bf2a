package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	modulePath  = "github.com/taintlet/taintlet/"
	constructor = modulePath + "agent/assembly.New"
)

// uses returns which names of which packages the Go files of a folder use, without
// its tests: "path.Name".
func uses(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no Go files in %s: %v", folder, err)
	}
	var all []string
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, usesOf(t, file)...)
	}
	return all
}

func usesOf(t *testing.T, file *ast.File) []string {
	t.Helper()
	packages := map[string]string{}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		packages[name] = path
	}
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if name, ok := selector.X.(*ast.Ident); ok && packages[name.Name] != "" {
			all = append(all, packages[name.Name]+"."+selector.Sel.Name)
		}
		return true
	})
	return all
}

// The hollow agents are those that cmd/taintlet runs: both are put together by
// assembly.New, and nothing else puts any part of an agent together. What this
// program has of its own are probes and a clock.
func TestThereIsNoSecondImplementation(t *testing.T) {
	t.Parallel()
	own, real := uses(t, "."), uses(t, "../../../cmd/taintlet")
	for who, used := range map[string][]string{"the hollow fleet": own, "cmd/taintlet": real} {
		if !slices.Contains(used, constructor) {
			t.Errorf("%s does not put its agents together by assembly.New", who)
		}
		if slices.Contains(used, modulePath+"agent.Agent") {
			t.Errorf("%s puts an agent.Agent together itself", who)
		}
	}
	allowed := map[string][]string{
		modulePath + "agent":        {},
		modulePath + "agent/decide": {"Boot"},
		modulePath + "agent/fleet":  {"Fleet"}, // as a type: what a peer answers
		modulePath + "taints":       {},
	}
	for _, use := range own {
		i := strings.LastIndex(use, ".")
		if names, guarded := allowed[use[:i]]; guarded && !slices.Contains(names, use[i+1:]) {
			t.Errorf("the hollow fleet uses %s", use)
		}
	}
}

// The scripted probe of the network asks the API server as often as the real one.
func TestTheAPIServerIsAskedAsOften(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../probes/network/run.go")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("apiEvery = %d * time.Second", int(apiEvery.Seconds()))
	if !strings.Contains(string(text), want) {
		t.Errorf("probes/network/run.go has no %q", want)
	}
}
