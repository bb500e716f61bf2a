package faults

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
)

// scratch is the directory that the agent writes to, seen from the host's root.
const scratch = "var/lib/kubelet"

// clockSteps are how far the wall clock is stepped.
func clockSteps() []time.Duration {
	return []time.Duration{time.Hour, -time.Hour, 30 * time.Second, -30 * time.Second, 365 * 24 * time.Hour, -365 * 24 * time.Hour}
}

// stepWall steps the wall clock of the host, to and fro or for good. An agent that starts
// again finds it so.
func (s *scene) stepWall(choice uint64) (end func()) {
	step := clockSteps()[choice%6]
	s.stepAll(step)
	if choice/6%2 == 0 {
		return nothing
	}
	return func() { s.stepAll(-step) }
}

func (s *scene) stepAll(step time.Duration) {
	s.note("the wall clock is stepped by %s", step)
	for _, r := range s.running() {
		if err := r.step(step); err != nil {
			s.judge.complain(fmt.Sprintf("the wall clock cannot be stepped by %s: %v", step, err))
		}
	}
}

// ignoreEnd drops an error that tells that the process is gone.
func ignoreEnd(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// mountScratch gives the agent a small file system of its own to write to, if this process
// may.
func (h *host) mountScratch(t testing.TB) {
	t.Helper()
	path := filepath.Join(h.files.Root, scratch)
	if os.Geteuid() != 0 {
		return
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, "size=1m,mode=0755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fill fills the scratch file system, or empties it.
func (h *host) fill(full bool) {
	path := filepath.Join(h.files.Root, scratch, "ballast")
	if !full {
		if err := os.Remove(path); err != nil {
			h.files.T.Error(err)
		}
		return
	}
	if err := os.WriteFile(path, make([]byte, 2<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		h.files.T.Errorf("2 MiB were written to a file system of 1 MiB: %v", err)
	}
}

// fillScratch fills the file system that the agent writes to.
func (s *scene) fillScratch(uint64) (end func()) {
	s.set(probes.DiskPressure, bad)
	return func() { s.set(probes.DiskPressure, good) }
}

// loseFiles has files of procfs vanish, or be cut off.
func (s *scene) loseFiles(choice uint64) (end func()) {
	how := []health{unreadable, cutOff}[choice%2]
	before := map[probes.Condition]health{}
	for _, condition := range []probes.Condition{probes.MemoryPressure, probes.PIDPressure} {
		before[condition] = s.host.now(condition)
		s.set(condition, how)
	}
	return func() {
		for condition, to := range before {
			if s.host.now(condition) == how { // the step has not changed it
				s.set(condition, to)
			}
		}
	}
}

// group is a control group of memory for one agent.
type group struct{ folder, limit string }

// newGroup makes one, by whichever version this machine has.
func newGroup(name string) (group, error) {
	for _, g := range []group{{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}} {
		made := group{filepath.Join(g.folder, name), g.limit}
		if err := os.Mkdir(made.folder, 0o755); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(made.folder, made.limit)); err == nil {
			return made, nil
		}
		_ = os.Remove(made.folder)
	}
	return group{}, errors.New("this machine has no control groups of memory that this process may make")
}

// set gives the group a limit; 0: none.
func (g group) set(bytes int) error {
	text := strconv.Itoa(bytes)
	if bytes == 0 {
		text = map[string]string{"memory.max": "max", "memory.limit_in_bytes": "-1"}[g.limit]
	}
	return os.WriteFile(filepath.Join(g.folder, g.limit), []byte(text), 0o600)
}

// take takes a process in.
func (g group) take(pid int) error {
	return ignoreEnd(os.WriteFile(filepath.Join(g.folder, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600))
}

// squeeze starts the agent in a control group whose limit is about what it needs, or below.
func (s *scene) squeeze(choice uint64) (end func()) {
	r := s.newestAgent()
	g, err := newGroup(fmt.Sprintf("taintlet-faults-%d-%s-%d", os.Getpid(), s.name, len(s.log)))
	if err == nil {
		err = g.set([]int{8, 12, 16, 24}[choice%4] << 20)
	}
	if err != nil {
		s.judge.complain(err.Error())
		return nothing
	}
	s.t.Cleanup(func() {
		if err := os.Remove(g.folder); err != nil {
			s.t.Error(err)
		}
	})
	s.mayEnd.Add(1)
	r.enter(&g)
	return func() {
		if err := g.set(0); err != nil {
			s.judge.complain(err.Error())
		}
		r.enter(nil)
		time.AfterFunc(5*time.Second, func() { s.mayEnd.Add(-1) }) // it may be at its end
	}
}

// enter starts the agent again, in the group or in none.
func (r *runner) enter(g *group) {
	r.mu.Lock()
	r.group = g
	r.mu.Unlock()
	r.kill()
}
