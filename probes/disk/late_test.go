package disk

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// becomesDegraded samples as an agent with the default period and debouncing does: every 4 s, 100 ms
// after a bad sample, and 2 bad samples of 3 decide. It returns when that was.
func becomesDegraded(t *testing.T, d *Probe, within time.Duration) (after time.Duration, is bool) {
	t.Helper()
	begin := time.Now()
	var bad []bool // of the valid samples
	for time.Since(begin) < within {
		at := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		o := d.Observe(ctx)
		cancel()
		next := at.Add(4 * time.Second)
		if o.Level == probes.Degraded {
			next = time.Now().Add(100 * time.Millisecond)
		}
		if o.Level != probes.Unknown {
			bad = append(bad, o.Level == probes.Degraded)
		}
		count := 0
		for _, b := range bad[max(0, len(bad)-3):] {
			if b {
				count++
			}
		}
		if o.Certain || count >= 2 {
			return time.Since(begin), true
		}
		time.Sleep(max(time.Millisecond, time.Until(next)))
	}
	return 0, false
}

// TestWritesThatAreLateForAWhile: file systems that are frozen for a snapshot, paths that fail over
// and image pulls make writes late for seconds, which is no reason for a taint.
func TestWritesThatAreLateForAWhile(t *testing.T) {
	t.Parallel()
	frozen := func(from, until time.Duration) func(at time.Duration) time.Duration {
		return func(at time.Duration) time.Duration {
			if at < from || at >= until {
				return time.Millisecond
			}
			return until - at
		}
	}
	burst := func(took, until time.Duration) func(at time.Duration) time.Duration {
		return func(at time.Duration) time.Duration {
			if at < until {
				return took
			}
			return time.Millisecond
		}
	}
	const ever = time.Hour
	for name, test := range map[string]struct {
		// took returns how long a write takes that begins at a time.
		took     func(at time.Duration) time.Duration
		from, to time.Duration // when the host becomes Degraded; 0: never
	}{
		"one sync of 5.2 s":                     {burst(5200*time.Millisecond, time.Millisecond), 0, 0},
		"frozen for 7 s":                        {frozen(0, 7*time.Second), 0, 0},
		"frozen for 7 s, four times":            {func(at time.Duration) time.Duration { return frozen(0, 7*time.Second)(at % (30 * time.Second)) }, 0, 0},
		"a path fails over in 25 s":             {frozen(2*time.Second, 27*time.Second), 0, 0},
		"an image pull: writes of 4 s for 50 s": {burst(4*time.Second, 50*time.Second), 0, 0},
		"a path fails over, and writes are slow": {func(at time.Duration) time.Duration {
			return max(frozen(0, 20*time.Second)(at), burst(4*time.Second, 50*time.Second)(at))
		}, 0, 0},
		"the device hangs":                           {frozen(0, ever), 30 * time.Second, 40 * time.Second},
		"the device is slow":                         {burst(4*time.Second, ever), 60 * time.Second, 75 * time.Second},
		"every write answers after its sample ended": {burst(7*time.Second, ever), 60 * time.Second, 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := New(nowhere, []string{"/"}, defaultDisk, Write{Directory: "/scratch", Interval: 30 * time.Second, Slow: 2 * time.Second})
				d.samplePath = func(string, string) (pathSample, error) { return pathSample{fileSystem: half("/")}, nil }
				begin := time.Now()
				d.writers[0].write = func() writeAnswer {
					at := time.Now()
					time.Sleep(test.took(at.Sub(begin)))
					return writeAnswer{took: time.Since(at)}
				}
				after, is := becomesDegraded(t, d, 10*time.Minute)
				if is != (test.to > 0) || after < test.from || after > test.to {
					t.Errorf("Degraded: %t, after %v; want that from %v to %v", is, after, test.from, test.to)
				}
				time.Sleep(ever) // so that a write that hangs comes back
			})
		})
	}
}
