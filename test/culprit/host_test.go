package culprit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

const cgroupRoot = "/sys/fs/cgroup"

// hierarchies returns where control groups are mounted.
func hierarchies(t *testing.T) (roots []string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.procs")); err == nil {
		return []string{cgroupRoot}
	}
	all, err := filepath.Glob(filepath.Join(cgroupRoot, "*", "cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		roots = append(roots, filepath.Dir(path))
	}
	return roots
}

// moveTo puts a process into the control groups that systemd would make for a unit, or into
// the root where the unit is empty. They last as long as the test.
func moveTo(t *testing.T, unit string, pid int) {
	t.Helper()
	for _, root := range hierarchies(t) {
		group := root
		if unit != "" {
			group = filepath.Join(root, "system.slice", unit)
			if err := os.MkdirAll(group, 0o755); err != nil {
				t.Fatal(err)
			}
			giveCPUs(t, root, filepath.Dir(group), group)
		}
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// giveCPUs gives new groups of the controller cpuset of v1 the CPUs and the memory of the
// root: they have none, and no process may enter.
func giveCPUs(t *testing.T, root string, groups ...string) {
	t.Helper()
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		all, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // another controller
		}
		for _, group := range groups {
			if err := os.WriteFile(filepath.Join(group, name), all, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// removeUnits removes all groups that moveTo has made.
func removeUnits(t *testing.T, units []string) {
	t.Helper()
	for _, root := range hierarchies(t) {
		for _, unit := range append(units, "") {
			if err := os.Remove(filepath.Join(root, "system.slice", unit)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Log(err)
			}
		}
	}
}

// hog is a process that takes what it is told to.
type hog struct {
	who string // as a condition names it
	pid int
	// fifo is where it reads commands.
	fifo string
}

func (h *hog) tell(t *testing.T, command string, args ...int) {
	t.Helper()
	fifo, err := os.OpenFile(h.fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer fifo.Close() //nolint:errcheck // the line was written or not
	if _, err := fmt.Fprintln(fifo, command, strings.Trim(fmt.Sprint(args), "[]")); err != nil {
		t.Fatal(err)
	}
}

// children returns the processes that the hog has started.
func (h *hog) children(t *testing.T) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, _ := os.ReadFile(path) // without text: it has ended
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[1] == strconv.Itoa(h.pid) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// holdsNothing is an error while the hog holds more than when it waits.
func (h *hog) holdsNothing(t *testing.T) error {
	t.Helper()
	if children := h.children(t); len(children) > 0 {
		return fmt.Errorf("%d children", len(children))
	}
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(h.pid), "status"))
	if err != nil {
		return err
	}
	for name, most := range map[string]int{"VmRSS:": 256 << 10, "Threads:": 64} {
		_, rest, _ := strings.Cut(string(text), name)
		var held int
		if _, err := fmt.Sscan(rest, &held); err != nil {
			return err
		}
		if held > most {
			return fmt.Errorf("%s %d, at most %d", name, held, most)
		}
	}
	return nil
}

// startHogs starts a hog in each unit, and one in no control group for an empty name.
func startHogs(t *testing.T, units ...string) (hogs []*hog) {
	t.Helper()
	dir := t.TempDir()
	program, err := process.BuildProgram(t.Context(), "test/culprit/hog", dir, process.BuildOptions{Release: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, unit := range units {
		h := &hog{who: "unit " + unit + " (hog)", fifo: filepath.Join(dir, strconv.Itoa(i))}
		if unit == "" {
			h.who = "host process hog"
		}
		running, err := process.Start("hog", exec.Command(program, h.fifo), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := running.Kill(); err != nil {
				t.Error(err)
			}
		})
		h.pid = running.PID()
		moveTo(t, unit, h.pid)
		h.await(t)
		hogs = append(hogs, h)
	}
	return hogs
}

func (h *hog) await(t *testing.T) {
	t.Helper()
	cluster.Eventually(t, "the FIFO of "+h.who, func() error {
		_, err := os.Stat(h.fifo)
		return err
	})
}

// hogOfPod returns the hog that runs in a pod.
func hogOfPod(t *testing.T, uid string) *hog {
	t.Helper()
	h := &hog{who: "pod " + uid + " (hog)"}
	cluster.Eventually(t, "the process of pod "+uid, func() error {
		groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
		if err != nil {
			return err
		}
		for _, path := range groups {
			text, _ := os.ReadFile(path)
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			if strings.Contains(string(text), "pod"+uid) && strings.HasPrefix(string(command), "/hog\x00") {
				h.pid, err = strconv.Atoi(filepath.Base(filepath.Dir(path)))
				h.fifo = filepath.Join("/proc", strconv.Itoa(h.pid), "root", "fifo")
				return err
			}
		}
		return errors.New("there is none yet")
	})
	h.await(t)
	return h
}
