package security

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// peak is the most memory that a process had since the last reset.
type peak struct {
	pid int

	mu  sync.Mutex
	rss int // the most that was seen, in KiB
	// marked: the kernel's own mark was reset, so that it is of this attack.
	marked bool
}

// newPeak samples a process until it ends.
func newPeak(t *testing.T, p *process.Process) *peak {
	t.Helper()
	k := &peak{pid: p.PID()}
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-p.Ended():
				return
			case <-tick.C:
				rss, _ := process.Memory(k.pid, "VmRSS") // it may just have ended
				k.mu.Lock()
				k.rss = max(k.rss, rss)
				k.mu.Unlock()
			}
		}
	}()
	return k
}

// reset forgets what was before (proc_pid_clear_refs(5)).
func (k *peak) reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rss = 0
	k.marked = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", k.pid), []byte("5"), 0) == nil
}

// worst is the most memory since the last reset, in KiB.
func (k *peak) worst(t *testing.T) int {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.marked {
		return k.rss
	}
	mark, err := process.Memory(k.pid, "VmHWM")
	if err != nil {
		t.Error(err)
	}
	return max(k.rss, mark)
}
