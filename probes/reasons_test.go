package probes_test

import (
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

// explained are the conditions that docs/reasons.md explains, each with the packages
// whose reasons it gives.
func explained() map[string][]string {
	return map[string][]string{
		"MemoryPressure": {"memory", "pressure"},
		"DiskPressure":   {"disk"},
		"PIDPressure":    {"pid"},

		"NetworkUnavailable": {"network/verdict"},
	}
}

// TestReasonsAreExplained compares the reasons in the source with docs/reasons.md, both
// ways.
func TestReasonsAreExplained(t *testing.T) {
	t.Parallel()
	code := reasonsInSource(t, "disk", "pid", "memory", "network/verdict", "pressure", "trend", "hostfile")
	tables := documentedReasons(t)
	for condition, packages := range explained() {
		want := map[string]bool{}
		for _, name := range packages {
			for reason := range code[name] {
				want[reason] = true
			}
		}
		for reason := range want {
			if !tables[condition][reason] {
				t.Errorf("docs/reasons.md does not explain %s of %s", reason, condition)
			}
		}
		for reason := range tables[condition] {
			if !want[reason] {
				t.Errorf("docs/reasons.md explains %s of %s, which the source does not give", reason, condition)
			}
		}
		delete(tables, condition)
	}
	delete(tables, "Conditions of other programs") // package agent/reported compares these
	for condition := range tables {
		t.Errorf("docs/reasons.md explains %s, which the test does not compare: add it to explained", condition)
	}
}

// Each reason in the source has its messages in testdata/messages.golden of its
// condition, where a reviewer reads them.
func TestReasonsHaveAMessage(t *testing.T) {
	t.Parallel()
	code := reasonsInSource(t, "disk", "pid", "memory", "network/verdict", "pressure", "trend", "hostfile")
	for condition, packages := range explained() {
		text, err := os.ReadFile(filepath.Join(packages[0], "testdata", "messages.golden"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range packages {
			for reason := range code[name] {
				if !strings.Contains(string(text), " "+reason+": ") {
					t.Errorf("no message of %s has the reason %s: add it to TestMessages of package %s", condition, reason, packages[0])
				}
			}
		}
	}
}

// A message is one sentence with at most two clauses.
func TestMessagesAreShort(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"memory", "disk", "pid"} {
		text, err := os.ReadFile(filepath.Join(name, "testdata", "messages.golden"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			_, message, _ := strings.Cut(line, ": ")
			message, _, _ = strings.Cut(strings.TrimSuffix(message, "\n"), " | ")
			if runes := len([]rune(message)); runes > 160 || strings.Count(message, "; ") > 2 {
				t.Errorf("%s: %d characters: %s", name, runes, message)
			}
		}
	}
}

// documentedReasons returns the reasons in the tables of docs/reasons.md by the heading
// above.
func documentedReasons(t *testing.T) map[string]map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]map[string]bool{}
	condition := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			condition = heading
		}
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 || slices.ContainsFunc(cells, func(cell string) bool { return strings.TrimSpace(cell) == "" }) {
			t.Errorf("not reasons, what they mean and what to do: %s", line)
			continue
		}
		if tables[condition] == nil {
			tables[condition] = map[string]bool{}
		}
		for name := range strings.SplitSeq(cells[0], ",") {
			reason := strings.Trim(name, " `")
			if tables[condition][reason] {
				t.Errorf("%s stands twice under %s", reason, condition)
			}
			tables[condition][reason] = true
		}
	}
	return tables
}

// collector finds the reasons in the source of some packages. It follows the text of a
// reason from where it is used (an argument of probes.Because, a field of the name
// reason) back to where it is written, through parameters and what is appended.
type collector struct {
	t       *testing.T
	files   *token.FileSet
	source  map[string][]*ast.File // by package
	takers  map[taker]bool
	structs map[string]int // where a struct has the field reason
	reasons map[string]map[string]bool
}

// taker is a function that makes a reason of a parameter, with a suffix.
type taker struct {
	function  string
	parameter int
	suffix    string
}

// function is a function whose body is searched, perhaps within another one. Its name
// has that of the other one before it.
type function struct {
	name   string
	params []string
	body   ast.Node
	outer  *function
}

// calls says that a name is, within the function, that of another one.
func (f *function) calls(name, other string) bool {
	for ; f != nil; f = f.outer {
		if f.name+"."+name == other {
			return true
		}
	}
	return name == other
}

func reasonsInSource(t *testing.T, packages ...string) map[string]map[string]bool {
	t.Helper()
	c := collector{
		t: t, files: token.NewFileSet(), source: map[string][]*ast.File{}, structs: map[string]int{}, reasons: map[string]map[string]bool{},
		takers: map[taker]bool{{"Because", 0, ""}: true},
	}
	for _, name := range packages {
		c.parse(name)
	}
	for known := 0; known < len(c.takers); { // until no more are found
		known = len(c.takers)
		for name, files := range c.source {
			for _, file := range files {
				c.search(name, &function{body: file})
			}
		}
	}
	return c.reasons
}

