package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/fixtures"
)

// Total is the memory of the host, in bytes, and taskLimit its limit of tasks.
const (
	Total     = 25 * gib
	taskLimit = 32_768
)

// Host is files in place of /proc that show what a Day does at a time.
type Host struct {
	tb  testing.TB
	dir string
	day Day
	// next is the first Load that has not begun, running are those that have not
	// ended.
	next    int
	running []Load
	waited  time.Duration // of the pods that thrash
	at      time.Duration
	shown   string
	// LeastAvailable is the least memory that was available so far, in bytes, and
	// MostTasks the most tasks that there were.
	LeastAvailable, MostTasks float64
}

// NewHost returns a host at the begin of the day.
func NewHost(tb testing.TB, day Day) *Host {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "taintlet-day-") //nolint:usetesting // t.TempDir is not on a tmpfs, and a day is a million files
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	h := &Host{tb: tb, dir: dir, day: day, LeastAvailable: Total}
	for name, content := range map[string]string{
		"sys/kernel/pid_max": fmt.Sprintln(taskLimit), "sys/kernel/threads-max": "200000\n",
	} {
		h.write(name, content)
	}
	h.Show(0)
	return h
}

// Host is where the probes find it.
func (h *Host) Host() probes.Host {
	return probes.Host{Root: h.dir, Proc: h.dir, Sys: filepath.Join(h.dir, "sys")}
}

// Show makes the files those of a time since the begin of the day. Times never go back.
func (h *Host) Show(at time.Duration) {
	memory, tasks := h.taken(at)
	available := Total - memory
	h.LeastAvailable, h.MostTasks = min(h.LeastAvailable, available), max(h.MostTasks, tasks)
	h.waited += h.waits(h.at, at)
	h.at = at
	shown := fmt.Sprintf("%d %d %d", int(available)>>10, int(tasks), h.waited)
	if shown == h.shown {
		return
	}
	h.shown = shown
	h.write("meminfo", fixtures.Meminfo(Total>>10, int(available)>>10))
	h.write("loadavg", fmt.Sprintf("0.10 0.20 0.30 1/%d 4242\n", int(tasks)))
	line := fmt.Sprintf(" avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n", h.waited.Microseconds())
	h.write("pressure/memory", "some"+line+"full"+line)
	h.write("vmstat", fmt.Sprintf("allocstall_normal %d\n", h.reclaims(at)))
}

// taken returns the memory and the tasks that are taken at a time.
func (h *Host) taken(at time.Duration) (memory, tasks float64) {
	for ; h.next < len(h.day.Loads) && h.day.Loads[h.next].Begin <= at; h.next++ {
		h.running = append(h.running, h.day.Loads[h.next])
	}
	still := h.running[:0]
	for _, l := range h.running {
		if l.end() > at {
			still = append(still, l)
			memory, tasks = memory+l.Memory*l.share(at), tasks+l.Tasks*l.share(at)
		}
	}
	h.running = still
	return memory, max(1, tasks)
}

// waits returns for how long pods waited between two times.
func (h *Host) waits(from, to time.Duration) (waited time.Duration) {
	for _, t := range h.day.Thrashing {
		if both := min(to, t.Begin+t.For) - max(from, t.Begin); both > 0 {
			waited += time.Duration(t.Waits * float64(both))
		}
	}
	return waited
}

// reclaims returns how often the host itself reclaimed until a time.
func (h *Host) reclaims(at time.Duration) (count int) {
	for _, when := range h.day.HostReclaims {
		if when <= at {
			count++
		}
	}
	return count
}

// write writes a file. The host's probes read between two calls of Show only.
func (h *Host) write(name, content string) {
	h.tb.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		h.tb.Fatal(err)
	}
}
