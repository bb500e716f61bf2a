package pid

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/cgroup"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// readSample reads the number of tasks and its limits. The host's limit is the
// lower of kernel.pid_max and kernel.threads-max
// (Documentation/admin-guide/sysctl/kernel.rst).
func readSample(h probes.Host, pods *cgroup.Pods) (s sample, err error) {
	path := filepath.Join(h.Proc, "loadavg")
	text, err := hostfile.Read(path)
	if err != nil {
		return s, probes.Because("LoadavgUnreadable", "counting tasks: %w", err)
	}
	if s.host.used, err = parseLoadavgTasks(text); err != nil {
		return s, probes.Because("LoadavgGarbled", "counting tasks in %s: %w", path, err)
	}
	pidMax, err := hostfile.Parse(filepath.Join(h.Proc, "sys", "kernel", "pid_max"), "PIDMax", "a limit", parseCount)
	if err != nil {
		return s, err
	}
	threadsMax, err := hostfile.Parse(filepath.Join(h.Proc, "sys", "kernel", "threads-max"), "ThreadsMax", "a limit", parseCount)
	if err != nil {
		return s, err
	}
	s.host.limit, s.host.setting = pidMax, "kernel.pid_max"
	private := hostfile.InPrivatePIDNamespace(h.Proc)
	if private {
		s.note = "; kernel.pid_max is not believed: this is not the host's PID namespace"
	}
	if private || threadsMax < pidMax {
		s.host.limit, s.host.setting = threadsMax, "kernel.threads-max"
	}
	s.pods, err = readPods(pods)
	return s, err
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
