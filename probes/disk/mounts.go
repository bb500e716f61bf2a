package disk

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// mount is what mountinfo says about one mount. The zero mount is not known.
type mount struct {
	point, fsType, source string
	readOnly              bool   // this mount
	superReadOnly         bool   // the file system, for everybody
	emergency             bool   // ext4 gave up writing after an error (newer kernels)
	shutdown              bool   // ext4 was shut down (newer kernels)
	upper                 string // of an overlay: the directory that takes the writes
}

// pathMounts are the mounts under one path.
type pathMounts struct {
	own     mount
	beneath mount // of an overlay: the one on which its upper directory lies
}

// wantedMount says what is known of a path whose mounts are wanted.
type wantedMount struct {
	path    string
	mountID uint64
	device  uint64
}

// mountsOf finds the mounts under the paths. A mount that cannot be found is the
// zero mount.
//
// The paths are names in our own mount namespace, so mountsOf searches our own
// mountinfo, by the mount ID. That is exact where the device is not (btrfs shows
// another one in stat(2) than in mountinfo), and where the name is not (symbolic
// links). In a container the root is an overlay. What is written there goes to a
// file system that only the host's mountinfo has, which is that of process 1.
func mountsOf(proc string, wanted []wantedMount) []pathMounts {
	found := make([]pathMounts, len(wanted))
	var search mountSearch
	for i, w := range wanted {
		switch {
		case w.mountID != 0:
			search.add(withID(w.mountID), &found[i].own)
		case w.device != 0: // 0: the path has not answered yet
			search.add(onDevice(w.device, w.path), &found[i].own)
		}
	}
	search.run(proc, "self")
	for i, w := range wanted {
		own := &found[i].own
		switch {
		case own.point == "" && w.device != 0:
			search.add(onDevice(w.device, w.path), own)
		case own.upper != "":
			search.add(above(own.upper), &found[i].beneath)
		}
	}
	search.run(proc, "1")
	return found
}

// mountSearch finds several mounts in one pass.
type mountSearch []*mountFinder

// mountFinder keeps the mount of the best rank. Rank 0 is no match. Of several
// plain matches it keeps the first. Of several on one mount point, which have the
// same higher rank, it keeps the last, which hides the others.
type mountFinder struct {
	rank func(mountLine) int
	best int
	into *mount
}

func (s *mountSearch) add(rank func(mountLine) int, into *mount) {
	*s = append(*s, &mountFinder{rank: rank, into: into})
}

// run reads the mountinfo of a process, if there is anything to find, and empties
// the search. A mountinfo that cannot be read has no mounts.
func (s *mountSearch) run(proc, process string) {
	finders := *s
	*s = nil
	if len(finders) == 0 {
		return
	}
	file, err := os.Open(filepath.Join(proc, process, "mountinfo"))
	if err != nil {
		return
	}
	defer file.Close() //nolint:errcheck // nothing was written
	finders.read(file)
}

// read searches the lines. It passes over a line that is cut off or malformed.
func (s mountSearch) read(r io.Reader) {
	// An overlay's line lists all its layers. mount(2) allows a page of them,
	// fsconfig(2) more.
	buffered := bufio.NewReaderSize(r, 64<<10)
	for {
		text, err := buffered.ReadSlice('\n')
		tooLong := false
		for errors.Is(err, bufio.ErrBufferFull) {
			tooLong = true
			_, err = buffered.ReadSlice('\n')
		}
		if err != nil {
			return
		}
		if tooLong {
			continue
		}
		line, ok := splitMountLine(text[:len(text)-1])
		if !ok {
			continue
		}
		for _, f := range s {
			if rank := f.rank(line); rank > f.best || rank > plainMatch && rank == f.best {
				*f.into, f.best = line.mount(), rank
			}
		}
	}
}

// plainMatch is the rank of a match that is no better than another.
const plainMatch = 1

// withID returns the rank of mounts by their ID.
func withID(id uint64) func(mountLine) int {
	wanted := strconv.FormatUint(id, 10)
	return func(l mountLine) int {
		if string(l.id) == wanted {
			return plainMatch
		}
		return 0
	}
}

