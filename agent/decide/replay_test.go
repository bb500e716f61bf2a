package decide_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/hostprobes"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/memory"
	"github.com/taintlet/taintlet/test/fixtures"
)

// An overload becomes Critical after the same time, whenever its samples are
// taken. Identical replays differ in the phase of the samples and in what brings
// some of them forward.
func TestReplaysBecomeCriticalAlike(t *testing.T) {
	t.Parallel()
	const idle = 20 * time.Second
	for _, mean := range []float64{0.5, 0.6, 0.8} {
		var took []time.Duration
		for phase := range uint64(6) {
			synctest.Test(t, func(t *testing.T) {
				took = append(took, replay(t, idle, overloadOf(mean), phase))
			})
		}
		least, most := took[0], took[0]
		for _, d := range took {
			least, most = min(least, d), max(most, d)
		}
		t.Logf("%v %% stalled: Critical after %v", 100*mean, took)
		if most-least > 3*time.Second || least < time.Minute || most > 80*time.Second {
			t.Errorf("%v %% stalled: Critical after %v", 100*mean, took)
		}
	}
}

// replay runs the overload after an idle time and returns when the host becomes
// Critical, counted from its begin.
func replay(t *testing.T, idle time.Duration, stalled []time.Duration, phase uint64) time.Duration {
	random := rand.New(rand.NewPCG(phase, 1))
	s := newSim(withCritical(config.Default().Policy()))
	for _, name := range []probes.Condition{probes.DiskPressure, probes.PIDPressure, probes.NetworkUnavailable} {
		s.after(0, sample(name, "ok"))
	}
	proc := t.TempDir()
	p := memory.New(probes.Host{Proc: proc}, hostprobes.MemoryThresholds(fixtures.Section[*config.Memory](config.Default())))
	begin := time.Now().Add(idle)
	pause := time.Duration(phase) * 170 * time.Millisecond
	for {
		time.Sleep(pause)
		since := time.Since(begin)
		if since > 4*time.Minute { // it never will be
			return since
		}
		writeOverload(t, proc, since, stalled)
		o := p.Observe(t.Context())
		s.after(pause, o)
		switch level := s.state.Level(probes.MemoryPressure); {
		case level == probes.Critical:
			return since
		case o.Level > probes.OK && level == probes.OK:
			pause = 100 * time.Millisecond
		case level > probes.OK:
			pause = time.Second
		default:
			pause = max(250*time.Millisecond, min(4*time.Second, o.Headroom/2))
		}
		if since > 0 && random.IntN(3) == 0 { // a stall wakes the probe
			pause = min(pause, 250*time.Millisecond)
		}
	}
}

// slice is how long a stall or the lack of one lasts.
const slice = 50 * time.Millisecond

// overloadOf returns, for each slice of an overload, for how long all tasks have
// waited until then. Stalls come in bursts: so it was measured on a full host.
func overloadOf(mean float64) []time.Duration {
	random := rand.New(rand.NewPCG(3, 5))
	waited := []time.Duration{0}
	for range 5 * time.Minute / slice {
		share := 0.0
		if random.Float64() < mean {
			share = 1
		}
		waited = append(waited, waited[len(waited)-1]+time.Duration(share*float64(slice)))
	}
	return waited
}

// writeOverload writes what the host shows at a time: of 24 GiB, half is available
// until the overload begins. Then 2 GiB a second are taken, until 3 % are left.
func writeOverload(t *testing.T, proc string, since time.Duration, stalled []time.Duration) {
	t.Helper()
	since = max(0, since)
	const total = 24 << 20
	available := max(total*3/100, total/2-int(since.Seconds()*(2<<20)))
	full := stalled[since/slice]
	for name, text := range map[string]string{
		"meminfo": fmt.Sprintf("MemTotal: %d kB\nMemAvailable: %d kB\nAnonPages: %d kB\nVmallocTotal: 34359738367 kB\n", total, available, total-available),
		"vmstat":  fmt.Sprintf("allocstall_normal %d\n", since/(5*time.Millisecond)),
		"pressure/memory": fmt.Sprintf("some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n",
			since.Microseconds(), full.Microseconds()),
	} {
		path := filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
