package sampling

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

// falling is a quantity that falls and grows in pieces of up to two seconds.
type falling struct {
	random    *rand.Rand
	most      float64 // the fastest fall, a second
	at        time.Time
	left      float64
	rate      float64
	until     time.Time
	crossedAt time.Time // below 0 since; zero: it is not
}

// goOn moves on to a time.
func (f *falling) goOn(to time.Time) {
	for f.at.Before(to) {
		if !f.at.Before(f.until) {
			f.rate = -f.most
			if f.random.IntN(3) > 0 { // else as fast as it may
				f.rate = f.most * (2*f.random.Float64() - 1)
			}
			f.until = f.at.Add(time.Duration(1 + f.random.Int64N(int64(2*time.Second))))
		}
		next := f.until
		if to.Before(next) {
			next = to
		}
		before := f.left
		f.left += f.rate * next.Sub(f.at).Seconds()
		switch {
		case f.left >= 0:
			f.crossedAt = time.Time{}
		case before >= 0:
			f.crossedAt = f.at.Add(time.Duration(before / -f.rate * float64(time.Second)))
		}
		f.at = next
	}
}

// What falls up to twice as fast as is plausible has been past its threshold for at most
// one and a half steps when the next sample is taken, however rarely samples are taken
// while much is left, and at all tempos. The time of a sample follows from the one before
// alone.
func TestNothingPlausibleIsPastItsThresholdUnseen(t *testing.T) {
	t.Parallel()
	const plausible, margin = 100, 2
	crossings, longest := 0, time.Duration(0)
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 30)) //nolint:gosec // not a secret
		start := time.Unix(1e9, 0)
		tempo := 0.9 + 0.2*random.Float64()
		scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) * tempo) }
		r := &runner{start: start, period: scaled(4 * time.Second), step: scaled(250 * time.Millisecond)}
		r.decided.Store(int32(probes.OK))
		now := start.Add(time.Duration(random.Int64N(int64(time.Minute))))
		f := &falling{random: random, most: plausible * margin, at: now, left: 2000 * random.Float64()}
		for ; f.crossedAt.IsZero() && now.Sub(start) < 10*time.Minute; f.goOn(now) {
			next := r.due(now, probes.Observation{Level: probes.OK, Headroom: trend.Headroom(f.left, plausible)})
			longest = max(longest, next)
			now = now.Add(next)
		}
		if f.crossedAt.IsZero() {
			continue
		}
		crossings++
		if unseen := now.Sub(f.crossedAt); unseen > r.step*3/2 {
			t.Fatalf("seed %d: past the threshold for %s before a sample, with a step of %s", seed, unseen, r.step)
		}
	}
	if crossings < 500 || longest < 3600*time.Millisecond {
		t.Errorf("%d crossings, the longest wait was %s: the test tries too little", crossings, longest)
	}
}
