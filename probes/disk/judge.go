package disk

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

// judgements are what each path and each directory of a sample says alone.
type judgements struct {
	paths, writes []judgement
	isEarly       bool // EarlyPercent is set
}

// judgement is what one path or directory says.
type judgement struct {
	worst     probes.Observation // of the findings, if found
	found     bool
	tightness float64 // of space or inodes; the smaller of two equal findings is worse
	early     int     // severity by EarlyPercent
	unknown   error   // why it says nothing, or not all
	absent    string  // the path, if there is no such path
	// holds says that unknown makes the whole Unknown, because it may hide trouble
	// that others cannot speak for.
	holds bool
}

// add keeps the worse finding, and of equal ones the first. It has the least Headroom of all.
func (v *judgement) add(o probes.Observation, tightness float64) {
	least := v.worst.Headroom
	if least == 0 || o.Headroom > 0 && o.Headroom < least {
		least = o.Headroom
	}
	if !v.found || isWorse(o, v.worst) || !isWorse(v.worst, o) && tightness < v.tightness {
		v.worst, v.tightness, v.found = o, tightness, true
	}
	v.worst.Headroom = least
}

// isUnhealthy says that a finding is bad or near a threshold.
func (v *judgement) isUnhealthy() bool {
	return v.found && (v.worst.Level != probes.OK || v.worst.Hysteresis)
}

// judge says what a sample means for each path and directory.
func (t Thresholds) judge(s sample) (v judgements) {
	v.isEarly = t.EarlyPercent > 0
	for _, path := range s.paths {
		v.paths = append(v.paths, t.judgePath(path))
	}
	for _, w := range s.writes {
		v.writes = append(v.writes, t.judgeWrite(w))
	}
	return v
}

// join says what the verdicts mean together. The worst finding decides, and the
// message names whatever is unknown, and paths that are not there.
func (v judgements) join() probes.Observation {
	var all judgement
	var first error // of those that are unknown
	var unknown, absent []string
	for _, one := range slices.Concat(v.paths, v.writes) {
		if one.found {
			all.add(one.worst, one.tightness)
			all.early = max(all.early, one.early)
		}
		if one.absent != "" {
			absent = append(absent, one.absent)
		}
		if one.unknown != nil {
			first, unknown = cmp.Or(first, one.unknown), append(unknown, one.unknown.Error())
			all.holds = all.holds || one.holds
		}
	}
	why, missing := strings.ReplaceAll(strings.Join(unknown, "; "), "\n", "; "), "" // a path may hold anything
	if len(absent) > 0 {
		missing = "; no such path: " + strings.Join(absent, ", ")
	}
	switch {
	case all.found && (all.worst.Level == probes.Degraded || !all.holds && !v.areUnread()):
		if len(unknown) > 0 {
			all.worst.Message += "; unknown: " + why
		}
		all.worst.Message += missing
		if all.worst.Level > probes.OK {
			all.worst.Headroom = 0
		} else if v.isEarly {
			all.worst.Severity = all.early
		}
		return all.worst
	case first == nil:
		return probes.UnknownBecause(probes.DiskPressure, probes.Because("NoFileSystem", "none of the paths leads to a file system with a size%s", missing))
	}
	o := probes.UnknownBecause(probes.DiskPressure, first)
	o.Message = why + missing
	return o
}

// areUnread says that there are paths and that none of them can be read.
func (v judgements) areUnread() bool {
	isUnknown := func(path judgement) bool { return path.unknown != nil }
	isRead := func(path judgement) bool { return path.found && path.unknown == nil }
	return slices.ContainsFunc(v.paths, isUnknown) && !slices.ContainsFunc(v.paths, isRead)
}

// isWorse compares Observations of OK and Degraded.
func isWorse(a, b probes.Observation) bool {
	switch {
	case a.Level != b.Level:
		return a.Level > b.Level
	case a.Certain != b.Certain:
		return a.Certain
	case a.Hysteresis != b.Hysteresis:
		return a.Hysteresis
	}
	return a.Severity > b.Severity
}

// judgePath says what one path means.
func (t Thresholds) judgePath(r pathState) (v judgement) {
	if r.absent {
		v.absent = r.name
	}
	title := cmp.Or(r.title, "the file system of "+r.name)
	t.judgeSpace(&r, title+r.seenBy, &v)
	if r.bare {
		v.absent = ""
		v.add(degraded("NotMounted", 100, false, "the host has mounted nothing at "+r.name), math.Inf(1))
	}
	for _, m := range r.mounts {
		if o, found := m.judge(title); found {
			v.add(o, math.Inf(1))
		}
	}
	switch {
	case r.failures > 0:
		v.add(degradedByFailures("FileSystemFailed", title, r.err, r.failures), math.Inf(1))
	case r.silence > 0:
		t.judgeSilence(title+": no answer", r.silence, r.unhealthy, "FileSystemBlocked", "StatfsBlocked", &v)
	case r.trouble != nil:
		v.unknown, v.holds = r.trouble, r.unhealthy
	}
	return v
}

