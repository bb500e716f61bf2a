package fleet

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// missedAfter is after how long without an answer a peer is missing: all are asked
	// within 20 s. At most fewMissing percent may be: with more the verdict on the
	// network says nothing of this host.
	missedAfter = 30 * time.Second
	fewMissing  = 20
	// peersAgainEach is the time between two readings of the list while peers are
	// missing. Those of a host without power stay in the list for 50 s, up to 55 s. From
	// the fifth on, which such a host does not need, the time doubles each time up to
	// refreshEvery. A second for each slice is added, at random: when a zone of a large
	// fleet is gone, most of the others read.
	peersAgainEach = 15 * time.Second
	peersAgainSoon = 4
)

// peersAgain says when the list of the agents is read outside of its turn. The talk's
// lock guards it, but for due.
type peersAgain struct {
	due   chan struct{}
	next  time.Time // zero: few peers are missing
	count int
}

// hear takes in how many of the known peers answered a short time ago.
func (p *peersAgain) hear(answered, known, slices int, now time.Time) {
	switch {
	case 100*(known-answered) <= fewMissing*known:
		p.next, p.count = time.Time{}, 0
		return
	case p.next.IsZero():
		p.next = now.Add(p.gap(slices))
	}
	if now.Before(p.next) {
		return
	}
	select {
	case p.due <- struct{}{}:
		p.count++
		p.next = now.Add(p.gap(slices))
	default: // the one before was not read yet
	}
}

// gap is the time until the list is read next.
func (p *peersAgain) gap(slices int) time.Duration {
	gap := peersAgainEach
	for range min(max(0, p.count-peersAgainSoon), 10) {
		gap = min(2*gap, refreshEvery)
	}
	return gap + time.Duration(rand.Int64N(int64(max(1, slices))*int64(time.Second))) //nolint:gosec // not a secret
}

// rereadPeers reads where the agents are, unless that was done a moment ago.
func (f *Fleet) rereadPeers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	f.reading.Lock()
	defer f.reading.Unlock()
	if time.Since(f.readAt) <= rereadAfter {
		return nil
	}
	return f.refreshPeers(ctx)
}
