package pressure

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// pathOf returns the file with the totals of a resource: io or memory.
func pathOf(h probes.Host, resource string) string {
	return filepath.Join(h.Proc, "pressure", resource)
}

// Read reads the totals of a resource: io or memory. found is false where
// the kernel does not measure them.
func Read(h probes.Host, resource string) (t Totals, found bool, err error) {
	return hostfile.ParseOptional(pathOf(h, resource), parse)
}

// parse reads the text of a pressure file, such as
//
//	some avg10=0.00 avg60=0.13 avg300=0.96 total=8537362
//	full avg10=0.00 avg60=0.13 avg300=0.96 total=8183134
//
// Lines of another kind are passed over, for the kernel may get new ones.
//
// The parser is ours because that of procfs takes a number that was cut off for
// the whole number.
func parse(text string) (Totals, error) {
	if err := hostfile.CheckWhole(text); err != nil {
		return Totals{}, err
	}
	found := map[string]time.Duration{}
	for line := range strings.Lines(text) {
		kind, _, _ := strings.Cut(line, " ")
		if kind != "some" && kind != "full" {
			continue
		}
		if _, isSecond := found[kind]; isSecond {
			return Totals{}, fmt.Errorf("two lines %s", kind)
		}
		var err error
		if found[kind], err = parseStalled(strings.TrimSuffix(line, "\n")); err != nil {
			return Totals{}, err
		}
	}
	for _, kind := range []string{"some", "full"} {
		if _, is := found[kind]; !is {
			return Totals{}, fmt.Errorf("no line %s", kind)
		}
	}
	return Totals{found["some"], found["full"]}, nil
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
