package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

// graceful is how long a process may take to end when asked.
const graceful = 5 * time.Second

// process is a child that runs until stop. If this process ends in any other
// way, the kernel ends the child; main says what that asks of who starts it.
type process struct {
	cmd      *exec.Cmd
	exited   chan struct{}
	expected atomic.Bool // to end
}

// childAttributes give a child a process group of its own: Ctrl-C in a terminal
// reaches the parent alone, which then decides the order in which things end.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// start runs a program with its output to the writers. If it ends although
// nobody stopped it, fail is told.
func start(name string, fail context.CancelCauseFunc, stdout, stderr io.Writer, path string, args ...string) (*process, error) {
	cmd := exec.Command(path, args...) //nolint:noctx // it lives until stop, not as long as a call
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = childAttributes()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		err := cmd.Wait()
		if !p.expected.Load() {
			if err == nil {
				err = errors.New("exit status 0")
			}
			fail(fmt.Errorf("%s ended by itself: %w", name, err))
		}
	}()
	return p, nil
}

// stop asks the process to end, insists if need be, and returns when it has.
func (p *process) stop() {
	if p == nil {
		return
	}
	p.expected.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	insist := time.NewTimer(graceful)
	defer insist.Stop()
	select {
	case <-p.exited:
	case <-insist.C:
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}
