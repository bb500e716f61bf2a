package consumers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Proc is a process as it was read.
type Proc struct {
	PID int32
	// Tasks are its threads.
	Tasks int32
	// Start is when it was started, since the host's boot.
	Start time.Duration
	// Bytes are its own memory: resident, without files and shared memory. A page that a
	// fork left in two processes counts in both.
	Bytes uint64
	// Command is its name, at most 15 bytes. The process chose it.
	Command string
	Group   Group
}

// stat is what /proc/PID/stat says (proc_pid_stat(5)).
type stat struct {
	command  string
	isKernel bool
	tasks    int32
	start    time.Duration
	resident uint64 // pages
}

const (
	// tick is the unit of times in stat, USER_HZ, which is 100 on every architecture of
	// Go's.
	tick = time.Second / 100
	// isKernelThread is PF_KTHREAD (include/linux/sched.h).
	isKernelThread = 0x00200000
)

// These are the fields of stat that are read, counted from the first one behind the name.
const (
	statFlags    = 6
	statThreads  = 17
	statStart    = 19
	statResident = 21
	statFields   = 22 // at least
)

// parseStat reads the text of stat. The name stands in parentheses, and may hold
// parentheses, spaces and ends of lines.
func parseStat(text string) (s stat, err error) {
	begin, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if begin < 0 || end < begin {
		return s, errors.New("no name in parentheses")
	}
	var fields [statFields]string
	rest := strings.TrimPrefix(text[end+1:], " ")
	for i := range fields {
		var found bool
		if fields[i], rest, found = strings.Cut(rest, " "); !found {
			return s, fmt.Errorf("%d fields behind the name instead of at least %d", i, statFields)
		}
	}
	flags, errFlags := strconv.ParseUint(fields[statFlags], 10, 32)
	threads, errThreads := strconv.ParseInt(fields[statThreads], 10, 32)
	start, errStart := strconv.ParseInt(fields[statStart], 10, 64)
	resident, errResident := strconv.ParseInt(fields[statResident], 10, 64)
	if err := errors.Join(errFlags, errThreads, errStart, errResident); err != nil {
		return s, err
	}
	if threads < 0 || start < 0 || start > int64(1<<63-1)/int64(tick) {
		return s, errors.New("a number of threads or a time that cannot be")
	}
	return stat{
		command: text[begin+1 : end], isKernel: flags&isKernelThread != 0,
		tasks: int32(threads), start: time.Duration(start) * tick, resident: uint64(max(0, resident)),
	}, nil
}

// parseShared reads how many of the resident pages are those of files and shared memory,
// from the text of /proc/PID/statm: its third number.
func parseShared(text string) (pages uint64, err error) {
	fields := strings.Fields(text)
	if len(fields) < 3 {
		return 0, fmt.Errorf("%d numbers instead of at least 3", len(fields))
	}
	return strconv.ParseUint(fields[2], 10, 63)
}
