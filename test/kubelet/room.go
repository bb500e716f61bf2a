package kubelet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

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

// start runs a program in the room, with its output in the log.
func (r *room) start(log string, program string, args ...string) (*process, error) {
	output, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("create the log of %s: %w", program, err)
	}
	defer func() { _ = output.Close() }() // the program has its own
	cmd := exec.Command(program, args...) //nolint:noctx // it lives until Stop, not as long as a call
	cmd.Stdout, cmd.Stderr = output, output
	if err := r.do(func() error { return startDependent(cmd) }); err != nil {
		return nil, err
	}
	return watchProcess(cmd, log), nil
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
