package trend

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// samplesEvery makes a slope of values that are the same time apart.
func samplesEvery(apart time.Duration, values ...float64) *Slope {
	var s Slope
	for i, value := range values {
		s.Add(time.Unix(1000, 0).Add(time.Duration(i)*apart), value)
	}
	return &s
}

func TestSlope(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		values []float64
		want   float64
		ok     bool
	}{
		{"nothing", nil, 0, false},
		{"too few", []float64{4, 3, 2, 1}, 0, false},
		{"just enough", []float64{5, 4, 3, 2, 1}, -1, true},
		{"level", []float64{7, 7, 7, 7, 7, 7}, 0, true},
		{"rising", []float64{1, 2, 3, 4, 5}, 1, true},
		{"one odd sample, the newest", []float64{100, 99, 98, 97, 0}, -1, true},
		{"one odd sample in the middle", []float64{100, 99, 0, 97, 96}, -1, true},
		{"one odd sample, the oldest", []float64{0, 99, 98, 97, 96}, -1, true},
		{"three odd samples of ten", []float64{100, 99, 98, 500, 96, 95, 0, 93, 92, 0}, -1, true},
		{"what is older than ten samples is forgotten", []float64{1, 2, 3, 4, 100, 99, 98, 97, 96, 95, 94, 93, 92, 91}, -1, true},
		{"a single step is no slope", []float64{9, 9, 9, 9, 9, 9, 9, 9, 5, 5}, 0, true},
	} {
		got, ok := samplesEvery(time.Second, test.values...).perSecond()
		if ok != test.ok || math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: %v, %t, want %v, %t", test.name, got, ok, test.want, test.ok)
		}
	}
}

func TestSlopeKeepsItsSamplesApart(t *testing.T) {
	t.Parallel()
	s := samplesEvery(250*time.Millisecond, 9, 8.75, 8.5, 8.25, 8, 7.75, 7.5, 7.25, 7)
	if s.count != 5 || s.samples[4].value != 7 || s.samples[3].value != 7.5 {
		t.Errorf("%d samples, %+v", s.count, s.samples[:s.count])
	}
	if change, ok := s.perSecond(); !ok || change != -1 {
		t.Errorf("%v, %t", change, ok)
	}
}

func TestSlopeStartsAfreshAfterAGap(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{
		"the clock stands": 0, "the clock goes back": -time.Second, "a gap": probes.LongestGap + 1,
	} {
		s := samplesEvery(time.Second, 5, 4, 3, 2, 1)
		s.Add(time.Unix(1004, 0).Add(pause), 1)
		if _, ok := s.perSecond(); ok || s.count != 1 {
			t.Errorf("%s: still %d samples", name, s.count)
		}
	}
	s := samplesEvery(250*time.Millisecond, 5, 4)
	s.Add(time.Unix(1001, 0).Add(probes.LongestGap), 1)
	if s.count != 1 {
		t.Errorf("a gap after two samples that are close: %d samples", s.count)
	}
	s = samplesEvery(probes.LongestGap, 5, 4, 3)
	if s.count != 2 {
		t.Errorf("a sample of a minute ago counts: %d samples", s.count)
	}
}

