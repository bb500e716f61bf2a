package faults

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/test/process"
)

// coverage is which branches of the decider the agents of a long run went through. An agent
// tells it when it ends by SIGTERM, and not when it is killed.
type coverage struct{ folder string }

// branch is a piece of the decider's source that runs as a whole.
type branch struct {
	file, function string // such as soft.go and State.followSoft
	text           string // its first line
	line           int
	isReached      bool
}

func (b branch) String() string { return fmt.Sprintf("%s %s %q", b.file, b.function, b.text) }

// read returns all branches.
func (c coverage) read(t *testing.T) ([]branch, error) {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	if _, err := process.Output(t.Context(), "", nil, "go", "tool", "covdata", "textfmt", "-i="+c.folder, "-o="+profile); err != nil {
		return nil, err
	}
	file, err := os.Open(profile) //nolint:gosec // of this test
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	sources := map[string]*source{}
	var all []branch
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, rest, found := strings.Cut(lines.Text(), ":")
		begin, count, _ := strings.Cut(rest, " ")
		line, _, _ := strings.Cut(begin, ".")
		number, err := strconv.Atoi(line)
		if !found || err != nil || !strings.HasSuffix(path.Dir(name)+"/", "/"+decider) {
			continue // the mode, or the main package
		}
		if name = path.Base(name); sources[name] == nil {
			if sources[name], err = readSource(filepath.Join("../..", decider, name)); err != nil {
				return nil, err
			}
		}
		b := sources[name].branch(number)
		b.file, b.isReached = name, !strings.HasSuffix(count, " 0")
		all = append(all, b)
	}
	if len(all) == 0 {
		return nil, errors.New("no agent told which branches it went through")
	}
	slices.SortFunc(all, func(a, b branch) int { return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line) })
	return all, nil
}

// source is a file of the decider.
type source struct {
	lines     []string
	functions []function
}

type function struct {
	name       string
	begin, end int
}

func readSource(path string) (*source, error) {
	text, err := os.ReadFile(path) //nolint:gosec // a source file
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, 0)
	if err != nil {
		return nil, err
	}
	s := &source{lines: strings.Split(string(text), "\n")}
	for _, declared := range file.Decls {
		if f, isFunction := declared.(*ast.FuncDecl); isFunction {
			s.functions = append(s.functions, function{nameOf(f), set.Position(f.Pos()).Line, set.Position(f.End()).Line})
		}
	}
	return s, nil
}

// nameOf is a function's name, with that of its receiver's type.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	kind := f.Recv.List[0].Type
	if pointer, isPointer := kind.(*ast.StarExpr); isPointer {
		kind = pointer.X
	}
	if name, isName := kind.(*ast.Ident); isName {
		return name.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// branch is the one that begins on that line.
func (s *source) branch(line int) branch {
	b := branch{line: line, text: strings.TrimSpace(s.lines[line-1])}
	for _, f := range s.functions {
		if f.begin <= line && line <= f.end {
			b.function = f.name
		}
	}
	return b
}

// exception is a branch, or all of a function or a file, that no seed has to reach.
type exception struct{ file, function, text, why string }

func (e exception) covers(b branch) bool {
	return e.file == b.file && (e.function == "*" || e.function == b.function) && (e.text == "*" || e.text == b.text)
}

// exceptionsFile lists them, one on a line: FILE FUNCTION "FIRST LINE" WHY. A * stands for all.
const exceptionsFile = "unreached.txt"

func readExceptions() (all []exception, err error) {
	text, err := os.ReadFile(exceptionsFile)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var e exception
		if e.file, line, _ = strings.Cut(line, " "); line != "" {
			e.function, line, _ = strings.Cut(line, " ")
		}
		quoted, isQuoted := strconv.QuotedPrefix(line)
		if e.text, e.why, _ = strings.Cut(line, " "); isQuoted == nil {
			if e.text, err = strconv.Unquote(quoted); err != nil {
				return nil, err
			}
			e.why = strings.TrimSpace(strings.TrimPrefix(line, quoted))
		}
		if e.why == "" {
			return nil, fmt.Errorf("%s: %q gives no reason", exceptionsFile, line)
		}
		all = append(all, e)
	}
	return all, nil
}

// unreached returns the branches that no agent went through although one should have.
func unreached(all []branch, exceptions []exception) (missing []branch) {
	for _, b := range all {
		isExcepted := slices.ContainsFunc(exceptions, func(e exception) bool { return e.covers(b) })
		if !b.isReached && !isExcepted {
			missing = append(missing, b)
		}
	}
	return missing
}

// Each exception names source that is there.
func TestExceptionsAreOfThisDecider(t *testing.T) {
	exceptions, err := readExceptions()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exceptions {
		s, err := readSource(filepath.Join("../..", decider, e.file))
		if err != nil {
			t.Error(err)
			continue
		}
		isThere := false
		for i := range s.lines {
			b := s.branch(i + 1)
			b.file = e.file
			isThere = isThere || b.function != "" && e.covers(b)
		}
		if !isThere {
			t.Errorf("%s has no %s %q", e.file, e.function, e.text)
		}
	}
}
