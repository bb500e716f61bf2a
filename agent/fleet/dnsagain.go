package fleet

import (
	"context"
	"time"
)

const (
	// dnsAgainAfter is how long the DNS pods must fail before their list is read
	// again. Those of a host without power stay in it for 55 s, and the probe accuses
	// this host after 60 s. The list is read in each round between, and dnsAgainMost
	// times at most: what fails longer is settled by then.
	dnsAgainAfter = 30 * time.Second
	dnsAgainMost  = 10
)

// dnsAgain says when the list of the DNS pods is read outside of its turn. The
// talk's lock guards it, but for due.
type dnsAgain struct {
	due   chan struct{}
	since time.Time // zero: they do not fail
	count int
}

// hear takes in whether the DNS pods failed in a round.
func (d *dnsAgain) hear(failed bool, now time.Time) {
	switch {
	case !failed:
		d.since, d.count = time.Time{}, 0
		return
	case d.since.IsZero():
		d.since = now
	}
	if now.Sub(d.since) < dnsAgainAfter || d.count >= dnsAgainMost {
		return
	}
	select {
	case d.due <- struct{}{}:
		d.count++
	default: // the one before was not read yet
	}
}

// refreshDNS reads where the DNS pods are.
func (f *Fleet) refreshDNS(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	f.reading.Lock()
	defer f.reading.Unlock()
	return f.readDNS(ctx)
}
