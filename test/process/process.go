// Package process builds and supervises the programs that tests, the demo and the
// measurements start, takes memory of this host, and locks what only one process may
// use. A program has its log in a file and ends when this process does, in
// whatever way. An end that nobody asked for is an error that shows the end of
// the log.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// askEvery is how long WaitUntil waits before it asks again.
const askEvery = 20 * time.Millisecond

// Process is a program that was started.
type Process struct {
	name     string
	log      string // path; empty: the output went elsewhere
	logStart int64  // where the output of this process begins
	command  *exec.Cmd
	ended    chan struct{} // closed when it has ended, after result is set
	result   error         // of command.Wait

	mu       sync.Mutex
	expected bool // to end
}

func (p *Process) watch() {
	defer close(p.ended)
	p.result = p.command.Wait()
}

// Name returns what errors call the process.
func (p *Process) Name() string { return p.name }

// PID returns the process ID.
func (p *Process) PID() int { return p.command.Process.Pid }

// Args returns the command line.
func (p *Process) Args() []string { return p.command.Args }

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// ExitCode returns the exit code of a process that has ended, -1 if a signal
// ended it.
func (p *Process) ExitCode() int { return p.command.ProcessState.ExitCode() }

// Err is an error if the process has ended although nobody asked it to. It is
// nil while the process runs.
func (p *Process) Err() error {
	select {
	case <-p.ended:
	default:
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.expected {
		return nil
	}
	return p.withLog(fmt.Errorf("%s ended by itself: %w", p.name, cmp.Or(p.result, errors.New("exit status 0"))))
}

// expect notes that the process is asked to end, or is an error if it has ended
// before.
func (p *Process) expect() error {
	if err := p.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = true
	return nil
}

// Kill ends the process as a crash would, and returns when it has ended. The
// error tells that it had ended by itself.
func (p *Process) Kill() error {
	if err := p.expect(); err != nil {
		return err
	}
	_ = p.command.Process.Kill() // it may have ended
	<-p.ended
	return nil
}

// Stop asks the process to end, with SIGTERM, and returns when it has ended. The
// error tells that it had ended by itself, or that it had to be killed when the
// patience was over.
func (p *Process) Stop(patience time.Duration) error {
	if err := p.expect(); err != nil {
		return err
	}
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended
	insist := time.NewTimer(patience)
	defer insist.Stop()
	select {
	case <-p.ended:
		return nil
	case <-insist.C:
		_ = p.command.Process.Kill()
		<-p.ended
		return p.withLog(fmt.Errorf("%s did not end within %s of SIGTERM", p.name, patience))
	}
}

// Wait waits for an end that the process comes to by itself, and returns the
// error of exec.Cmd.Wait.
func (p *Process) Wait() error {
	p.mu.Lock()
	p.expected = true
	p.mu.Unlock()
	<-p.ended
	return p.result
}

// WaitUntil asks until the answer is no error, the process ends, or the context
// does.
func (p *Process) WaitUntil(ctx context.Context, answers func(context.Context) error) error {
	for {
		last := answers(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-p.ended:
			return cmp.Or(p.Err(), fmt.Errorf("%s was ended; last answer: %w", p.name, last))
		case <-ctx.Done():
			return p.withLog(fmt.Errorf("wait for %s: %w; last answer: %w", p.name, ctx.Err(), last))
		case <-time.After(askEvery):
		}
	}
}

// Tail returns the last lines that the process wrote to its log.
func (p *Process) Tail(lines int) string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	own := content[min(p.logStart, int64(len(content))):]
	all := strings.Split(strings.TrimSpace(string(own)), "\n")
	return fmt.Sprintf("--- end of the log of %s ---\n%s", p.name, strings.Join(all[max(0, len(all)-lines):], "\n"))
}

// withLog adds the end of the log, if there is one.
func (p *Process) withLog(err error) error {
	if p.log == "" {
		return err
	}
	return fmt.Errorf("%w\n%s", err, p.Tail(20))
}
