package disk

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// pathMounts are the mounts under one path.
type pathMounts struct {
	own     mount
	beneath mount // of an overlay: the one on which its upper directory lies
	// through is a mount of our own namespace on the file system beneath. A quota of the
	// overlay's directory does not count there.
	through mount
	// isSure says that beneath was not found by a name alone.
	isSure bool
	// host is where the host has mounted the file system, of a path without a role.
	host mount
	// at is what the host has mounted at a point, if that was asked, and root what it has at /.
	// Each host has the latter, so without it its mounts are not known.
	at, root mount
}

// isBare says that the host has mounted nothing at the point.
func (m *pathMounts) isBare() bool { return m.root.point != "" && m.at.point == "" }

// wantedMount says of which path the mounts are wanted, and what was known of them
// before.
type wantedMount struct {
	path    string
	mountID uint64
	device  uint64
	known   pathMounts
	// point is where the host is to have mounted something; empty: that is not asked.
	point string
}

// mountsOf finds the mounts under the paths. A mount that cannot be found is the
// zero mount. What is known stays where mountinfo cannot be read.
//
// The paths are names in our own mount namespace, so mountsOf searches our own
// mountinfo, by the mount ID. That is exact where the device is not (btrfs shows
// another one in stat(2) than in mountinfo), and where the name is not (symbolic
// links). In a container the root is an overlay. What is written there goes to a
// file system of which only the host's mountinfo has all, which is that of process 1.
func mountsOf(h probes.Host, wanted []wantedMount) []pathMounts {
	found := make([]pathMounts, len(wanted))
	var search mountSearch
	var file mount
	search.add(ofRuntime, &file)
	for i, w := range wanted {
		found[i].own = w.known.own
		switch {
		case w.mountID != 0:
			search.add(withID(w.mountID), &found[i].own)
		case w.device != 0: // 0: the path has not answered yet
			search.add(onDevice(w.device, w.path), &found[i].own)
		}
	}
	search.run(h.Proc, "self")
	var ours mountSearch
	for i, w := range wanted {
		own, known := &found[i].own, w.known
		if found[i].at, found[i].root = known.at, known.root; w.point != "" {
			search.add(exactly(w.point), &found[i].at)
			search.add(exactly("/"), &found[i].root)
		}
		switch {
		case own.point == "" && w.device != 0:
			search.add(onDevice(w.device, w.path), own)
		case own.upper != "":
			found[i].findBeneath(h, &ours, &search, file, known)
		case own.point != "" && found[i].role(w.path) == 0:
			found[i].host = known.host
			search.add(wholly(own.device), &found[i].host)
		}
	}
	ours.run(h.Proc, "self")
	search.run(h.Proc, "1")
	for i, w := range wanted {
		found[i].settle(w.known.beneath)
	}
	return found
}

// settle compares the file system found beneath an overlay with the one known before.
func (m *pathMounts) settle(known mount) {
	beneath, file := &m.beneath, m.through
	isImage := beneath.superReadOnly && !beneath.failed() && !beneath.seemsFailed()
	switch {
	case file.device != 0:
		if beneath.device == 0 { // without process 1
			*beneath = file
		}
		if beneath.device != file.device || !beneath.quota {
			m.through = mount{}
		}
	case m.isSure:
		m.through = *beneath
	case isImage && beneath.device != known.device:
		// An upper directory could be written when the overlay was mounted
		// (ovl_get_upper in fs/overlayfs/super.c): its name leads through a link.
		*beneath = mount{}
	}
}

// findBeneath searches our mounts or the host's for the one beneath an overlay. Once found, it
// is found again by its ID: the overlay stays on it, whatever is mounted over its directory
// later. The name of the upper directory is the host's, and may lead through symbolic links that
// only the host has. It is sure where the name is resolved in our own mount namespace, and in a
// container by a file that the runtime keeps beside it.
func (m *pathMounts) findBeneath(h probes.Host, ours, hosts *mountSearch, file mount, known pathMounts) {
	m.beneath, m.isSure = known.beneath, true
	upper, err := filepath.EvalSymlinks(filepath.Join(h.Root, m.own.upper))
	switch {
	case err == nil:
		ours.add(again(known.beneath, above(upper)), &m.beneath)
	case file.point != "":
		m.through = file
		hosts.add(again(known.beneath, besideFile(file.device, m.own.upper)), &m.beneath)
	default:
		m.isSure = false
		hosts.add(again(known.beneath, above(m.own.upper)), &m.beneath)
	}
}

// besideFile returns the rank of mounts where the runtime keeps a file on the device. Its layers
// lie there as well, or on a separate mount in the runtime's directory.
func besideFile(device uint64, upper string) func(mountLine) int {
	isAbove, isOnIt := above(upper), onDevice(device, upper)
	const closer = 1 << 20
	return func(l mountLine) int {
		if rank := isAbove(l); rank > 0 && roleOf(string(l.point)) == runtimeRole {
			return closer + rank
		}
		return isOnIt(l)
	}
}

