package apiserver

import (
	"sync"
	"time"
)

// Slow is how long a patch of the Node takes at least while many agents write theirs. Else it
// takes milliseconds.
const Slow = time.Second

// lateFor is how long a slow patch is remembered.
const lateFor = time.Minute

// lateness is whether the patches of the Node take long at present.
type lateness struct {
	mu           sync.Mutex
	begun, ended time.Time // of the patch that nobody has answered yet, and of the newest slow one; zero: none
}

// begin notes that a patch begins, and returns what notes that it is over.
func (l *lateness) begin() (end func()) {
	begun := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = begun
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.begun = time.Time{}
		if time.Since(begun) >= Slow {
			l.ended = time.Now()
		}
	}
}

func (l *lateness) isLate() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	isWaiting := !l.begun.IsZero() && time.Since(l.begun) >= Slow
	return isWaiting || !l.ended.IsZero() && time.Since(l.ended) < lateFor
}
