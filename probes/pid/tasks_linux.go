package pid

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// readSample reads the number of tasks and its limits. The host's limit is the
// lower of kernel.pid_max and kernel.threads-max
// (Documentation/admin-guide/sysctl/kernel.rst).
func readSample(h probes.Host) (s sample, err error) {
	used, errUsed := hostfile.Parse(filepath.Join(h.Proc, "loadavg"), "Loadavg", "the number of tasks", parseLoadavgTasks)
	pidMax, errPIDs := hostfile.Parse(filepath.Join(h.Proc, "sys", "kernel", "pid_max"), "PIDMax", "a limit", parseCount)
	threadsMax, errThreads := hostfile.Parse(filepath.Join(h.Proc, "sys", "kernel", "threads-max"), "ThreadsMax", "a limit", parseCount)
	if err := cmp.Or(errUsed, errPIDs, errThreads); err != nil {
		return s, err
	}
	s.used, s.limit, s.setting = used, pidMax, "kernel.pid_max"
	private := hostfile.InPrivatePIDNamespace(h.Proc)
	if private {
		s.note = "; kernel.pid_max is not believed: " + OtherNamespace
	}
	if private || threadsMax < pidMax {
		s.limit, s.setting = threadsMax, "kernel.threads-max"
	}
	return s, nil
}

// parseLoadavgTasks returns the number of tasks from the text of loadavg:
// "0.03 0.73 0.57 1/84 14046" has 84 of them
// (Documentation/filesystems/proc.rst, loadavg). The parser is ours because
// gopsutil walks all processes and counts no threads, and procfs stops reading at
// the third field.
func parseLoadavgTasks(text string) (uint64, error) {
	line, ok := strings.CutSuffix(text, "\n")
	if !ok {
		return 0, hostfile.ErrCutOff
	}
	fields := strings.Split(line, " ")
	if len(fields) != 5 {
		return 0, fmt.Errorf("%d fields instead of 5", len(fields))
	}
	_, total, ok := strings.Cut(fields[3], "/")
	if !ok {
		return 0, errors.New("the fourth field has no slash")
	}
	return parsePositive(total)
}

// parseCount returns the one number, above 0, of a text with its newline.
func parseCount(text string) (uint64, error) {
	digits, ok := strings.CutSuffix(text, "\n")
	if !ok {
		return 0, hostfile.ErrCutOff
	}
	return parsePositive(digits)
}

// parsePositive returns a number from 1 to 2^31-1, for the kernel keeps the
// number of tasks and its limits in an int.
func parsePositive(digits string) (uint64, error) {
	number, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("not a count of tasks: %w", err)
	}
	if number == 0 {
		return 0, errors.New("a count of 0 tasks cannot be")
	}
	return number, nil
}
