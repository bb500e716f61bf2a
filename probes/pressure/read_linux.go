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
	var found [2]time.Duration
	for i, kind := range [...]string{"\nsome ", "\nfull "} {
		if lines := strings.Count("\n"+text, kind); lines != 1 {
			return Totals{}, fmt.Errorf("%d lines %s", lines, strings.TrimSpace(kind))
		}
		_, rest, _ := strings.Cut("\n"+text, kind)
		line, _, _ := strings.Cut(rest, "\n")
		_, digits, ok := strings.Cut(" "+line, " total=") // in µs
		if !ok {
			return Totals{}, fmt.Errorf("no total in %s", hostfile.Excerpt(kind[1:]+line))
		}
		// 53 bits of µs are 285 years, and fit a Duration.
		micros, err := strconv.ParseUint(digits, 10, 53)
		if err != nil {
			return Totals{}, fmt.Errorf("the total is no number of µs: %w", err)
		}
		found[i] = time.Duration(micros) * time.Microsecond
	}
	return Totals{found[0], found[1]}, nil
}