// leastWritten is the part of a file system below which what was written explains nothing.
const leastWritten = 0.005

// quantity is what a file system can run short of.
type quantity struct {
	left, total, usedBefore uint64
	enough                  trend.Limit
	plausible               float64 // how much of it is used at most in a second
	format, unit            string
	text                    func(float64) string
}

// judgeSpace adds what the space and the inodes of a file system mean, where it has a size. A bad
// sample tells how much was written since the newest healthy one. The writers cannot be seen
// without privileges: the files of a pod's emptyDir and of its logs are readable by root only.
func (t Thresholds) judgeSpace(r *pathState, title string, v *judgement) {
	consider := func(thing string, q quantity) {
		if q.total == 0 {
			return
		}
		left, total := float64(q.left), float64(q.total)
		leftText, threshold := q.enough.Texts(left)
		o := q.enough.Observe(left, probes.DiskPressure, thing, fmt.Sprintf(q.format, leftText, q.text(total), trend.ShareText(left, total), title, threshold))
		o.Clears = "above " + q.enough.ClearText()
		if q.unit != "" {
			o.Clears += " of the" + q.unit
		}
		if o.Level == probes.OK && q.enough.Amount > 0 {
			o.Headroom = trend.Headroom(left-q.enough.Amount, min(q.plausible, total/leastFill))
		}
		written := total - left - float64(q.usedBefore)
		if o.Level > probes.OK && r.healthy != (fileSystem{}) && written > 0 && written >= total*leastWritten {
			o.Message += "; " + q.text(written) + q.unit + " written in " + trend.TimeText(r.since)
		}
		v.add(o, q.enough.Tightness(left))
	}
	f, then := &r.fileSystem, &r.healthy
	consider("Space", quantity{
		left: f.available, total: f.size, usedBefore: then.size - then.available, enough: t.space(f), plausible: plausibleBytes,
		format: "available %s of %s (%s) on %s, threshold %s", text: trend.BytesText,
	})
	consider("Inodes", quantity{
		left: f.inodesFree, total: f.inodesTotal, usedBefore: then.inodesTotal - then.inodesFree, enough: t.inodes(f), plausible: plausibleInodes,
		format: "free %s of %s inodes (%s) on %s, threshold %s", unit: " inodes", text: trend.ItemsText,
	})
	if t.EarlyPercent > 0 && f.size > 0 {
		v.early = t.space(f).Early(float64(f.available), float64(min(f.size, percentBaseMax))*t.EarlyPercent/100)
	}
}

// judge judges the mount's flags. It is certain if an error made the file system read-only, but not
// if an operator may have remounted it.
func (m mountSample) judge(title string) (o probes.Observation, found bool) {
	switch {
	case m.mount.emergency:
		return degraded("FileSystemReadOnly", 100, true, title+": made read-only by the kernel after an error (emergency_ro)"), true
	case m.mount.shutdown:
		return degraded("FileSystemShutDown", 100, true, title+": shut down"), true
	case m.fell && m.mount.readOnly && !m.mount.superReadOnly: // it could be written through another mount
		return degraded("MountReadOnly", 100, false, title+": the mount turned read-only"), true
	case m.fell:
		return degraded("FileSystemReadOnly", 100, m.mount.seemsFailed(), title+": turned read-only"), true
	case m.mount.seemsFailed():
		// An error before we were started, or an image that is meant so. Hysteresis
		// sets nothing, and clears nothing that was set before a restart.
		return probes.Observation{
			Condition: probes.DiskPressure, Level: probes.OK, Hysteresis: true, Severity: 49, Reason: "FileSystemReadOnlyFromStart",
			Message: title + ": read-only since the start, and its mount is not",
		}, true
	case m.mount.superReadOnly:
		return probes.Observation{
			Condition: probes.DiskPressure, Level: probes.OK, Reason: "ReadOnlyByDesign", Message: title + ": read-only and cannot fill up",
		}, true
	}
	return probes.Observation{}, false
}

