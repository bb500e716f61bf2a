package disk

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

// sample is what all paths and directories showed at one time.
type sample struct {
	fileSystems []fileSystem // one for each device
	mounts      []mountSample
	silent      []silence
	failed      []failure
	writes      []writeSample
	troubles    []error // why a path's state is not known
}

// mountSample is one mount under a path.
type mountSample struct {
	path  string // the path, or the mount point of what lies beneath it
	mount mount  // zero: not known
	fell  bool   // it could be written when first seen, and cannot now
}

// silence is a path without an answer, and for how long.
type silence struct {
	path string
	long time.Duration
}

// failure is a path whose file system says that it is broken, and for how many
// samples in a row.
type failure struct {
	path  string
	inRow int
	err   error
}

// writeSample is how the last write to one directory went, or for how long it has
// not come back.
type writeSample struct {
	Write
	writeAnswer
	failures int           // in a row
	silence  time.Duration // 0: it came back
}

// suspicious says that the mounts are to be read again with the next sample.
func (s sample) suspicious() bool {
	for _, m := range s.mounts {
		if m.fell || m.mount.failed() || m.mount.seemsFailed() {
			return true
		}
	}
	for _, w := range s.writes {
		if w.failures > 0 {
			return true
		}
	}
	return false
}

// failed says that the kernel has given the file system up. That is never meant
// to be, even if it was so when first seen.
func (m mount) failed() bool { return m.emergency || m.shutdown }

// seemsFailed says that the file system is read-only and the mount is not. An
// error leaves these file systems so, while mount(8) and a remount make both
// read-only. Images that declare themselves read-only (ext4's feature of that
// name) are in the same state.
func (m mount) seemsFailed() bool {
	switch m.fsType {
	case "ext2", "ext3", "ext4", "btrfs", "f2fs":
		return m.superReadOnly && !m.readOnly
	}
	return false
}

// judge says what a sample means. The worst finding decides. A path whose state
// is not known is worse than OK.
func (t Thresholds) judge(s sample) probes.Observation {
	var findings ranking
	findings.add(t.worst(s.fileSystems))
	for _, m := range s.mounts {
		findings.add(m.judge())
	}
	for _, f := range s.failed {
		findings.add(f.judge(), true)
	}
	troubles := s.troubles
	for _, silent := range s.silent {
		if t.BlockedAfter > 0 && silent.long >= t.BlockedAfter {
			findings.add(silent.judge(t.BlockedAfter), true)
		} else {
			troubles = append(troubles, probes.Because("StatfsBlocked", "no answer from %s for %s", silent.path, trend.TimeText(silent.long)))
		}
	}
	for _, w := range s.writes {
		o, err := w.judge(t.ClearFactor)
		if err != nil {
			troubles = append(troubles, err)
			continue
		}
		findings.add(o, true)
	}
	switch {
	case findings.worst.Level == probes.Degraded:
		return findings.worst
	case len(troubles) > 0:
		o := probes.UnknownBecause(probes.DiskPressure, troubles[0])
		for _, another := range troubles[1:] {
			o.Message += "; " + another.Error()
		}
		return o
	case !findings.any:
		return probes.UnknownBecause(probes.DiskPressure, probes.Because("NoFileSystem", "none of the paths leads to a file system with a size"))
	}
	return findings.worst
}

// ranking keeps the worst of the findings, and of equal ones the first.
type ranking struct {
	worst probes.Observation
	any   bool
}

