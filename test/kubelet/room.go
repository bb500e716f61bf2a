package kubelet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/test/process"
)

// newRoom returns a thread in a mount namespace of its own, from which nothing
// gets out. All that the thread starts lives there too. When the thread and they
// have ended, the kernel unmounts what was mounted there; and they end with the
// thread. So nothing is left, not even when this process is killed.
func newRoom() (*process.Thread, error) {
	return process.NewThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("make a mount namespace: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("make the mounts of a mount namespace private: %w", err)
		}
		return nil
	})
}

// endTimeout is how long the kernel is given to end a process: it takes that
// long only where a disk does not answer.
const endTimeout = 10 * time.Second

// endLodgers kills what lives in the room and below, and returns when it has
// ended. What outlives its parent, such as containerd's shims, would keep the
// room's mounts, and no signal of the room's thread reaches it. It runs in that
// thread.
func endLodgers() error {
	for {
		pids, err := lodgers()
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			if err := end(pid); err != nil {
				return fmt.Errorf("end process %d of the room: %w", pid, err)
			}
		}
	}
}

// lodgers returns the processes in the mount namespace of this thread, and their
// descendants. A container has a mount namespace of its own, but it stays a
// descendant of its shim, which adopts orphans (PR_SET_CHILD_SUBREAPER).
func lodgers() ([]int, error) {
	room, errRoom := os.Readlink("/proc/thread-self/ns/mnt")
	host, errHost := os.Readlink("/proc/self/ns/mnt")
	if err := errors.Join(errRoom, errHost); err != nil {
		return nil, fmt.Errorf("find the processes of the room: %w", err)
	}
	if room == host {
		return nil, errors.New("find the processes of the room: this thread is not in it")
	}
	statuses, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("find processes: %w", err)
	}
	parents, inside := map[int]int{}, map[int]bool{}
	for _, status := range statuses {
		text, _ := os.ReadFile(status) // without text: it has ended
		// What is in parentheses is chosen by the process (proc_pid_stat(5)).
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(status)))
		if len(fields) < 2 || fields[0] == "Z" {
			continue
		}
		parents[pid], _ = strconv.Atoi(fields[1])
		namespace, _ := os.Readlink(filepath.Join(filepath.Dir(status), "ns", "mnt"))
		inside[pid] = namespace == room
	}
	var found []int
	for pid := range parents {
		for ancestor := pid; ancestor > 0; ancestor = parents[ancestor] {
			if inside[ancestor] {
				found = append(found, pid)
				break
			}
		}
	}
	return found, nil
}

// end kills a process and returns when it has ended.
func end(pid int) error {
	handle, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(handle) }()
	if err := unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		return err
	}
	ended := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}
	for {
		count, err := unix.Poll(ended, int(endTimeout.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case count == 0:
			return fmt.Errorf("it lives %s after SIGKILL", endTimeout)
		default:
			return nil
		}
	}
}

// quietly runs a program to its end and shows its output only if it fails.
func quietly(program string, args ...string) error {
	out, err := exec.Command(program, args...).CombinedOutput() //nolint:noctx // it takes a moment, and half of it is of no use
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", program, errors.Join(err), out)
	}
	return nil
}
