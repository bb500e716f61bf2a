package scale

import (
	"net/http"
	"sync"
	"time"
)

// timerEvery is how often a process looks how late its timers are.
const timerEvery = 50 * time.Millisecond

// lateness is the command that asks a child process how late its timers were.
const lateness = "lateness"

// timers keep how late the timers of this process are. If they are late, what the
// process measures and does is late.
type timers struct {
	mu  sync.Mutex
	all []asked
}

// newTimers measures until the process ends.
func newTimers() *timers {
	t := &timers{}
	go t.run()
	return t
}

// run sleeps until one moment after another. Moments that it has missed count: each is
// as late as it was noticed.
func (t *timers) run() {
	for due := time.Now(); ; due = due.Add(timerEvery) {
		time.Sleep(time.Until(due))
		late := asked{due, time.Since(due), http.StatusOK}
		t.mu.Lock()
		t.all = append(t.all, late)
		t.mu.Unlock()
	}
}

func (t *timers) late(from, to time.Time) latency {
	t.mu.Lock()
	defer t.mu.Unlock()
	return latencyOf(t.all, from, to)
}