func (r *ranking) add(o probes.Observation, found bool) {
	if found && (!r.any || isWorse(o, r.worst)) {
		r.worst, r.any = o, true
	}
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

// worst returns the Observation of the file system, and of its space or inodes,
// that is closest to its threshold or furthest below it. found is false when
// there is none.
func (t Thresholds) worst(all []fileSystem) (worst probes.Observation, found bool) {
	var worstYet trend.Scarcity
	consider := func(s trend.Scarcity, thing, message string) {
		if !found || s.Tightness() < worstYet.Tightness() {
			worst, worstYet, found = s.Observe(probes.DiskPressure, thing, message), s, true
		}
	}
	for _, f := range all {
		if f.size > 0 {
			available, size := float64(f.available), float64(f.size)
			consider(trend.Scarce(available, size*t.AvailablePercent/100, t.ClearFactor), "Space",
				fmt.Sprintf("available %s of %s (%s) on %s, threshold %s", trend.BytesText(available), trend.BytesText(size),
					trend.ShareText(available, size), f.path, trend.PercentText(t.AvailablePercent)))
		}
		if f.inodesTotal > 0 {
			free, total := float64(f.inodesFree), float64(f.inodesTotal)
			consider(trend.Scarce(free, total*t.InodesPercent/100, t.ClearFactor), "Inodes",
				fmt.Sprintf("free %d of %d inodes (%s) on %s, threshold %s", f.inodesFree, f.inodesTotal,
					trend.ShareText(free, total), f.path, trend.PercentText(t.InodesPercent)))
		}
	}
	return worst, found
}

// judge says what the mount's flags mean. It is certain where an error made the
// file system read-only, but not where somebody may have remounted it.
func (m mountSample) judge() (o probes.Observation, found bool) {
	name := m.name()
	switch {
	case m.mount.emergency:
		return degraded("FileSystemReadOnly", 100, true, name+" was made read-only by the kernel after an error (emergency_ro)"), true
	case m.mount.shutdown:
		return degraded("FileSystemShutDown", 100, true, name+" was shut down"), true
	case m.fell && m.readOnlyByMount():
		return degraded("MountReadOnly", 100, false, name+" turned read-only"), true
	case m.fell:
		return degraded("FileSystemReadOnly", 100, m.mount.seemsFailed(), name+" turned read-only"), true
	case m.mount.seemsFailed():
		// An error before we were started, or an image that is meant so. Hysteresis
		// sets nothing, and clears nothing that was set before a restart.
		return probes.Observation{
			Condition: probes.DiskPressure, Level: probes.OK, Hysteresis: true, Severity: 49, Reason: "FileSystemReadOnlyFromStart",
			Message: name + " has been read-only since the start, and its mount is not",
		}, true
	}
	return probes.Observation{}, false
}

// readOnlyByMount says that the mount is read-only and the file system is not: it
// could be written through another mount.
func (m mountSample) readOnlyByMount() bool { return m.mount.readOnly && !m.mount.superReadOnly }

// name returns the mount's name for a message: "ext4 of /var/lib/kubelet
// (/dev/sda1)".
func (m mountSample) name() string {
	if m.mount.fsType == "" {
		return "the file system of " + m.path
	}
	name := m.mount.fsType + " of " + m.path
	if m.readOnlyByMount() {
		name = "the mount of " + m.path
	}
	if m.mount.source != "" && m.mount.source != m.mount.fsType && m.mount.source != "none" {
		name += " (" + m.mount.source + ")"
	}
	return printable(name)
}

// judge says what it means that a path has not answered for longer than the
// threshold.
func (s silence) judge(threshold time.Duration) probes.Observation {
	return degraded("FileSystemBlocked", lateness(s.long, threshold, 1), false,
		fmt.Sprintf("no answer from %s for %s, threshold %s", s.path, trend.TimeText(s.long), trend.TimeText(threshold)))
}

// judge says what it means that a file system says it is broken.
func (f failure) judge() probes.Observation {
	o := degradedByFailures("FileSystemFailed", f.inRow)
	o.Message = fmt.Sprintf("looking at the file system of %s: %s%s", f.path, errorText(f.err), inRowText(f.inRow))
	return o
}

// judge says what a write means. The error says why it tells nothing about the
// disk.
func (w writeSample) judge(clearFactor float64) (probes.Observation, error) {
	const what = "writing 4 KiB to "
	switch {
	case w.silence > 0:
		return degraded("WriteBlocked", max(50, lateness(w.silence, cmp.Or(w.Slow, time.Second), 1)), false,
			fmt.Sprintf("%s%s: no answer for %s", what, w.Directory, trend.TimeText(w.silence))), nil
	case w.failures > 0:
		reason := "WriteFailed"
		if errors.Is(w.err, unix.EROFS) {
			reason = "FileSystemReadOnly"
		}
		o := degradedByFailures(reason, w.failures)
		o.Message = what + w.Directory + ": " + errorText(w.err) + inRowText(w.failures)
		return o, nil
	case errors.Is(w.err, unix.ENOSPC), errors.Is(w.err, unix.EDQUOT):
		return degraded("WriteNoSpace", 100, false, what+w.Directory+": "+errorText(w.err)), nil
	case w.err != nil:
		// What is wrong with the directory says nothing about the disk. It is not
		// OK either, because somebody relies on the writes.
		return probes.Observation{}, probes.Because("WriteDirectoryUnusable", "%s%s: %s", what, w.Directory, errorText(w.err)+meantText(w.meant))
	}
	o := probes.Observation{
		Condition: probes.DiskPressure, Level: probes.OK, Reason: "WritePrompt", Severity: lateness(w.took, w.Slow, clearFactor),
		Message: what + w.Directory + " took " + trend.TimeText(w.took),
	}
	if w.Slow > 0 {
		o.Message += ", threshold " + trend.TimeText(w.Slow)
		switch {
		case w.took >= w.Slow:
			o.Level, o.Reason = probes.Degraded, "WriteSlow"
		case clearFactor > 1 && float64(w.took)*clearFactor > float64(w.Slow):
			o.Hysteresis, o.Reason = true, "WriteNearThreshold"
		}
	}
	return o, nil
}

func degraded(reason string, severity int, certain bool, message string) probes.Observation {
	return probes.Observation{
		Condition: probes.DiskPressure, Level: probes.Degraded, Severity: severity, Certain: certain, Reason: reason, Message: message,
	}
}

// degradedByFailures returns an Observation without a message. It is certain from
// the second failure in a row on.
func degradedByFailures(reason string, inRow int) probes.Observation {
	if inRow > 1 {
		return degraded(reason, 100, true, "")
	}
	return degraded(reason, 75, false, "")
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
