package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// children starts processes that cannot outlive this one, not even when it is
// killed: the kernel sends them SIGKILL (PR_SET_PDEATHSIG). It does so when the
// thread that forked them ends, and the Go runtime ends threads as it likes;
// hence one goroutine, locked to its thread, starts them all and lives until
// stop.
type children struct {
	logDir    string
	starts    chan start
	processes []*process
}

type start struct {
	cmd    *exec.Cmd
	result chan<- error
}

// process is a started child.
type process struct {
	name   string
	log    string // path
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended, after err is set
	err    error
}

func newChildren(logDir string) *children {
	c := &children{logDir: logDir, starts: make(chan start)}
	go c.run()
	return c
}

// run ends when starts is closed. It never unlocks its thread, which therefore
// ends with it.
func (c *children) run() {
	runtime.LockOSThread()
	for request := range c.starts {
		request.result <- request.cmd.Start()
	}
}

// start runs a program with its output in a log file named after it.
func (c *children) start(path string, args ...string) (*process, error) {
	name := filepath.Base(path)
	logPath := filepath.Join(c.logDir, name+".log")
	output, err := os.Create(logPath)
	if err != nil {
		return nil, fmt.Errorf("create the log of %s: %w", name, err)
	}
	defer func() { _ = output.Close() }()

	cmd := exec.Command(path, args...) //nolint:noctx // it lives until Stop, not as long as a call
	cmd.Stdout, cmd.Stderr = output, output
	// A process group of its own: Ctrl-C in a terminal reaches the parent
	// alone, which then decides the order in which things end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	result := make(chan error)
	c.starts <- start{cmd, result}
	if err := <-result; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, log: logPath, cmd: cmd, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		p.err = cmd.Wait()
	}()
	c.processes = append(c.processes, p)
	return p, nil
}

// stop kills all children, the last started first, and returns when they have
// ended. The error tells of those that had ended before.
func (c *children) stop() error {
	var errs []error
	for i := len(c.processes) - 1; i >= 0; i-- {
		p := c.processes[i]
		select {
		case <-p.exited:
			errs = append(errs, p.died())
		default:
			// All that they know is about to be removed: nothing is worth a
			// graceful end.
			_ = p.cmd.Process.Kill()
			<-p.exited
		}
	}
	close(c.starts)
	return errors.Join(errs...)
}

// died is the error for a process that has ended although nobody asked it to.
func (p *process) died() error {
	return fmt.Errorf("%s ended by itself: %w\n%s", p.name, errors.Join(p.err), p.tail(20))
}

// waitFor asks the URL until it answers 200, the process ends, or the context does.
func (p *process) waitFor(ctx context.Context, client *http.Client, url string) error {
	var last error
	for {
		if last = get(ctx, client, url); last == nil {
			return nil
		}
		select {
		case <-p.exited:
			return p.died()
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to be ready: %w; last answer: %w\n%s", p.name, ctx.Err(), last, p.tail(20))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(body))
	}
	return nil
}

// tail returns the last lines of the process's log.
func (p *process) tail(lines int) string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return fmt.Sprintf("--- end of %s's log ---\n%s", p.name, strings.Join(all[max(0, len(all)-lines):], "\n"))
}
