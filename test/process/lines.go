package process

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Lines keeps what a program writes, as its Stdout or Stderr, for those who wait
// for it. The zero value is ready.
type Lines struct {
	mu    sync.Mutex
	whole []string
	part  string        // of a line whose end is to come
	more  chan struct{} // closed when lines come; nil: nobody waits
}

// Write takes in what the program wrote.
func (l *Lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.part + string(text)) {
		whole, ended := strings.CutSuffix(line, "\n")
		if !ended {
			l.part = line
			break
		}
		l.whole, l.part = append(l.whole, whole), ""
	}
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
	return len(text), nil
}

// String returns all that was written.
func (l *Lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(append(l.whole[:len(l.whole):len(l.whole)], l.part), "\n")
}

// present returns the whole lines, and a channel that is closed when there are
// more.
func (l *Lines) present() ([]string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more == nil {
		l.more = make(chan struct{})
	}
	return l.whole, l.more
}

// WaitLines waits until it holds for the lines that were written so far. The
// error tells that the process ended before, or that the context did.
func (p *Process) WaitLines(ctx context.Context, output *Lines, holds func(lines []string) bool) error {
	for ended := false; ; {
		lines, more := output.present()
		if holds(lines) {
			return nil
		}
		if ended {
			return fmt.Errorf("%s ended without saying it; it said\n%s", p.name, output)
		}
		select {
		case <-more:
		case <-p.ended: // all that it wrote is there
			ended = true
		case <-ctx.Done():
			return fmt.Errorf("%s does not say it: %w; it said\n%s", p.name, errors.Join(ctx.Err()), output)
		}
	}
}
