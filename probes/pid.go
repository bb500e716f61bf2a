package probes

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// PIDThresholds say when the host is short of task identifiers. Every thread
// takes one. The threshold that is met first counts.
type PIDThresholds struct {
	// UsedPercent is the share of the limit, in percent (above 0, up to 100),
	// at which the host is Degraded.
	UsedPercent float64
	// FreeTasks is the number of free tasks below which the host is Degraded.
	// 0: no such threshold. More than a quarter of the limit counts as a
	// quarter: a small limit must not make a host Degraded for good.
	FreeTasks uint64
	// ClearFactor times the free tasks of the threshold must be free before
	// there are enough again. 1 or more; less counts as 1.
	ClearFactor float64
}

// PID watches how many tasks (processes and their threads) the host has left.
// It knows OK and Degraded.
type PID struct {
	host       Host
	thresholds PIDThresholds
}

var _ Probe = (*PID)(nil)

// NewPID returns the probe of the host's tasks. It reads loadavg,
// sys/kernel/pid_max and sys/kernel/threads-max in h.Proc, and does not walk
// the processes. In a PID namespace of its own, newer kernels show it the
// namespace's pid_max: it must share the host's.
func NewPID(h Host, t PIDThresholds) *PID { return &PID{host: h, thresholds: t} }

// Condition is PIDPressure.
func (*PID) Condition() Condition { return PIDPressure }

// Wake is nil: tasks are counted by period only.
func (*PID) Wake() <-chan struct{} { return nil }

// Observe counts tasks and judges.
func (p *PID) Observe(context.Context) Observation {
	sample, err := readTasks(p.host.Proc)
	if err != nil {
		return unknownBecause(PIDPressure, err)
	}
	return p.thresholds.judge(sample)
}

// taskSample is what one look at the host's tasks found.
type taskSample struct {
	tasks      uint64 // processes and threads, running or not
	pidMax     uint64 // kernel.pid_max
	threadsMax uint64 // kernel.threads-max
}

// limit is the number of tasks that the kernel allows, and the setting that
// says so: the lower of the two
// (Documentation/admin-guide/sysctl/kernel.rst, pid_max and threads-max).
func (s taskSample) limit() (limit uint64, setting string) {
	if s.threadsMax < s.pidMax {
		return s.threadsMax, "kernel.threads-max"
	}
	return s.pidMax, "kernel.pid_max"
}

// judge says what a sample means.
func (t PIDThresholds) judge(s taskSample) Observation {
	limit, setting := s.limit()
	free := limit - min(s.tasks, limit) // a limit lowered below what runs leaves none
	threshold, thresholdText := t.freeThreshold(float64(limit))
	message := fmt.Sprintf("used %d of %d tasks (%s, %d free), limit %s, threshold %s",
		s.tasks, limit, shareText(float64(s.tasks), float64(limit)), free, setting, thresholdText)
	return scarce(float64(free), threshold, t.ClearFactor).observe(PIDPressure, "PIDs", message)
}

// freeThreshold is the number of free tasks below which the host is Degraded.
func (t PIDThresholds) freeThreshold(limit float64) (threshold float64, text string) {
	// "used at least UsedPercent" includes equality. Tasks are whole numbers, so
	// that is "free less than the next whole number".
	threshold, text = math.Floor(limit*max(0, 100-t.UsedPercent)/100)+1, percentText(t.UsedPercent)
	if free := min(float64(t.FreeTasks), math.Floor(limit/4)); free > threshold {
		threshold, text = free, plain(free)+" free"
	}
	return threshold, text
}

// readTasks reads the count of tasks and its two limits.
func readTasks(proc string) (s taskSample, err error) {
	path := filepath.Join(proc, "loadavg")
	text, err := os.ReadFile(path)
	if err != nil {
		return s, because("LoadavgUnreadable", "counting tasks: %w", err)
	}
	if s.tasks, err = parseLoadavgTasks(string(text)); err != nil {
		return s, because("LoadavgGarbled", "counting tasks in %s: %w", path, err)
	}
	if s.pidMax, err = readCount(filepath.Join(proc, "sys", "kernel", "pid_max"), "PIDMax"); err != nil {
		return s, err
	}
	s.threadsMax, err = readCount(filepath.Join(proc, "sys", "kernel", "threads-max"), "ThreadsMax")
	return s, err
}

// parseLoadavgTasks returns the number of tasks in the text of loadavg:
// "0.03 0.73 0.57 1/84 14046" has 84 of them
// (Documentation/filesystems/proc.rst, loadavg). It is ours because gopsutil
// walks all processes for the number and counts no threads, and procfs stops
// reading at the third field.
func parseLoadavgTasks(text string) (uint64, error) {
	line, ok := strings.CutSuffix(text, "\n")
	if !ok {
		return 0, errors.New(cutOff)
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
