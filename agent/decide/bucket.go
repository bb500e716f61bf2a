package decide

import (
	"time"
)

// bucket is the token bucket that bounds the writes, kept as the one time at
// which it will be full again (the virtual scheduling algorithm of ITU-T
// I.371). It needs no arithmetic on fractions and survives a restart exactly.
type bucket struct {
	fullAt time.Time
}

// take takes a token if there is one.
func (b bucket) take(c WriteBudget, now time.Time) (bucket, bool) {
	if now.Before(b.nextAt(c)) {
		return b, false
	}
	if b.fullAt.Before(now) {
		b.fullAt = now
	}
	return bucket{b.fullAt.Add(c.Interval.Duration)}, true
}

// nextAt is the earliest time at which a token is there.
func (b bucket) nextAt(c WriteBudget) time.Time {
	return b.fullAt.Add(-time.Duration(c.Burst-1) * c.Interval.Duration)
}

// left is how many tokens there are.
func (b bucket) left(c WriteBudget, now time.Time) int {
	missing, interval := max(0, b.fullAt.Sub(now)), c.Interval.Duration
	return max(0, c.Burst-int((missing+interval-1)/interval))
}

// within is the bucket with no more tokens missing than the budget has: a clock
// may have been stepped, or the budget been made larger.
func (b bucket) within(c WriteBudget, now time.Time) bucket {
	return bucket{earlier(b.fullAt, now.Add(time.Duration(c.Burst)*c.Interval.Duration))}
}