// onDevice returns the rank of mounts of the device: those above path rank higher
// the closer they are. The file system's own options are the same in all.
func onDevice(device uint64, path string) func(mountLine) int {
	wanted := fmt.Sprintf("%d:%d", unix.Major(device), unix.Minor(device))
	isAbove := above(path)
	return func(l mountLine) int {
		if string(l.device) == wanted {
			return max(plainMatch, isAbove(l))
		}
		return 0
	}
}

// above returns the rank of mounts above path: the closer, the higher.
func above(path string) func(mountLine) int {
	return func(l mountLine) int {
		point := l.point
		if bytes.IndexByte(point, '\\') >= 0 {
			point = []byte(unescape(point))
		}
		n := len(point)
		if len(path) < n || path[:n] != string(point) || len(path) > n && path[n] != '/' && point[n-1] != '/' {
			return 0
		}
		return plainMatch + n
	}
}

// mountLine is one line of mountinfo (proc_pid_mountinfo(5)), split but not yet
// parsed.
type mountLine struct {
	id, device, point, options, fsType, source, superOptions []byte
}

// splitMountLine splits a line. ok is false for a malformed one. It reads what
// procfs.ParseMountInfo reads, which refuses the whole file for one odd line and
// parses all lines, where we parse only those that match.
func splitMountLine(line []byte) (l mountLine, ok bool) {
	before, after, ok := bytes.Cut(line, []byte(" - "))
	if !ok {
		return l, false
	}
	var skipped []byte
	for _, field := range []*[]byte{&l.id, &skipped, &l.device, &skipped, &l.point, &l.options} {
		if *field, before, _ = bytes.Cut(before, []byte(" ")); len(*field) == 0 {
			return l, false
		}
	}
	// The source may be empty (mount -t tmpfs "" /x); the others may not.
	l.fsType, after, _ = bytes.Cut(after, []byte(" "))
	l.source, l.superOptions, ok = bytes.Cut(after, []byte(" "))
	return l, ok && len(l.fsType) > 0 && len(l.superOptions) > 0
}

// mount parses the line.
func (l mountLine) mount() mount {
	m := mount{
		point: unescape(l.point), fsType: string(l.fsType), source: unescape(l.source),
		readOnly:      hasOption(l.options, "ro"),
		superReadOnly: hasOption(l.superOptions, "ro"),
		emergency:     hasOption(l.superOptions, "emergency_ro"),
		shutdown:      hasOption(l.superOptions, "shutdown"),
	}
	if m.fsType == "overlay" {
		for option := range bytes.SplitSeq(l.superOptions, []byte(",")) {
			// A relative name is relative to the working directory of whoever mounted.
			if upper, ok := bytes.CutPrefix(option, []byte("upperdir=")); ok && bytes.HasPrefix(upper, []byte("/")) {
				m.upper = unescape(upper)
			}
		}
	}
	return m
}

func hasOption(options []byte, name string) bool {
	for option := range bytes.SplitSeq(options, []byte(",")) {
		if string(option) == name {
			return true
		}
	}
	return false
}

// unescape undoes the kernel's \ooo (mangle_path in fs/seq_file.c).
func unescape(text []byte) string {
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text)
	}
	plain := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if code, err := strconv.ParseUint(string(text[i+1:i+4]), 8, 8); err == nil {
				plain = append(plain, byte(code))
				i += 3
				continue
			}
		}
		plain = append(plain, text[i])
	}
	return string(plain)
}

// mountOfOpen returns the mount on which an open file lies.
func mountOfOpen(proc string, file *os.File) mount {
	var where unix.Statx_t
	if err := unix.Statx(int(file.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &where); err != nil {
		return mount{}
	}
	device := unix.Mkdev(where.Dev_major, where.Dev_minor)
	return mountsOf(proc, []wantedMount{{path: file.Name(), mountID: where.Mnt_id, device: device}})[0].own
}
