package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// process is a started child.
type process struct {
	name   string
	log    string // path
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended, after err is set
	err    error
	killed bool // by stop
}

func watchProcess(cmd *exec.Cmd, log string) *process {
	p := &process{name: filepath.Base(cmd.Path), log: log, cmd: cmd, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		p.err = cmd.Wait()
	}()
	return p
}

// stop kills the process: what it knows is not to outlive it. The error tells
// that it had ended before, unless stop had ended it.
func (p *process) stop() error {
	if p.killed {
		return nil
	}
	select {
	case <-p.exited:
		return p.died()
	default:
	}
	p.killed = true
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.exited
	return nil
}

// died is the error for a process that has ended although nobody asked it to.
func (p *process) died() error {
	return fmt.Errorf("%s ended by itself: %w\n%s", p.name, errors.Join(p.err), p.tail(20))
}

// waitUntil asks until the answer is no error, the process ends, or the context
// does.
func (p *process) waitUntil(ctx context.Context, answers func(context.Context) error) error {
	for {
		last := answers(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-p.exited:
			return p.died()
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to be ready: %w; last answer: %w\n%s", p.name, ctx.Err(), last, p.tail(20))
		case <-time.After(50 * time.Millisecond):
		}
	}
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

// get asks the URL, and decodes a JSON answer unless into is nil.
func get(ctx context.Context, client *http.Client, url, token string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", url, response.Status, strings.TrimSpace(string(body)))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}
