package probes

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The trees in testdata/hosts are written by go run ./test/fixtures. Beside
// each lies want.txt, what the probes are to say of that host.

const hostsDirectory = "testdata/hosts"

// wellHost is the host that the hosts named edges-* are made of.
const wellHost = "everything"

var updateHosts = flag.Bool("update", false, "write what the probes say of each host in testdata/hosts into its want.txt")

// The thresholds are those of the agent's defaults; memory's are allMemory.
var (
	hostDisk = DiskThresholds{AvailablePercent: 10, InodesPercent: 5, BlockedAfter: 30 * time.Second, ClearFactor: 1.5}
	hostPIDs = PIDThresholds{
		UsedPercent: 85, FreeTasks: 1000, CriticalUsedPercent: 95,
		RunningOutWithin: 30 * time.Second, RunningOutUsedPercent: 50, ClearFactor: 1.5,
	}
	hostPaths = []string{"/", "/var/lib/kubelet", "/var/lib/containerd"}
)

func hostAt(root string) Host {
	return Host{Root: root, Proc: filepath.Join(root, "proc"), Sys: filepath.Join(root, "sys")}
}

func hostNamed(name string) Host { return hostAt(filepath.Join(hostsDirectory, name)) }

func hostNames(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(hostsDirectory)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestHosts(t *testing.T) {
	t.Parallel()
	for _, name := range hostNames(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(hostsDirectory, name, "want.txt")
			got := told(t, hostNamed(name), kernelOf(name))
			if *updateHosts {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the probes say\n%s\nand %s has\n%s", got, file, want)
			}
		})
	}
}

// kernelOf is the host whose mounts the kernel has. A garbled mountinfo does
// not change the mounts.
func kernelOf(name string) Host {
	if strings.HasPrefix(name, "edges-") {
		name = wellHost
	}
	return hostNamed(name)
}

// told is all that is said of the host, a line for each thing. Paths are as on
// the host itself.
func told(t *testing.T, h, kernel Host) string {
	t.Helper()
	var b strings.Builder
	for _, o := range looks(t, h, kernel) {
		level := o.Level.String()
		if o.Hysteresis {
			level += " (hysteresis)"
		}
		fmt.Fprintf(&b, "%s %s %s: %s\n", o.Condition, level, o.Reason, o.Message)
	}
	if swap, err := readFreeSwap(h); err != nil {
		fmt.Fprintf(&b, "free swap outside of memory: %v\n", err)
	} else {
		fmt.Fprintf(&b, "free swap outside of memory: %s\n", bytesText(float64(swap)))
	}
	for _, resource := range []string{"memory", "io"} {
		why := cmp.Or(newTrigger(h, resource, 10).nothingToWatch(), "wakes on stalls")
		fmt.Fprintf(&b, "stalls of %s: %s\n", resource, why)
	}
	own, first := mountsText(t, h, "self"), mountsText(t, h, "1")
	b.WriteString(own)
	if strings.ReplaceAll(first, "mountinfo of 1:", "mountinfo of self:") != own {
		b.WriteString(first)
	}
	return withoutRoot(b.String(), h)
}

// mountsText is what a process's mountinfo has for some paths.
func mountsText(t *testing.T, h Host, process string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.Proc, process, "mountinfo"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, path := range append(slices.Clone(hostPaths), "/usr", "/scratch") {
		fmt.Fprintf(&b, "mountinfo of %s: %s lies on %s\n", process, path, mountText(find(text, above(path))))
	}
	return b.String()
}

func withoutRoot(text string, h Host) string { return strings.ReplaceAll(text, h.Root+"/", "/") }

// looks are the four Observations of one look.
func looks(t testing.TB, h, kernel Host) []Observation {
	t.Helper()
	disk := NewDisk(Host{Root: "/", Proc: h.Proc, Sys: h.Sys}, hostPaths, hostDisk)
	disk.look = func(_, path string) (pathLook, error) { return lookIn(kernel, path) }
	var all []Observation
	for _, p := range []Probe{NewMemory(h, allMemory), NewPID(h, hostPIDs), NewNetwork(h)} {
		all = append(all, observe(t, p))
	}
	// Not observe: a file system that the kernel has given up is certain.
	return append(all, disk.Observe(t.Context()))
}

