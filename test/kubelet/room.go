package kubelet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// room is a mount namespace and the one thread that lives in it. All that the
// thread starts lives there too. When the thread and they have ended, the
// kernel unmounts what was mounted there; and they end with the thread, by
// PR_SET_PDEATHSIG. So nothing is left, not even when this process is killed.
type room struct {
	jobs  chan job
	ended chan struct{}
}

type job struct {
	do     func() error
	result chan<- error
}

func newRoom() (*room, error) {
	r := &room{jobs: make(chan job), ended: make(chan struct{})}
	entered := make(chan error)
	go r.run(entered)
	if err := <-entered; err != nil {
		return nil, err
	}
	return r, nil
}

// run ends when jobs is closed. It never unlocks its thread, which therefore
// ends with it.
func (r *room) run(entered chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The process's first thread ends with the process only. While it is
		// locked to this goroutine, another one gets another thread.
		defer runtime.UnlockOSThread()
		go r.run(entered)
		<-r.ended
		return
	}
	defer close(r.ended)
	err := enter()
	entered <- err
	if err != nil {
		return
	}
	for j := range r.jobs {
		j.result <- j.do()
	}
}

// enter moves this thread to a new mount namespace from which nothing gets out.
func enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts of a mount namespace private: %w", err)
	}
	return nil
}

// do calls the function in the room's thread.
func (r *room) do(f func() error) error {
	result := make(chan error)
	r.jobs <- job{f, result}
	return <-result
}

// close ends the thread, and whatever it has started.
func (r *room) close() {
	close(r.jobs)
	<-r.ended
}

// start runs a program in the room, with its output at the end of the log.
func (r *room) start(log string, program string, args ...string) (*process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", program, err)
	}
	defer func() { _ = output.Close() }() // the program has its own
	cmd := exec.Command(program, args...) //nolint:noctx // it lives until Stop, not as long as a call
	cmd.Stdout, cmd.Stderr = output, output
	if err := r.do(func() error { return startDependent(cmd) }); err != nil {
		return nil, err
	}
	return watchProcess(cmd, log), nil
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
		return nil, fmt.Errorf("look for processes of the room: %w", err)
	}
	if room == host {
		return nil, errors.New("look for processes of the room: this thread is not in it")
	}
	statuses, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("look for processes: %w", err)
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

// startDependent starts a command that ends when the calling thread does. A
// process group of its own lets Ctrl-C in a terminal reach this process alone,
// which then decides the order in which things end.
func startDependent(command *exec.Cmd) error {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", command.Path, err)
	}
	return nil
}

// quietly runs a program to its end and shows its output only if it fails.
func quietly(program string, args ...string) error {
	out, err := exec.Command(program, args...).CombinedOutput() //nolint:noctx // it takes a moment, and half of it is of no use
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", program, errors.Join(err), out)
	}
	return nil
}
