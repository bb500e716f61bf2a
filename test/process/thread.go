package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// outputDelay is how long a Process that has ended counts as running because a
// child of its own has its output open.
const outputDelay = 5 * time.Second

// Thread is one thread of this process. The programs that it starts end with
// it: the kernel sends a child SIGKILL when the thread that forked it ends
// (PR_SET_PDEATHSIG in prctl(2)), which it does at the latest with this process.
// The Go runtime ends threads at any time; hence one goroutine, locked to its
// thread, that lives until Close.
type Thread struct {
	jobs  chan job
	ended chan struct{}
}

type job struct {
	do     func() error
	result chan<- error
}

// NewThread returns a thread that has run enter, which may move it to a
// namespace of its own: what the thread starts lives there too. Enter may be
// nil.
func NewThread(enter func() error) (*Thread, error) {
	t := &Thread{jobs: make(chan job), ended: make(chan struct{})}
	entered := make(chan error)
	go t.run(enter, entered)
	if err := <-entered; err != nil {
		return nil, err
	}
	return t, nil
}

// run ends when jobs is closed. It never unlocks its thread, which therefore
// ends with it.
func (t *Thread) run(enter func() error, entered chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The process's first thread ends with the process only. While it is
		// locked to this goroutine, another one gets another thread.
		defer runtime.UnlockOSThread()
		go t.run(enter, entered)
		<-t.ended
		return
	}
	defer close(t.ended)
	var err error
	if enter != nil {
		err = enter()
	}
	entered <- err
	if err != nil {
		return
	}
	for j := range t.jobs {
		j.result <- j.do()
	}
}

// Do runs a function in the thread and returns its error.
func (t *Thread) Do(f func() error) error {
	result := make(chan error)
	t.jobs <- job{f, result}
	return <-result
}

// Close ends the thread, and what it has started and still runs. Nothing may be
// asked of the thread any more.
func (t *Thread) Close() {
	close(t.jobs)
	<-t.ended
}

// Start starts a command in the thread. The name is what errors call it. If log
// is not empty, the output of the command is added to that file, and errors show
// its last lines.
//
// The command has a process group of its own: Ctrl-C in a terminal reaches this
// process alone, which then decides the order in which things end.
func (t *Thread) Start(name string, command *exec.Cmd, log string) (*Process, error) {
	p := &Process{name: name, log: log, command: command, ended: make(chan struct{})}
	if log != "" {
		output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open the log of %s: %w", name, err)
		}
		defer func() { _ = output.Close() }() // the command has its own
		before, err := output.Stat()
		if err != nil {
			return nil, fmt.Errorf("open the log of %s: %w", name, err)
		}
		p.logStart = before.Size()
		command.Stdout, command.Stderr = output, output
	}
	if command.WaitDelay == 0 {
		command.WaitDelay = outputDelay
	}
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{} // a caller's may have who the command is
	}
	command.SysProcAttr.Pdeathsig, command.SysProcAttr.Setpgid = syscall.SIGKILL, true
	if err := t.Do(command.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go p.watch()
	return p, nil
}

// Start starts a command as Thread.Start does, in a thread of its own.
func Start(name string, command *exec.Cmd, log string) (*Process, error) {
	thread, err := NewThread(nil)
	if err != nil {
		return nil, err
	}
	p, err := thread.Start(name, command, log)
	if err != nil {
		thread.Close()
		return nil, err
	}
	go func() {
		<-p.Ended()
		thread.Close()
	}()
	return p, nil
}
