package probes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// PIDThresholds say when the host is short of task identifiers. Every thread
// takes one. A threshold of 0 asks for nothing.
type PIDThresholds struct {
	// UsedPercent is the share of the limit, in percent (above 0, up to 100),
	// at which the host is Degraded.
	UsedPercent float64
	// FreeTasks is the number of free tasks below which the host is Degraded,
	// where it is met first. More than a quarter of the limit counts as a
	// quarter: a small limit must not make a host Degraded for good.
	FreeTasks uint64
	// CriticalUsedPercent is the share of the limit, in percent (0 to 100), at
	// which the host is Critical.
	CriticalUsedPercent float64
	// RunningOutWithin and RunningOutUsedPercent: Degraded when, as it goes, no
	// task is left in less than this time, and at least this share of the
	// limit, in percent (0 to 100), is used. It is what a fork bomb looks like
	// before it has gone off.
	RunningOutWithin      time.Duration
	RunningOutUsedPercent float64
	// ClearFactor times the free tasks of the threshold must be free before
	// there are enough again. 1 or more; less counts as 1.
	ClearFactor float64
}

// PID watches how many tasks (processes and their threads) the host has left,
// and how fast they go. Where pods have a limit of their own and it is tighter,
// that limit counts.
type PID struct {
	periodOnly

	host       Host
	thresholds PIDThresholds
	trend      slope // of the free tasks
}

var _ Probe = (*PID)(nil)

// NewPID returns the probe of the host's tasks. It reads loadavg,
// sys/kernel/pid_max and sys/kernel/threads-max in h.Proc and, where it is
// seen, the pids limit of the pods' control group in h.Sys. It does not walk
// the processes.
func NewPID(h Host, t PIDThresholds) *PID { return &PID{host: h, thresholds: t} }

// Condition is PIDPressure.
func (*PID) Condition() Condition { return PIDPressure }

// Observe counts tasks and judges.
func (p *PID) Observe(context.Context) Observation {
	sample, err := readTasks(p.host)
	if err != nil {
		return unknownBecause(PIDPressure, err)
	}
	return p.follow(sample, time.Now())
}

// follow judges a sample by those before it.
func (p *PID) follow(s taskSample, now time.Time) Observation {
	p.trend.add(now, s.tightest().free())
	return p.thresholds.judge(s, p.trend)
}

// taskSample is what one look at the host's tasks found.
type taskSample struct {
	host taskBudget
	pods *taskBudget // nil: no limit, or none that is seen
	note string      // for people: what of it was not believed
}

// taskBudget is a limit of tasks and how many there are.
type taskBudget struct {
	used, limit uint64
	setting     string // that sets the limit
}

// free is how many tasks may still be started. A limit that was lowered below
// what runs leaves none.
func (b taskBudget) free() float64 { return float64(b.limit - min(b.used, b.limit)) }

// tightest is the budget of which the smaller share is left.
func (s taskSample) tightest() taskBudget {
	if s.pods != nil && s.pods.free()/float64(s.pods.limit) < s.host.free()/float64(s.host.limit) {
		return *s.pods
	}
	return s.host
}

// judge says what a sample means, given the trend of the free tasks. Severity
// is that of the worst cause.
func (t PIDThresholds) judge(s taskSample, trend slope) Observation {
	b := s.tightest()
	limit := float64(b.limit)
	threshold, thresholdText := t.freeThreshold(limit)
	o := scarce(b.free(), threshold, t.ClearFactor).observe(PIDPressure, "PIDs", "")
	left, out := t.runningOut(b, trend)
	o.Severity = max(o.Severity, out.severity)
	switch {
	case o.Level == Degraded && t.CriticalUsedPercent > 0 && b.free() < freeAt(t.CriticalUsedPercent, limit):
		o.Level, o.Reason, thresholdText = Critical, "PIDsExhausted", percentText(t.CriticalUsedPercent)
	case o.Level == OK && out.set:
		o.Level, o.Hysteresis, o.Reason = Degraded, false, "PIDsRunningOut"
		thresholdText += fmt.Sprintf("; none left in %s, threshold %s", secondsText(left.Truncate(time.Second)), secondsText(t.RunningOutWithin))
	case o.Level == OK && out.near:
		o.Hysteresis, o.Reason = true, "PIDsNearThreshold"
	}
	o.Message = fmt.Sprintf("used %d of %d tasks (%s, %.0f free), limit %s, threshold %s%s",
		b.used, b.limit, shareText(float64(b.used), limit), b.free(), b.setting, thresholdText, s.note)
	return o
}

