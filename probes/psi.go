package probes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Pressure stall information (PSI) is the time that tasks lost because they
// waited for a resource (Documentation/accounting/psi.rst). Its parser is ours:
// that of procfs takes a number that was cut off for the whole number.
//
// The averages are not used because they come late: over a recorded run out of
// memory avg10 still read 1 when nothing was left. The totals are exact at the
// time of the read.

// pressure is how long tasks have waited for one resource since the host
// started.
type pressure struct {
	some time.Duration // at least one task waited
	full time.Duration // all tasks that had something to do waited
}

// shortestStall is the shortest time over which a share of stalled time says
// something. It is shorter than the shortest period of a probe.
const shortestStall = 50 * time.Millisecond

// stall is the share of the time between two looks, in percent, that tasks
// waited for a resource.
type stall struct{ some, full float64 }

// since is the stall since an earlier look. ok is false when the two cannot be
// compared: they are not apart or too far apart, or a total went backwards.
func (p pressure) since(earlier pressure, apart time.Duration) (s stall, ok bool) {
	if apart < shortestStall || apart > longestGap || p.some < earlier.some || p.full < earlier.full {
		return stall{}, false
	}
	percent := func(waited time.Duration) float64 { return min(100, 100*waited.Seconds()/apart.Seconds()) }
	return stall{percent(p.some - earlier.some), percent(p.full - earlier.full)}, true
}

// pressurePath is the file with the stalls of a resource: cpu, io, memory.
func pressurePath(h Host, resource string) string { return filepath.Join(h.Proc, "pressure", resource) }

// readPressure reads the stalls of a resource. found is false where the kernel
// does not measure them.
func readPressure(h Host, resource string) (p pressure, found bool, err error) {
	path := pressurePath(h, resource)
	text, found, err := readOptional(path, "Pressure")
	if !found {
		return pressure{}, false, err
	}
	p, err = parsePressure(text, resource)
	if err != nil {
		return pressure{}, false, because("PressureGarbled", "reading stalls from %s: %w", path, err)
	}
	return p, true, nil
}

// parsePressure reads the text of a pressure file, such as
//
//	some avg10=0.00 avg60=0.13 avg300=0.96 total=8537362
//	full avg10=0.00 avg60=0.13 avg300=0.96 total=8183134
//
// Lines of another kind are passed over: the kernel may get new ones. Only cpu
// may be without a line full: it got one in Linux 5.13.
func parsePressure(text, resource string) (p pressure, err error) {
	var some, full bool
	for line, rest := "", text; rest != ""; {
		var whole bool
		if line, rest, whole = strings.Cut(rest, "\n"); !whole {
			return pressure{}, errors.New(cutOff)
		}
		kind, _, _ := strings.Cut(line, " ")
		switch {
		case kind == "some" && !some:
			p.some, err = parseStalled(line)
			some = true
		case kind == "full" && !full:
			p.full, err = parseStalled(line)
			full = true
		case kind == "some" || kind == "full":
			err = fmt.Errorf("two lines %s", kind)
		}
		if err != nil {
			return pressure{}, err
		}
	}
	if !some {
		return pressure{}, errors.New("no line some")
	}
	if !full && resource != "cpu" {
		return pressure{}, errors.New("no line full")
	}
	return p, nil
}

// parseStalled returns the total at the end of a line, which is in µs.
func parseStalled(line string) (time.Duration, error) {
	_, digits, ok := strings.Cut(line, " total=")
	if !ok {
		return 0, fmt.Errorf("no total in %s", excerpt(line))
	}
	// 53 bits of µs are 285 years, and fit a Duration.
	micros, err := strconv.ParseUint(digits, 10, 53)
	if err != nil {
		return 0, fmt.Errorf("the total is no number of µs: %w", err)
	}
	return time.Duration(micros) * time.Microsecond, nil
}

// readOptional reads a file that not every kernel has. found is false, without
// an error, where the file is missing, where the kernel was told not to keep it
// (EOPNOTSUPP for PSI), or where it is kept from us: what we are not given is
// not used, but it does not make us blind for the rest. thing is the file's
// name in a reason.
func readOptional(path, thing string) (text string, found bool, err error) {
	data, err := os.ReadFile(path)
	switch {
	case err == nil:
		return string(data), true, nil
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EOPNOTSUPP):
		return "", false, nil
	}
	return "", false, because(thing+"Unreadable", "reading: %w", err)
}