// ofRuntime is the rank of a file that the container runtime keeps for a container: containerd
// and Docker keep it on the file system of their root directory. That of CRI-O is on a tmpfs.
func ofRuntime(l mountLine) int {
	point := string(l.point)
	if (point == "/etc/resolv.conf" || point == "/etc/hostname") && string(l.fsType) != "tmpfs" && roleOf(string(l.root)) == runtimeRole {
		return plainMatch
	}
	return 0
}

// mountSearch finds several mounts in one pass.
type mountSearch []*mountFinder

// mountFinder keeps the mount of the best rank. Rank 0 means no match. Of several
// plain matches it keeps the first. Of several on one mount point, which have the
// same higher rank, it keeps the last, which hides the others.
type mountFinder struct {
	rank func(mountLine) int
	best int
	at   mount
	into *mount
}

func (s *mountSearch) add(rank func(mountLine) int, into *mount) {
	*s = append(*s, &mountFinder{rank: rank, into: into})
}

// run reads the mountinfo of a process, if there is anything to find, and empties
// the search. Where mountinfo cannot be read to its end, it finds only mounts that no later
// line can outdo.
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
	isWhole := hostfile.MountLines(file, finders.take) == nil
	for _, f := range finders {
		if isWhole || f.best == exactMatch {
			*f.into = f.at
		}
	}
}

// take searches one line, and returns false when everything is found exactly. A malformed line is
// passed over.
func (s mountSearch) take(text []byte) (goOn bool) {
	if line, ok := splitMountLine(text); ok {
		for _, f := range s {
			if rank := f.rank(line); rank > f.best || rank > plainMatch && rank == f.best {
				f.at, f.best = line.mount(), rank
			}
		}
	}
	return slices.ContainsFunc(s, func(f *mountFinder) bool { return f.best < exactMatch })
}

const (
	// plainMatch is the rank of all matches that are equally good.
	plainMatch = 1
	// exactMatch is the rank of the only mount that can be meant.
	exactMatch = math.MaxInt
)

// withID returns the rank of mounts by their ID.
func withID(id uint64) func(mountLine) int {
	wanted := strconv.FormatUint(id, 10)
	return func(l mountLine) int {
		if string(l.id) == wanted {
			return exactMatch
		}
		return 0
	}
}

// again returns the rank of mounts where the known mount, if it is still there, is the
// only match. IDs are used again, so the ID alone does not identify it.
func again(known mount, otherwise func(mountLine) int) func(mountLine) int {
	sameID := withID(known.id)
	return func(l mountLine) int {
		if sameID(l) == exactMatch {
			if now := l.mount(); now.device == known.device && now.point == known.point {
				return exactMatch
			}
		}
		return otherwise(l)
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

// exactly returns the rank of mounts at a point. It is never so high that the lines after it
// are not read: only all of them say that a point has no mount.
func exactly(point string) func(mountLine) int {
	return func(l mountLine) int {
		if unescape(l.point) == point {
			return plainMatch
		}
		return 0
	}
}

// wholly returns the rank of mounts of the device: those of the whole file system rank higher
// than those of a directory or a file.
func wholly(device uint64) func(mountLine) int {
	onIt := onDevice(device, "")
	return func(l mountLine) int {
		if onIt(l) > 0 && string(l.root) == "/" {
			return exactMatch
		}
		return onIt(l)
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
	id, device, root, point, options, fsType, source, superOptions []byte
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
	for _, field := range []*[]byte{&l.id, &skipped, &l.device, &l.root, &l.point, &l.options} {
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
	options, super := strings.Split(string(l.options), ","), strings.Split(string(l.superOptions), ",")
	m := mount{
		point: unescape(l.point), root: unescape(l.root), fsType: string(l.fsType), source: unescape(l.source),
		readOnly:      slices.Contains(options, "ro"),
		superReadOnly: slices.Contains(super, "ro"),
		emergency:     slices.Contains(super, "emergency_ro"),
		shutdown:      slices.Contains(super, "shutdown"),
		quota:         slices.Contains(super, "prjquota") || slices.Contains(super, "pquota"),
	}
	m.id, _ = strconv.ParseUint(string(l.id), 10, 64) // 0: not known
	var major, minor uint32
	if n, _ := fmt.Sscanf(string(l.device), "%d:%d", &major, &minor); n == 2 {
		m.device = unix.Mkdev(major, minor)
	}
	for _, option := range super {
		// A relative name is relative to the working directory of whoever mounted.
		if upper, ok := strings.CutPrefix(option, "upperdir="); ok && m.fsType == "overlay" && strings.HasPrefix(upper, "/") {
			m.upper = unescape([]byte(upper))
		}
	}
	return m
}

// escaped is a character as the kernel writes it, \ooo (mangle_path in fs/seq_file.c).
var escaped = regexp.MustCompile(`\\[0-3][0-7]{2}`)

// unescape undoes that.
func unescape(text []byte) string {
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text)
	}
	return string(escaped.ReplaceAllFunc(text, func(code []byte) []byte {
		character, _ := strconv.ParseUint(string(code[1:]), 8, 8) // escaped lets nothing else pass
		return []byte{byte(character)}
	}))
}
