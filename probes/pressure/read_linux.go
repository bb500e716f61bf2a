package pressure

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// pathOf returns the file with the totals of a resource: cpu, io or memory.
func pathOf(h probes.Host, resource string) string {
	return filepath.Join(h.Proc, "pressure", resource)
}

// Read reads the totals of a resource: cpu, io or memory. found is false where
// the kernel does not measure them.
func Read(h probes.Host, resource string) (t Totals, found bool, err error) {
	return hostfile.ParseOptional(pathOf(h, resource), func(text string) (Totals, error) { return parse(text, resource) })
}

// parse reads the text of a pressure file, such as
//
//	some avg10=0.00 avg60=0.13 avg300=0.96 total=8537362
//	full avg10=0.00 avg60=0.13 avg300=0.96 total=8183134
//
// Lines of another kind are passed over, for the kernel may get new ones. Only
// the file of cpu may lack a line full: it got one in Linux 5.13.
//
// The parser is ours because that of procfs takes a number that was cut off for
// the whole number.
func parse(text, resource string) (t Totals, err error) {
	if err := hostfile.CheckWhole(text); err != nil {
		return Totals{}, err
	}
	var some, full bool
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		kind, _, _ := strings.Cut(line, " ")
		switch {
		case kind == "some" && !some:
			t.Some, err = parseStalled(line)
			some = true
		case kind == "full" && !full:
			t.Full, err = parseStalled(line)
			full = true
		case kind == "some" || kind == "full":
			err = fmt.Errorf("two lines %s", kind)
		}
		if err != nil {
			return Totals{}, err
		}
	}
	if !some {
		return Totals{}, errors.New("no line some")
	}
	if !full && resource != "cpu" {
		return Totals{}, errors.New("no line full")
	}
	return t, nil
}

// parseStalled returns the total at the end of a line, which is in µs.
func parseStalled(line string) (time.Duration, error) {
	_, digits, ok := strings.Cut(line, " total=")
	if !ok {
		return 0, fmt.Errorf("no total in %s", hostfile.Excerpt(line))
	}
	// 53 bits of µs are 285 years, and fit a Duration.
	micros, err := strconv.ParseUint(digits, 10, 53)
	if err != nil {
		return 0, fmt.Errorf("the total is no number of µs: %w", err)
	}
	return time.Duration(micros) * time.Microsecond, nil
}
