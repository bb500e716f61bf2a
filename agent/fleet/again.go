package fleet

import (
	"math"
	"time"

	"github.com/taintlet/taintlet/taints/pace"
)

const (
	// dnsAgainAfter is how long the DNS pods must fail before their list is read
	// again. Those of a host without power stay in it for 55 s, and the probe reports
	// this host as failing after 60 s. The list is read in each round between, and
	// dnsAgainMost times at most: a longer failure is decided by then.
	dnsAgainAfter = 30 * time.Second
	dnsAgainMost  = 10

	// missedAfter is after how long without an answer a peer is missing: all are asked
	// within 20 s. At most fewMissing percent may be: with more the verdict on the
	// network says nothing of this host.
	missedAfter = 30 * time.Second
	fewMissing  = 20
	// peersAgainEach is the time between two readings of the list while peers are missing. Those of
	// a host without power stay in the list for 50 s, up to 55 s. From the fifth on, which such a
	// host does not need, the time doubles each time up to refreshEvery. A second for each slice is
	// added, at random: when a zone of a large fleet is gone, most of the others read.
	peersAgainEach = 15 * time.Second
	peersAgainSoon = 4
)

// again says when a list is read while its members fail. The lock of the Fleet guards all fields but due.
type again struct {
	due   chan struct{}
	next  time.Time // when the list is due next; zero: its members do not fail
	count int       // how often it was due since they began to fail
}

// observe takes in whether the members fail. wait is the pause before the list is due once more.
func (a *again) observe(fail bool, now time.Time, wait func(count int) time.Duration) {
	switch {
	case !fail:
		a.next, a.count = time.Time{}, 0
	case a.next.IsZero():
		a.next = now.Add(wait(0))
	case !now.Before(a.next) && len(a.due) == 0: // it is not due already
		a.due <- struct{}{}
		a.count++
		a.next = now.Add(wait(a.count))
	}
}

// dnsWait is the pause before the list of the DNS pods is due.
func dnsWait(count int) time.Duration {
	switch {
	case count == 0:
		return dnsAgainAfter
	case count < dnsAgainMost:
		return 0
	}
	return math.MaxInt64
}

// peersWait is the pause before the list of the agents is due, which has that many slices.
func (f *Fleet) peersWait(count int) time.Duration {
	wait := min(peersAgainEach<<min(max(0, count-peersAgainSoon), 10), refreshEvery)
	return wait + pace.UpTo(pace.Crowd(max(1, f.slices)))
}