// runningOut is how soon no task is left and what that means, together with
// how many are used. It is as severe as the milder of the two.
func (t PIDThresholds) runningOut(b taskBudget, trend slope) (time.Duration, signal) {
	left, ok := trend.timeToEmpty(b.free())
	if !ok {
		return 0, signal{}
	}
	soon := scarce(left.Seconds(), t.RunningOutWithin.Seconds(), t.ClearFactor).signal()
	much := scarce(b.free(), freeAt(t.RunningOutUsedPercent, float64(b.limit)), t.ClearFactor).signal()
	return left, both(soon, much)
}

// freeThreshold is the number of free tasks below which the host is Degraded.
func (t PIDThresholds) freeThreshold(limit float64) (threshold float64, text string) {
	threshold, text = freeAt(t.UsedPercent, limit), percentText(t.UsedPercent)
	if free := min(float64(t.FreeTasks), math.Floor(limit/4)); free > threshold {
		threshold, text = free, plain(free)+" free"
	}
	return threshold, text
}

// freeAt is the number of free tasks below which at least so much of the limit
// is used. "At least" includes equality; tasks are whole numbers, so that is
// "free less than the next whole number".
func freeAt(usedPercent, limit float64) float64 {
	return math.Floor(limit*max(0, 100-usedPercent)/100) + 1
}

// readTasks reads the count of tasks and its limits. The host's is the lower of
// kernel.pid_max and kernel.threads-max
// (Documentation/admin-guide/sysctl/kernel.rst).
func readTasks(h Host) (s taskSample, err error) {
	path := filepath.Join(h.Proc, "loadavg")
	text, err := os.ReadFile(path)
	if err != nil {
		return s, because("LoadavgUnreadable", "counting tasks: %w", err)
	}
	if s.host.used, err = parseLoadavgTasks(string(text)); err != nil {
		return s, because("LoadavgGarbled", "counting tasks in %s: %w", path, err)
	}
	pidMax, err := readCount(filepath.Join(h.Proc, "sys", "kernel", "pid_max"), "PIDMax")
	if err != nil {
		return s, err
	}
	threadsMax, err := readCount(filepath.Join(h.Proc, "sys", "kernel", "threads-max"), "ThreadsMax")
	if err != nil {
		return s, err
	}
	s.host.limit, s.host.setting = pidMax, "kernel.pid_max"
	private := inPrivatePIDNamespace(h.Proc)
	if private {
		s.note = "; kernel.pid_max is not believed: this is not the host's PID namespace"
	}
	if private || threadsMax < pidMax {
		s.host.limit, s.host.setting = threadsMax, "kernel.threads-max"
	}
	s.pods, err = readPodTasks(h.Sys)
	return s, err
}

// inPrivatePIDNamespace reports whether the reader's PID namespace is not the
// host's. Newer kernels keep a pid_max for each PID namespace (Linux 6.14, "pid:
// allow pid_max to be set per pid namespace"), and what a reader in another one
// sees says nothing of the host's. The host's namespace has a fixed inode
// (PROC_PID_INIT_INO in include/linux/proc_ns.h). Where there is no such link
// to read there is nothing to doubt.
func inPrivatePIDNamespace(proc string) bool {
	const initial = "pid:[4026531836]"
	link, err := os.Readlink(filepath.Join(proc, "self", "ns", "pid"))
	return err == nil && link != initial
}

// readPodTasks reads the limit that the kubelet has set for all pods together
// (--system-reserved, --kube-reserved or pid limits), where the control groups
// of the host can be seen; nil where there is none.
func readPodTasks(sys string) (*taskBudget, error) {
	// Control groups v2 and v1, with the systemd driver and without.
	for _, dir := range []string{"kubepods.slice", "kubepods", "pids/kubepods.slice", "pids/kubepods"} {
		dir = filepath.Join(sys, "fs", "cgroup", dir)
		text, err := os.ReadFile(filepath.Join(dir, "pids.max"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && string(text) == "max\n" {
			return nil, nil
		}
		limit, err := readCount(filepath.Join(dir, "pids.max"), "PodsPIDsMax")
		if err != nil {
			return nil, err
		}
		used, err := readCountOrZero(filepath.Join(dir, "pids.current"), "PodsPIDsCurrent")
		if err != nil {
			return nil, err
		}
		return &taskBudget{used, limit, "pids.max of all pods"}, nil
	}
	return nil, nil
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
