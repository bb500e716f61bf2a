package disk

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// What the paths / and /mnt and the directory /scratch say, in the words of
// docs/configuration.md: "/" can be good, near, bad, unread (it cannot be read, and
// was never bad), unhealthy (it cannot be read, and was not healthy when it last could),
// waiting (no answer yet) and absent.
func said(name, word string) pathState {
	trouble := probes.Because("StatfsFailed", "looking at the file system of %s: permission denied", name)
	r := pathState{name: name, answered: true}
	switch word {
	case "good":
		r.fileSystem = half(name)
	case "near":
		r.fileSystem = fileSystem{name, 1, 12 * gib, 100 * gib, 0, 0}
	case "bad":
		r.fileSystem = nearlyFull(name)
	case "unread":
		r = pathState{name: name, trouble: trouble}
	case "unhealthy":
		r = pathState{name: name, trouble: trouble, unhealthy: true}
	case "waiting":
		r = pathState{name: name, silence: 3 * time.Second}
	case "absent":
		r = pathState{name: name, absent: true}
	}
	return r
}

// TestWhatPathsSayIsJoined is the table of the rule.
func TestWhatPathsSayIsJoined(t *testing.T) {
	t.Parallel()
	patient, impatient := someDisk, someDisk
	patient.BlockedAfter = 30 * time.Second
	for _, test := range []struct{ root, mnt, want string }{
		{"good", "unread", "OK, names /mnt"},
		{"near", "unread", "OK near, names /mnt"},
		{"bad", "unread", "Degraded, names /mnt"},
		{"good", "unhealthy", "Unknown, names /mnt"},
		{"near", "unhealthy", "Unknown, names /mnt"},
		{"bad", "unhealthy", "Degraded, names /mnt"},
		{"good", "waiting", "Unknown, names /mnt"},
		{"bad", "waiting", "Degraded, names /mnt"},
		{"good", "absent", "OK"},
		{"bad", "absent", "Degraded"},
		{"unread", "unread", "Unknown, names /, names /mnt"},
		{"unread", "good", "OK, names /"},
		{"unread", "unhealthy", "Unknown, names /, names /mnt"},
		{"unread", "absent", "Unknown, names /"},
		{"absent", "absent", "Unknown"},
		{"good", "good", "OK"},
		{"good", "bad", "Degraded"},
	} {
		t.Run(test.root+" and "+test.mnt, func(t *testing.T) {
			t.Parallel()
			o := patient.judge(sample{paths: []pathState{said("/", test.root), said("/mnt", test.mnt)}}).join()
			checkJoined(t, o, test.want)
		})
	}
	o := impatient.judge(sample{paths: []pathState{said("/", "good"), said("/mnt", "waiting")}}).join()
	checkJoined(t, o, "OK, names /mnt") // BlockedAfter 0: an answer is not waited for
}

func checkJoined(t *testing.T, o probes.Observation, want string) {
	t.Helper()
	probetest.WellFormed(t, o)
	got := o.Level.String()
	if o.Hysteresis {
		got += " near"
	}
	for _, name := range []string{"/", "/mnt"} {
		if strings.Contains(o.Message, "of "+name+": permission denied") || strings.Contains(o.Message, "the file system of "+name+": no answer") {
			got += ", names " + name
		}
	}
	if got != want {
		t.Errorf("got %s (%+v), want %s", got, o, want)
	}
}

// TestAbsentPathsAreNamed, whatever the others say: nobody watches a file system whose
// path is mistyped, or not mounted into the container.
func TestAbsentPathsAreNamed(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"good", "bad", "unread", "absent"} {
		o := someDisk.judge(sample{paths: []pathState{said("/", word), said("/data/kubelet", "absent"), said("/data/x", "absent")}}).join()
		want := "; no such path: /data/kubelet, /data/x"
		if word == "absent" {
			want = "; no such path: /, /data/kubelet, /data/x"
		}
		if !strings.HasSuffix(o.Message, want) {
			t.Errorf("%s: %q", word, o.Message)
		}
	}
}

// TestUnusableDirectoryIsJoined: a directory for writes is joined like a path, but
// it cannot stand for the paths.
func TestUnusableDirectoryIsJoined(t *testing.T) {
	t.Parallel()
	unusable := writeSample{Write: someWrite, writeAnswer: writeAnswer{err: syscall.EACCES}}
	unhealthy := unusable
	unhealthy.unhealthy = true
	prompt := writeSample{Write: someWrite, writeAnswer: writeAnswer{took: time.Millisecond}}
	for _, test := range []struct {
		root   string
		w      writeSample
		level  probes.Level
		reason string
	}{
		{"good", unusable, probes.OK, "SpaceSufficient"},
		{"good", unhealthy, probes.Unknown, "WriteDirectoryUnusable"},
		{"bad", unhealthy, probes.Degraded, "SpaceLow"},
		{"unread", prompt, probes.Unknown, "StatfsFailed"},
		{"absent", prompt, probes.OK, "WritePrompt"},
		{"absent", unusable, probes.Unknown, "WriteDirectoryUnusable"},
	} {
		t.Run(fmt.Sprintf("%s and %v", test.root, test.w.err), func(t *testing.T) {
			t.Parallel()
			o := someDisk.judge(sample{paths: []pathState{said("/", test.root)}, writes: []writeSample{test.w}}).join()
			probetest.Check(t, o, test.level, test.reason, "")
			if named := strings.Contains(o.Message, "writing 4 KiB to /scratch: permission denied"); named != (test.w.err != nil) {
				t.Errorf("the directory is not named, or without need: %s", o.Message)
			}
		})
	}
}