// lookIn is what the kernel would say of a path, by the reader's mountinfo:
// statfs(2) tells the kind of a file system, whose numbers are made up.
func lookIn(kernel Host, path string) (look pathLook, err error) {
	text, err := os.ReadFile(filepath.Join(kernel.Proc, "self", "mountinfo"))
	if err != nil {
		return look, err
	}
	closest := 0
	for line := range bytes.Lines(text) {
		l, ok := splitMountLine(bytes.TrimSuffix(line, []byte("\n")))
		if rank := above(path)(l); !ok || rank < closest || rank == 0 {
			continue
		} else {
			closest = rank
		}
		m := l.mount()
		look = pathLook{readOnly: m.readOnly || m.superReadOnly}
		if look.fileSystem, err = statfsOf(m.fsType, path); err != nil {
			return look, err
		}
		if look.mountID, err = strconv.ParseUint(string(l.id), 10, 64); err != nil {
			return look, err
		}
		if look.device, err = deviceOf(string(l.device)); err != nil {
			return look, err
		}
	}
	if closest == 0 {
		return look, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return look, nil
}

func deviceOf(text string) (uint64, error) {
	var major, minor uint32
	_, err := fmt.Sscanf(text, "%d:%d", &major, &minor)
	return unix.Mkdev(major, minor), err
}

// statfsOf has a half of all free, in file systems that can have anything
// free. Images have not: squashfs_statfs (fs/squashfs/super.c) says that no block
// and no inode is free, erofs_statfs (fs/erofs/super.c) that no block is, and
// that there is no end of inodes.
func statfsOf(fsType, path string) (fileSystem, error) {
	const blocks = 300 * mib / 4096
	var f fileSystem
	var err error
	switch fsType {
	case "squashfs":
		f, err = fromStatfs(&unix.Statfs_t{Type: unix.SQUASHFS_MAGIC, Bsize: 4096, Blocks: blocks, Files: 5000})
	case "erofs":
		f, err = fromStatfs(&unix.Statfs_t{Type: unix.EROFS_SUPER_MAGIC_V1, Bsize: 4096, Blocks: blocks, Files: math.MaxUint64, Ffree: math.MaxUint64 - 5000})
	case "btrfs":
		f = half(path)
		f.inodesFree, f.inodesTotal = 0, 0
	default:
		f = half(path)
	}
	f.path = path
	return f, err
}

// mountText is what was understood of a mount.
func mountText(m mount) string {
	if m.point == "" {
		return "nothing that is known"
	}
	text := fmt.Sprintf("%s at %s (%s)", m.fsType, m.point, m.source)
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{"mounted read-only", m.readOnly}, {"file system read-only", m.superReadOnly},
		{"emergency", m.emergency}, {"shut down", m.shutdown}, {"upper directory " + m.upper, m.upper != ""},
	} {
		if flag.set {
			text += ", " + flag.name
		}
	}
	return text
}

// ownerOf says which condition a file is read for, and the reason when it
// cannot be understood. No reason: the file only adds to what the probe knows.
var ownerOf = map[string]struct {
	condition Condition
	reason    string
}{
	"proc/meminfo":                {MemoryPressure, "MeminfoGarbled"},
	"proc/swaps":                  {MemoryPressure, "SwapsGarbled"},
	"proc/pressure/memory":        {MemoryPressure, "PressureGarbled"},
	"proc/spl/kstat/zfs/arcstats": {MemoryPressure, "ARCStatsGarbled"},
	"proc/loadavg":                {PIDPressure, "LoadavgGarbled"},
	"proc/sys/kernel/pid_max":     {PIDPressure, "PIDMaxGarbled"},
	"proc/sys/kernel/threads-max": {PIDPressure, "ThreadsMaxGarbled"},
	"proc/net/route":              {NetworkUnavailable, "RouteGarbled"},
	"proc/net/ipv6_route":         {NetworkUnavailable, "IPv6RouteGarbled"},
	"proc/pressure/io":            {DiskPressure, ""},
	"proc/self/mountinfo":         {DiskPressure, ""},
	"proc/1/mountinfo":            {DiskPressure, ""},
	"sys/class/net/eth0/carrier":  {NetworkUnavailable, "CarrierGarbled"},
	podsGroup + "/pids.max":       {PIDPressure, "PodsPIDsMaxGarbled"},
	podsGroup + "/pids.current":   {PIDPressure, "PodsPIDsCurrentGarbled"},
}

