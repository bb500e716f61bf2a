package fleet

import (
	"time"

	"github.com/taintlet/taintlet/taints/pace"
)

const (
	// askSoonest and askLatest bound the pause after Standings without an answer,
	// ±10 %. It is twice as long each time: in a great incident every host asks, and
	// each question is up to 20 requests.
	askSoonest = 5 * time.Second
	askLatest  = time.Minute
	// notedFor is how long a note counts: a Lease that was renewed since says nothing of
	// a Node that lost its power afterwards. The probe notes about 15 s before it asks,
	// and asks for 30 s.
	notedFor = time.Minute
)

// asking says when Standings may ask.
type asking struct {
	pause time.Duration // after the newest question; 0: it was answered
	due   time.Time
}

// settle takes in how a question ended.
func (a *asking) settle(err error) {
	if err == nil {
		*a = asking{}
		return
	}
	a.pause = min(max(askSoonest, 2*a.pause), askLatest)
	a.due = time.Now().Add(pace.Jittered(a.pause))
}

// notes are when Leases were renewed, by the name of the Node.
type notes map[string]noted

// noted is when a Node's Lease was renewed, by that Node's clock, and when that was
// read, by the own one.
type noted struct {
	renewed, at time.Time
}

// take keeps what was read of a Lease, and forgets notes that do not count any more.
func (n notes) take(node string, renewed time.Time, err error) {
	for old := range n {
		if _, counts := n.of(old); !counts {
			delete(n, old)
		}
	}
	if err != nil || renewed.IsZero() {
		delete(n, node)
		return
	}
	n[node] = noted{renewed, time.Now()}
}

// of returns the note of a Node; false: there is none that counts.
func (n notes) of(node string) (noted, bool) {
	note, found := n[node]
	return note, found && time.Since(note.at) <= notedFor
}
