package consumers

import "time"

const (
	// waits is for how many times its cost nothing is read after a reading: at most 1 % of
	// one CPU.
	waits = 100
	// advances is how many readings may be taken in advance, when a condition comes near
	// its threshold and when it is bad.
	advances = 2
)

// allowance is the time that reading may take. Over any time it is 1 % of one CPU, and
// three readings.
type allowance struct {
	paidAt time.Duration // when all readings are paid
	cost   time.Duration // of the last one
}

// has reports whether there is room for a reading now.
func (a *allowance) has(want Want, now time.Duration) bool {
	until := a.paidAt
	if want == Now {
		until -= advances * waits * a.cost
	}
	return want != Nothing && now >= until
}

// pay takes in what a reading cost.
func (a *allowance) pay(now, cost time.Duration) {
	a.paidAt, a.cost = max(a.paidAt, now)+waits*cost, cost
}