const podsGroup = "sys/fs/cgroup/kubepods.slice"

// sensibleEdges are the files that are understood with the edge in them: the
// number is one that a kernel may write, or what is wrong does not matter.
var sensibleEdges = map[string]struct {
	level  Level
	reason string
}{
	"edges-zero/proc/swaps":                     {OK, "MemorySufficient"},
	"edges-zero/proc/pressure/memory":           {OK, "MemorySufficient"},
	"edges-zero/proc/spl/kstat/zfs/arcstats":    {OK, "MemorySufficient"},
	"edges-zero/sys/class/net/eth0/carrier":     {Degraded, "NoCarrier"},
	"edges-zero/" + podsGroup + "/pids.current": {OK, "PIDsSufficient"},
	// The cache is no larger than what it keeps: nothing to give back.
	"edges-2^63/proc/spl/kstat/zfs/arcstats": {OK, "MemorySufficient"},
	// The lines that count are whole; the last one is not among them.
	"edges-no-newline/proc/meminfo": {OK, "MemorySufficient"},
}

// TestEdgesTouchTheirConditionAlone garbles one file at a time of a host that
// is well.
func TestEdgesTouchTheirConditionAlone(t *testing.T) {
	t.Parallel()
	well := hostNamed(wellHost)
	base := looks(t, well, well)
	for _, o := range base {
		if o.Level != OK || o.Hysteresis {
			t.Errorf("the host without edges: %+v", o)
		}
	}
	for _, name := range hostNames(t) {
		if !strings.HasPrefix(name, "edges-") {
			continue
		}
		for path := range ownerOf {
			t.Run(name+"/"+path, func(t *testing.T) {
				t.Parallel()
				h := wellButFor(t, hostNamed(name), path)
				for i, o := range looks(t, h, well) {
					checkEdge(t, name, path, h, o, base[i])
				}
			})
		}
	}
}

// wellButFor is a copy of the host that is well, with one file of another.
func wellButFor(t *testing.T, from Host, path string) Host {
	t.Helper()
	h := hostAt(t.TempDir())
	if err := os.CopyFS(h.Root, os.DirFS(hostNamed(wellHost).Root)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(from.Root, path))
	if err != nil {
		t.Fatal(err)
	}
	write(t, h, path, string(text))
	return h
}

// checkEdge wants an Observation of the file's condition to be Unknown for the
// file's reason, and any other as without the edge.
func checkEdge(t *testing.T, name, path string, h Host, o, base Observation) {
	t.Helper()
	owner := ownerOf[path]
	sensible, isSensible := sensibleEdges[name+"/"+path]
	switch {
	case o.Condition != owner.condition || owner.reason == "":
		if o != base {
			t.Errorf("%s is none of the file's: got %+v, want %+v", o.Condition, o, base)
		}
	case isSensible:
		check(t, o, sensible.level, sensible.reason, "")
	default:
		check(t, o, Unknown, owner.reason, filepath.Base(path))
		if o.Severity != 0 || o.Hysteresis {
			t.Errorf("Unknown says no more than that: %+v", o)
		}
		if text := withoutRoot(o.Message, h); strings.Contains(text, "testdata") {
			t.Errorf("the message names a path of the test: %s", text)
		}
	}
}

// TestOwnersKnowEveryFile: no file of the edges goes without a test.
func TestOwnersKnowEveryFile(t *testing.T) {
	t.Parallel()
	root := hostNamed(wellHost).Root
	err := filepath.WalkDir(root, func(full string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "want.txt" {
			return err
		}
		if path, err := filepath.Rel(root, full); err != nil || ownerOf[path].condition == "" {
			t.Errorf("%s has no owner: %v", full, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
