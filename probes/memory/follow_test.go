package memory

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// A short burst of stalls is no evidence twice, though samples follow one another
// closely. One that goes on is.
func TestMemoryForgivesAShortStall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		burst time.Duration
		bad   bool
	}{{200 * time.Millisecond, false}, {time.Second, true}} {
		p := New(probetest.Healthy(), allMemory)
		bad := 0
		for i := range 60 {
			since := time.Duration(i) * 100 * time.Millisecond
			waited := min(test.burst, max(0, since-3*time.Second))
			s := ofHost(14).stalledFor(waited, waited/2)
			if o := p.follow(s.takenAt(time.Unix(1000, 0).Add(since))); o.Level > probes.OK {
				bad++
			}
		}
		if test.bad != (bad > 1) || bad == 1 {
			t.Errorf("a stall of %v: %d bad samples", test.burst, bad)
		}
	}
}

// A total of stalls that grows by more than the time that has passed tells nothing,
// and neither do the samples before it.
func TestMemoryForgivesATotalThatJumps(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		apart time.Duration
		took  time.Duration // reading the sample before the jump
		jump  time.Duration
		bad   bool
	}{
		"in a short period":                {250 * time.Millisecond, 0, time.Second, false},
		"in a long one":                    {4 * time.Second, 0, 10 * time.Second, false},
		"by years":                         {time.Second, 0, 1 << 62, false},
		"all the time, as it can be":       {4 * time.Second, 0, 4 * time.Second, true},
		"since a sample that took so long": {4 * time.Second, time.Second, 5 * time.Second, true},
	} {
		p := New(probetest.Healthy(), allMemory)
		for i := range 100 {
			s := ofHost(14).stalledFor(0, 0)
			if i >= 10 {
				s = ofHost(14).stalledFor(test.jump, test.jump/2)
			}
			s.took = test.took
			o := p.follow(s.takenAt(time.Unix(1000, 0).Add(time.Duration(i) * test.apart)))
			if bad := o.Level > probes.OK; bad != (test.bad && i == 10) {
				t.Errorf("%s, sample %d: %+v", name, i, o)
			}
		}
	}
}

func TestPlausiblePace(t *testing.T) {
	t.Parallel()
	if plausiblePace(1) != 6*gib || plausiblePace(2) != 6*gib || plausiblePace(4) != 12*gib || plausiblePace(128) != 16*gib {
		t.Errorf("%v GiB a second on two CPUs", plausiblePace(2)/gib)
	}
}

// Headroom is never more than the time in which programs could take what is left
// at the plausible rate, whatever the thresholds.
func TestMemoryHeadroomIsNoLongerThanItTakes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(11, 12))
	for range 10_000 {
		thresholds := allMemory
		thresholds.AvailablePercent = 20 * random.Float64()
		p := New(probetest.Healthy(), thresholds)
		s := ofHost(100 * random.Float64())
		o := p.follow(s.takenAt(time.Unix(1000, 0)))
		if (o.Level == probes.OK) != (o.Headroom > 0) {
			t.Fatalf("headroom goes with OK: %+v, %v", o, o.Headroom)
		}
		left := float64(s.available) - p.plausiblePace*o.Headroom.Seconds()
		if enough := thresholds.enough(s.whole()).Amount; o.Level == probes.OK && left < enough-gib/100 {
			t.Fatalf("%v GiB left after %v, threshold %v GiB", left/gib, o.Headroom, enough/gib)
		}
	}
}