func TestTimeToEmpty(t *testing.T) {
	t.Parallel()
	falling := samplesEvery(5*time.Second, 250, 200, 150, 100, 50, 0)
	// before lets values follow upon a fall of 20 a second for longer than a trend has
	// to hold.
	before := func(values ...float64) *Slope {
		long := make([]float64, 0, 30)
		for second := range 25 {
			long = append(long, values[0]+20*float64(25-second))
		}
		return samplesEvery(time.Second, append(long, values...)...)
	}
	for _, test := range []struct {
		s         *Slope
		available float64
		want      time.Duration
	}{
		{falling, 10, time.Second},
		{falling, 15, 1500 * time.Millisecond},
		{falling, 0, 0},
		{falling, -1, 0},
		{before(90, 70, 50, 30, 20), 20, 2 * time.Second}, // it slows down
		{samplesEvery(4*time.Second, 90, 82, 74, 66, 0), 40, 40 * time.Second / 2}, // one odd sample
		{samplesEvery(time.Second, 50, 40, 30, 20, 10), 10, 5 * time.Second},       // all of it within 4 s
		{samplesEvery(time.Second, 50, 50, 50, 50, 50, 40, 30, 20, 10), 10, 5 * time.Second},
		{falling, math.Inf(1), Never},
		{samplesEvery(time.Second, 1, 2, 3, 4, 5), 10, Never},
		{samplesEvery(time.Second, 1, 1, 1, 1, 1), 0, Never},
		{samplesEvery(time.Second, 5, 4, 3, 2), 1, Never},
		{samplesEvery(time.Second, 1<<63, 1<<63, 1<<63-1<<20, 1<<63-1<<20, 1<<63-2<<20), 1 << 63, Never},
	} {
		if got := test.s.TimeToEmpty(test.available); got != test.want {
			t.Errorf("%v of %+v: %v, want %v", test.available, test.s.samples[:test.s.count], got, test.want)
		}
	}
}

// A fall that has ended is no fall, a second after its end. A start that touches
// 6 GiB and leaves 5.86 GiB must not be "empty in 7 s" any more.
func TestTimeToEmptyEndsWithTheFall(t *testing.T) {
	t.Parallel()
	for _, apart := range []time.Duration{100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 4 * time.Second} {
		var s Slope
		start := time.Unix(1000, 0)
		const fall, after = 40 * time.Second, 5.86
		for since := time.Duration(0); since <= 2*fall; since += apart {
			left := after + 0.75*max(0, (fall-since).Seconds())
			s.Add(start.Add(since), left)
			remains := s.TimeToEmpty(left)
			switch {
			case since >= sustainedSpan && since <= fall:
				if want := left / 0.75; remains.Seconds() < want*0.99 || remains.Seconds() > want*1.01 {
					t.Errorf("every %v, %v into the fall: %v, want %v s", apart, since, remains, want)
				}
			case since >= fall+max(apart, 2*newestSpan) && remains < Never:
				t.Errorf("every %v, %v after the fall: empty in %v", apart, since-fall, remains)
			case since >= fall+max(apart, newestSpan) && remains < 10*time.Second:
				t.Errorf("every %v, %v after the fall: empty in %v", apart, since-fall, remains)
			}
		}
	}
}

// A slope never holds more than its ring, its samples are in order, and noise
// of a tenth does not hide a steady fall.
func TestSlopeUnderNoise(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	var s Slope
	at := time.Unix(1000, 0)
	for i := range 10_000 {
		elapsed := at.Sub(time.Unix(1000, 0)).Seconds()
		s.Add(at, -100*elapsed+20*(random.Float64()-0.5))
		at = at.Add(time.Duration(250+random.IntN(850)) * time.Millisecond)
		if s.count > maxSamples {
			t.Fatal("the ring is too full")
		}
		for j := 1; j < s.count; j++ {
			if !s.samples[j].at.After(s.samples[j-1].at) {
				t.Fatalf("out of order: %+v", s.samples[:s.count])
			}
		}
		if change, ok := s.perSecond(); ok != (s.count >= fewestSamples) || ok && math.Abs(change+100) > 10 {
			t.Fatalf("after %d samples: %v, %t", i, change, ok)
		}
	}
}

func TestSlopeAllocatesNothing(t *testing.T) {
	s := samplesEvery(time.Second, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
	if n := testing.AllocsPerRun(100, func() { s.TimeToEmpty(5) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSlope(b *testing.B) {
	s := samplesEvery(time.Second, 9, 8, 7.5, 6, 5, 4.5, 3, 2, 1, 0)
	b.ReportAllocs()
	for b.Loop() {
		s.TimeToEmpty(5)
	}
}
