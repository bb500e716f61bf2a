package consumers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
	"github.com/taintlet/taintlet/probes/trend"
)

const (
	// mostProcesses is how many processes are read at most.
	mostProcesses = 32_768
	// perTurn is how many processes are read before other work of this program has its
	// turn: about 0.3 ms.
	perTurn = 16
	// smallest is the resident memory, in bytes, below which shared memory is not told
	// apart, which would take another file.
	smallest = 4 << 20
	// mostCommand is the longest name of a process in a message, in bytes. The kernel keeps 15
	// bytes, and up to 63 for its own workers.
	mostCommand = 32
)

// errHidden says that the processes of others are not visible.
var errHidden = errors.New("the processes of other users are hidden (hidepid)")

// Reader reads the processes of a host, and pays for it. All conditions of a host share one.
type Reader struct {
	host probes.Host
	most int // processes that are read

	mu        sync.Mutex // one reading at a time
	allowance allowance
}

// NewReader returns a Reader of the processes in h.Proc.
func NewReader(h probes.Host) *Reader { return &Reader{host: h, most: mostProcesses} }

// Read reads the processes if the allowance has room; nil: it has not. An error says why
// they cannot be seen. now counts from the host's boot.
func (r *Reader) Read(want Want, now time.Duration) (*Snapshot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.allowance.has(want, now) {
		return nil, nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := hostfile.Clock(unix.CLOCK_THREAD_CPUTIME_ID)
	s, err := r.read(now)
	r.allowance.pay(now, hostfile.Clock(unix.CLOCK_THREAD_CPUTIME_ID)-begin)
	return s, err
}

func (r *Reader) read(now time.Duration) (*Snapshot, error) {
	if hostfile.InPrivatePIDNamespace(r.host.Proc) {
		return nil, errors.New("this is not the host's PID namespace (hostPID)")
	}
	meminfo, err := hostfile.Read(filepath.Join(r.host.Proc, "meminfo"))
	if err != nil {
		return nil, err
	}
	_, shmem, _ := strings.Cut(meminfo, "\nShmem:")
	var kib uint64
	_, _ = fmt.Sscan(shmem, &kib) // it is told beside the consumers, and not needed to find them
	s := &Snapshot{At: now, Shared: float64(kib) * 1024}
	pids, err := listPIDs(r.host.Proc)
	if err != nil {
		return nil, err
	}
	if len(pids) == 0 || pids[0] != 1 {
		return nil, errHidden
	}
	if len(pids) > r.most {
		pids, s.First = pids[:r.most], r.most
	}
	isPrivate := r.isPrivateCgroup()
	s.Processes = make([]Proc, 0, len(pids))
	for i, pid := range pids {
		if i%perTurn == perTurn-1 {
			runtime.Gosched()
		}
		p, err := r.readProcess(pid, isPrivate)
		switch {
		case err == nil:
			s.Processes = append(s.Processes, p)
		case errors.Is(err, fs.ErrPermission) && pid == 1:
			return nil, errHidden
		} // any other has ended
	}
	return s, nil
}

// listPIDs returns the identifiers of all processes, rising.
func listPIDs(proc string) (pids []int32, err error) {
	folder, err := os.Open(proc)
	if err != nil {
		return nil, err
	}
	defer folder.Close() //nolint:errcheck // nothing was written
	names, err := folder.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.ParseInt(name, 10, 32); err == nil && pid > 0 {
			pids = append(pids, int32(pid))
		}
	}
	slices.Sort(pids)
	return pids, err
}

// isPrivateCgroup reports whether this program has a private control group namespace. The first
// process then lies above its root.
func (r *Reader) isPrivateCgroup() bool {
	text, err := hostfile.Read(filepath.Join(r.host.Proc, "1", "cgroup"))
	return err == nil && strings.Contains(text, ":/..")
}

// readProcess reads one process. Its name and its numbers cannot be read where it has ended.
func (r *Reader) readProcess(pid int32, isPrivateCgroup bool) (p Proc, err error) {
	folder := r.host.Proc + "/" + strconv.Itoa(int(pid)) + "/"
	text, err := hostfile.Read(folder + "stat")
	if err != nil {
		return p, err
	}
	s, err := parseStat(text)
	if err != nil {
		return p, err
	}
	page := uint64(os.Getpagesize())
	p = Proc{PID: pid, Tasks: s.tasks, Start: s.start, Bytes: s.resident * page}
	if p.Bytes >= smallest {
		text, err := hostfile.Read(folder + "statm")
		if err != nil {
			return p, err
		}
		pages, err := parseShared(text)
		if err != nil {
			return p, err
		}
		p.Bytes -= min(p.Bytes, pages*page)
	}
	p.Command = trend.Printable(s.command, mostCommand)
	if s.isKernel {
		p.Group = Group{Kind: KindKernel}
		return p, nil
	}
	if text, err = hostfile.Read(folder + "cgroup"); err != nil {
		return p, err
	}
	if p.Group = groupOf(text, isPrivateCgroup); p.Group.Kind == 0 {
		p.Group = Group{KindProcess, p.Command}
	}
	return p, nil
}