// TestUnreadablePathFreezesOnlyWhatItMayHaveSet follows / and /mnt through a day of an
// operator.
func TestUnreadablePathFreezesOnlyWhatItMayHaveSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := map[string]bool{}
		errs := map[string]error{"/mnt": syscall.EACCES}
		d := fakeDisk([]string{"/", "/mnt"}, func(path string) (fileSystem, error) {
			if full[path] {
				return nearlyFull(path), errs[path]
			}
			f := half(path)
			f.device = 2 // as nearlyFull
			if path == "/" {
				f.device = 7
			}
			return f, errs[path]
		})
		for _, step := range []struct {
			name       string
			change     func()
			after      time.Duration
			level      probes.Level
			reason     string
			namesMount bool
		}{
			{"/mnt was never readable", func() {}, 0, probes.OK, "SpaceSufficient", true},
			{"/ is full", func() { full["/"] = true }, 0, probes.Degraded, "SpaceLow", true},
			{"/ is well again, so its taint may go", func() { full["/"] = false }, 0, probes.OK, "SpaceSufficient", true},
			{"/mnt can be read", func() { errs["/mnt"] = nil }, 0, probes.OK, "SpaceSufficient", false},
			{"and no more", func() { errs["/mnt"] = syscall.ELOOP }, time.Hour, probes.OK, "SpaceSufficient", true},
			{"/mnt is full", func() { full["/mnt"], errs["/mnt"] = true, nil }, 0, probes.Degraded, "SpaceLow", false},
			{"and cannot be read", func() { errs["/mnt"] = syscall.ELOOP }, 0, probes.Unknown, "StatfsFailed", true},
			{"a day later", func() {}, 24 * time.Hour, probes.Unknown, "StatfsFailed", true},
			{"while / is full", func() { full["/"] = true }, 0, probes.Degraded, "SpaceLow", true},
			{"and well again", func() { full["/"] = false }, 0, probes.Unknown, "StatfsFailed", true},
			{"/mnt is well again, once", func() { full["/mnt"], errs["/mnt"] = false, nil }, 0, probes.OK, "SpaceSufficient", false},
			{"and cannot be read: once is too little", func() { errs["/mnt"] = syscall.ELOOP }, time.Hour, probes.Unknown, "StatfsFailed", true},
			{"it is well", func() { errs["/mnt"] = nil }, 0, probes.OK, "SpaceSufficient", false},
			{"for a minute", func() {}, time.Minute, probes.OK, "SpaceSufficient", false},
			{"and cannot be read", func() { errs["/mnt"] = syscall.ELOOP }, time.Hour, probes.Unknown, "StatfsFailed", true},
			{"it is well again", func() { errs["/mnt"] = nil }, time.Minute, probes.OK, "SpaceSufficient", false},
			{"for another minute", func() {}, time.Minute, probes.OK, "SpaceSufficient", false},
			{"and cannot be read: it was well for long enough", func() { errs["/mnt"] = syscall.ELOOP }, 0, probes.OK, "SpaceSufficient", true},
			{"/mnt is full once more", func() { full["/mnt"], errs["/mnt"] = true, nil }, 0, probes.Degraded, "SpaceLow", false},
			{"and cannot be read", func() { errs["/mnt"] = syscall.ELOOP }, 0, probes.Unknown, "StatfsFailed", true},
			{"it was removed", func() { errs["/mnt"] = fs.ErrNotExist }, 0, probes.OK, "SpaceSufficient", false},
			{"and is back, unreadable", func() { errs["/mnt"] = syscall.EACCES }, 0, probes.OK, "SpaceSufficient", true},
		} {
			step.change()
			time.Sleep(step.after)
			o := observeBriefly(t, d)
			if named := strings.Contains(o.Message, "looking at the file system of /mnt"); o.Level != step.level || o.Reason != step.reason || named != step.namesMount {
				t.Errorf("%s: got %+v, want %v %s, with the path named: %t", step.name, o, step.level, step.reason, step.namesMount)
			}
		}
	})
}

// TestUnusableDirectoryFreezesOnlyWhatItMayHaveSet follows a directory for writes.
func TestUnusableDirectoryFreezesOnlyWhatItMayHaveSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var answer writeAnswer
		d := New(nowhere, []string{"/"}, someDisk, someWrite)
		d.samplePath = func(string, string) (pathSample, error) { return pathSample{fileSystem: half("")}, nil }
		d.writers[0].write = func() writeAnswer { return answer }
		for _, step := range []struct {
			err    error
			level  probes.Level
			reason string
		}{
			{syscall.EACCES, probes.OK, "SpaceSufficient"}, // never usable
			{nil, probes.OK, "SpaceSufficient"},
			{syscall.EACCES, probes.OK, "SpaceSufficient"},
			{syscall.EIO, probes.Degraded, "WriteFailed"},
			{syscall.EACCES, probes.Unknown, "WriteDirectoryUnusable"},
			{syscall.ENOENT, probes.Unknown, "WriteDirectoryUnusable"},
			{nil, probes.OK, "SpaceSufficient"},
			{syscall.EMFILE, probes.Unknown, "WriteDirectoryUnusable"},
		} {
			answer = writeAnswer{err: step.err}
			time.Sleep(time.Minute)
			probetest.Check(t, observeBriefly(t, d), step.level, step.reason, "")
		}
	})
}