// judgeSilence adds what it means that a call has not been answered: a finding from the
// threshold on, for the reason blocked, and unknown before it, for the reason pending.
func (t Thresholds) judgeSilence(call string, silence time.Duration, unhealthy bool, blocked, pending string, v *judgement) {
	message := call + " for " + trend.TimeText(silence)
	if t.BlockedAfter > 0 && silence >= t.BlockedAfter {
		message += ", threshold " + trend.TimeText(t.BlockedAfter)
		v.add(degraded(blocked, lateness(silence, t.BlockedAfter, 1), false, message), math.Inf(1))
		return
	}
	v.unknown = probes.Because(pending, "%s", message)
	v.holds = unhealthy || t.BlockedAfter > 0
}

// judgeWrite says what a write means.
func (t Thresholds) judgeWrite(w writeSample) (v judgement) {
	what := "writing 4 KiB to " + cmp.Or(w.title, w.Directory)
	switch {
	case w.silence > 0:
		t.judgeSilence(what+": no answer", w.silence, w.unhealthy, "WriteBlocked", "WritePending", &v)
	case w.failures > 0:
		reason := "WriteFailed"
		if errors.Is(w.err, syscall.EROFS) {
			reason = "FileSystemReadOnly"
		}
		v.add(degradedByFailures(reason, what, w.err, w.failures), math.Inf(1))
	case errors.Is(w.err, syscall.ENOSPC), errors.Is(w.err, syscall.EDQUOT):
		v.add(degraded("WriteNoSpace", 100, false, what+": "+errorText(w.err)), math.Inf(1))
	case w.err != nil:
		// What is wrong with the directory says nothing about the disk.
		meant := ""
		if w.meant {
			meant = " (its mount is, its file system is not)"
		}
		v.unknown, v.holds = probes.Because("WriteDirectoryUnusable", "writing 4 KiB to %s: %s%s", w.Directory, errorText(w.err), meant), w.unhealthy
	default:
		v.add(w.judgeTime(what, t.ClearFactor), math.Inf(1))
	}
	return v
}

// slowFor is how long all writes must have been slow. Image pulls, snapshots and
// paths that fail over make them slow for less.
const slowFor = time.Minute

// judgeTime says what the time means that a write took.
func (w writeSample) judgeTime(what string, clearFactor float64) probes.Observation {
	o := probes.Observation{
		Condition: probes.DiskPressure, Level: probes.OK, Reason: "WritePrompt", Severity: lateness(w.took, w.Slow, clearFactor),
		Message: what + ": took " + trend.TimeText(w.took),
	}
	if w.Slow > 0 {
		o.Message += ", threshold " + trend.TimeText(w.Slow)
		o.Clears = "below " + trend.TimeText(time.Duration(float64(w.Slow)/max(1, clearFactor)).Truncate(100*time.Millisecond))
		switch {
		case w.took >= w.Slow && w.slowFor >= slowFor:
			o.Level, o.Reason = probes.Degraded, "WriteSlow"
			o.Message += fmt.Sprintf("; none was faster for %s, threshold %s", trend.TimeText(w.slowFor), trend.TimeText(slowFor))
		case w.took >= w.Slow:
			o.Hysteresis, o.Reason, o.Severity = true, "WriteSlowBriefly", 49
			o.Message += "; slow for " + trend.TimeText(w.slowFor)
		case clearFactor > 1 && float64(w.took)*clearFactor > float64(w.Slow):
			o.Hysteresis, o.Reason = true, "WriteNearThreshold"
		}
	}
	return o
}

func degraded(reason string, severity int, certain bool, message string) probes.Observation {
	return probes.Observation{
		Condition: probes.DiskPressure, Level: probes.Degraded, Severity: severity, Certain: certain, Reason: reason, Message: message,
	}
}

// errorText returns what the kernel said, without the names that Go puts before.
func errorText(err error) string {
	if code, ok := errors.AsType[syscall.Errno](err); ok {
		return code.Error()
	}
	return err.Error()
}

// degradedByFailures returns the finding for this number of failures in a row. It is certain from
// the second time on.
func degradedByFailures(reason, what string, err error, inRow int) probes.Observation {
	message := what + ": " + errorText(err)
	if inRow > 1 {
		return degraded(reason, 100, true, fmt.Sprintf("%s, %d times in a row", message, inRow))
	}
	return degraded(reason, 75, false, message)
}

// lateness returns the severity of a time that has a threshold. It is 0 up to the
// threshold divided by clearFactor, 50 at the threshold, and nears 100 as the
// time grows (75 at twice the threshold, 90 at five times).
func lateness(long, threshold time.Duration, clearFactor float64) int {
	if threshold <= 0 {
		return 0
	}
	share := float64(long) / float64(threshold)
	easier := 1 / max(1, clearFactor)
	switch {
	case share >= 1:
		return 50 + int(50*(1-1/share))
	case share <= easier:
		return 0
	}
	return int(50 * (share - easier) / (1 - easier))
}
