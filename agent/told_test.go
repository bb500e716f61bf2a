package agent

import (
	"sync"

	"github.com/taintlet/taintlet/taints"
)

// Told is a Recorder that keeps the Events of a test.
type Told struct {
	mu     sync.Mutex
	events []string
}

// Event keeps an Event as its type, its reason and its message.
func (t *Told) Event(_ *taints.Node, kind, reason, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, kind+" "+reason+" "+message)
}

// Take returns the Events since it was called last.
func (t *Told) Take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	events := t.events
	t.events = nil
	return events
}
