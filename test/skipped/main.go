// Command skipped lists the tests that did not run, by reason, from the files that
// go test -json or gotestsum --jsonfile wrote:
//
//	go run ./test/skipped bin/test-*.json
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	skipped := reasons{}
	for _, name := range os.Args[1:] {
		file, err := os.Open(name) //nolint:gosec // the caller's
		if err == nil {
			err = skipped.read(file)
			file.Close() //nolint:errcheck // it was read
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "skipped:", err)
			os.Exit(1)
		}
	}
	fmt.Print(skipped)
}

// reasons has the tests that were skipped, by reason.
type reasons map[string][]string

// event is a line of go test -json (go doc test2json).
type event struct{ Action, Package, Test, Output string }

// said is a line of t.Skip.
var said = regexp.MustCompile(`^ +\w+\.go:\d+: (.*)\n$`)

// read adds the tests of one run.
func (r reasons) read(from io.Reader) error {
	newest := map[string]string{} // what each test said last
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("%q is no event of go test -json: %w", lines.Text(), err)
		}
		test := e.Package[strings.LastIndexByte(e.Package, '/')+1:] + "." + e.Test
		if match := said.FindStringSubmatch(e.Output); match != nil {
			newest[test] = match[1]
		}
		if e.Action == "skip" && e.Test != "" {
			reason := cmp.Or(newest[test], "no reason given")
			r[reason] = append(r[reason], test)
		}
	}
	return lines.Err()
}

// String lists the reasons, the one of most tests first.
func (r reasons) String() string {
	var text strings.Builder
	all := slices.SortedFunc(maps.Keys(r), func(a, b string) int { return cmp.Or(len(r[b])-len(r[a]), cmp.Compare(a, b)) })
	for _, reason := range all {
		tests := r[reason]
		fmt.Fprintf(&text, "skipped %3d: %s (%s", len(tests), reason, tests[0])
		if len(tests) > 1 {
			text.WriteString(" …")
		}
		text.WriteString(")\n")
	}
	return text.String()
}