// parse reads the source of a package, without its tests.
func (c *collector) parse(name string) {
	paths, err := filepath.Glob(filepath.Join(name, "*.go"))
	if err != nil || len(paths) == 0 {
		c.t.Fatalf("the package %s: %v, files %q", name, err, paths)
	}
	c.reasons[name] = map[string]bool{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(c.files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			c.t.Fatal(err)
		}
		c.source[name] = append(c.source[name], file)
		ast.Inspect(file, func(n ast.Node) bool {
			if of, ok := n.(*ast.TypeSpec); ok {
				if fields, ok := of.Type.(*ast.StructType); ok {
					if at := slices.IndexFunc(names(fields.Fields), isReason); at >= 0 {
						c.structs[of.Name.Name] = at
					}
				}
			}
			return true
		})
	}
}

// search finds the reasons in a function's body.
func (c *collector) search(pkg string, f *function) {
	ast.Inspect(f.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				c.search(pkg, &function{n.Name.Name, names(n.Type.Params), n.Body, nil})
			}
			return false
		case *ast.AssignStmt:
			return c.assignment(pkg, f, n)
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && isReason(key.Name) {
				c.take(pkg, f, n.Value, "")
			}
		case *ast.CompositeLit:
			c.literal(pkg, f, n, n.Type)
		case *ast.CallExpr:
			for t := range c.takers {
				if t.parameter < len(n.Args) && f.calls(nameOf(n.Fun), t.function) {
					c.take(pkg, f, n.Args[t.parameter], t.suffix)
				}
			}
		}
		return true
	})
}

// assignment looks at what a statement assigns. It returns whether there is more in it.
func (c *collector) assignment(pkg string, f *function, n *ast.AssignStmt) bool {
	if len(n.Lhs) != len(n.Rhs) {
		return true
	}
	for i, left := range n.Lhs {
		if within, ok := n.Rhs[i].(*ast.FuncLit); ok {
			c.search(pkg, &function{f.name + "." + nameOf(left), names(within.Type.Params), within.Body, f})
			return false
		}
		if field, ok := left.(*ast.SelectorExpr); ok && isReason(field.Sel.Name) {
			c.take(pkg, f, n.Rhs[i], "")
		}
	}
	return true
}

// literal looks at the unnamed fields of a struct with a reason, or of many.
func (c *collector) literal(pkg string, f *function, n *ast.CompositeLit, of ast.Expr) {
	if many, ok := of.(*ast.ArrayType); ok {
		for _, one := range n.Elts {
			if keyed, ok := one.(*ast.KeyValueExpr); ok {
				one = keyed.Value
			}
			if one, ok := one.(*ast.CompositeLit); ok && one.Type == nil {
				c.literal(pkg, f, one, many.Elt)
			}
		}
		return
	}
	at, ok := c.structs[nameOf(of)]
	if !ok || at >= len(n.Elts) {
		return
	}
	if _, keyed := n.Elts[at].(*ast.KeyValueExpr); !keyed {
		c.take(pkg, f, n.Elts[at], "")
	}
}

// take follows an expression that is a reason when the suffix is appended.
func (c *collector) take(pkg string, f *function, e ast.Expr, suffix string) {
	if text, ok := literalText(e); ok {
		c.reasons[pkg][text+suffix] = true
		return
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if text, ok := literalText(e.Y); ok && e.Op == token.ADD {
			c.take(pkg, f, e.X, text+suffix)
			return
		}
	case *ast.SelectorExpr:
		if isReason(e.Sel.Name) {
			return // found where that one is made
		}
	case *ast.Ident:
		for ; f != nil; f = f.outer {
			if at := slices.Index(f.params, e.Name); at >= 0 {
				c.takers[taker{f.name, at, suffix}] = true
				return
			}
			if c.takeVariable(pkg, f, e.Name, suffix) {
				return
			}
		}
		if text, ok := c.constant(pkg, e.Name); ok {
			c.reasons[pkg][text+suffix] = true
			return
		}
	}
	c.t.Errorf("%s: the test cannot tell what this reason can be", c.files.Position(e.Pos()))
}

// constant returns the text of a package's constant.
func (c *collector) constant(pkg, name string) (text string, ok bool) {
	for _, file := range c.source[pkg] {
		for _, declared := range file.Decls {
			block, isBlock := declared.(*ast.GenDecl)
			if !isBlock || block.Tok != token.CONST {
				continue
			}
			for _, spec := range block.Specs {
				if spec := spec.(*ast.ValueSpec); spec.Names[0].Name == name && len(spec.Values) == 1 {
					return literalText(spec.Values[0])
				}
			}
		}
	}
	return "", false
}

// takeVariable follows all that a function assigns to a variable.
func (c *collector) takeVariable(pkg string, f *function, name, suffix string) (found bool) {
	ast.Inspect(f.body, func(n ast.Node) bool {
		if n, ok := n.(*ast.AssignStmt); ok && len(n.Lhs) == len(n.Rhs) {
			for i, left := range n.Lhs {
				if nameOf(left) == name {
					found = true
					c.take(pkg, f, n.Rhs[i], suffix)
				}
			}
		}
		return true
	})
	return found
}

func isReason(name string) bool { return strings.EqualFold(name, "reason") }

// names returns the names of parameters or fields, in their order.
func names(fields *ast.FieldList) (all []string) {
	for _, field := range fields.List {
		if len(field.Names) == 0 { // embedded
			all = append(all, nameOf(field.Type))
		}
		for _, name := range field.Names {
			all = append(all, name.Name)
		}
	}
	return all
}

// nameOf returns the last name of an expression: f of f and of x.f.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func literalText(e ast.Expr) (text string, ok bool) {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}
