package decide

import (
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
)

const (
	// removalsFor is how long removals are told after the newest.
	removalsFor = contestFor
	// maxRemovals bounds the number that a forged record can tell.
	maxRemovals = 1_000_000
)

// oneMore counts one removal more.
func oneMore(r describe.Removals, by string, now time.Time) describe.Removals {
	return describe.Removals{Count: min(maxRemovals, recent(r, now).Count+1), By: describe.Cut(by), At: now}
}

// recent returns the removals as long as they are told.
func recent(r describe.Removals, now time.Time) describe.Removals {
	if r.Count == 0 || now.Sub(r.At) >= removalsFor {
		return describe.Removals{}
	}
	return r
}

// removals are those that a record tells of.
func (s summary) removals(now time.Time) describe.Removals {
	at := readWall(s.RemovedAt)
	if s.Removals <= 0 || at.IsZero() {
		return describe.Removals{}
	}
	return describe.Removals{Count: min(s.Removals, maxRemovals), By: describe.Cut(s.RemovedBy), At: earlier(at, now)}
}
