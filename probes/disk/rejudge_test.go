package disk

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// Whatever the host, the quantities that are recorded lead to the same answer as the
// sample itself, or the sample is left alone.
func TestRejudgedIsAsJudged(t *testing.T) {
	t.Parallel()
	thresholds := Thresholds{AvailablePercent: 10, InodesPercent: 5, BlockedAfter: 30 * time.Second, ClearFactor: 1.5}
	paths, write := []string{"/", "/data"}, Write{Directory: "/data", Slow: 2 * time.Second}
	p := New(probes.Host{}, paths, thresholds, write)
	dice := rand.New(rand.NewPCG(1, 2))
	reasons, left := map[string]int{}, 0
	for range 20_000 {
		p.newest = randomSample(dice)
		want := p.thresholds.judge(p.newest).join()
		got, ok := thresholds.Rejudge(want, p.Measures(nil), paths, write)
		if !ok {
			left++
			if followsFromMeasures(want.Reason) {
				t.Fatalf("%+v is left alone: %+v", p.newest, want)
			}
			continue
		}
		reasons[want.Reason]++
		if got.Level != want.Level || got.Hysteresis != want.Hysteresis || got.Severity != want.Severity || got.Reason != want.Reason {
			t.Fatalf("%+v\nrejudged  %+v\nas judged %+v", p.newest, got, want)
		}
	}
	if len(reasons) < 12 || left == 0 {
		t.Errorf("%d samples left alone; only these reasons came up: %v", left, reasons)
	}
}

func randomSample(dice *rand.Rand) sample {
	var s sample
	for _, name := range []string{"/", "/data"} {
		r := pathReport{name: name, answered: true, fileSystem: fileSystem{path: name, size: 1 << 40, inodesTotal: 1 << 20}}
		r.fileSystem.available = dice.Uint64N(1 << 39)
		r.fileSystem.inodesFree = dice.Uint64N(1 << 18)
		switch dice.IntN(12) {
		case 0:
			r = pathReport{name: name, silence: time.Duration(dice.Int64N(int64(time.Minute)))}
		case 1:
			r.mounts = []mountSample{{path: name, fell: true}}
		}
		s.paths = append(s.paths, r)
	}
	w := writeSample{Write: Write{Directory: "/data", Slow: 2 * time.Second}}
	switch dice.IntN(12) {
	case 0:
		w.err, w.failures = errors.New("odd"), 2
	case 1:
		w.silence = time.Duration(dice.Int64N(int64(time.Minute)))
	default:
		w.took = time.Duration(dice.Int64N(int64(3 * time.Second)))
		w.slowFor = time.Duration(dice.Int64N(int64(2 * time.Minute)))
	}
	s.writes = []writeSample{w}
	return s
}

// A path or directory that the configuration does not name is not judged.
func TestRejudgeLeavesOtherPathsOut(t *testing.T) {
	t.Parallel()
	thresholds := Thresholds{AvailablePercent: 10, ClearFactor: 1}
	recorded := probes.Observation{Level: probes.OK, Reason: "SpaceSufficient"}
	full := []probes.Measure{{Name: "available", Path: "/", Value: 1}, {Name: "size", Path: "/", Value: 100}, {Name: "write", Path: "/", Value: 9}}
	if o, ok := thresholds.Rejudge(recorded, full, []string{"/data"}); ok {
		t.Errorf("of / alone: %+v", o)
	}
	o, ok := thresholds.Rejudge(recorded, append(full, probes.Measure{Name: "available", Path: "/data", Value: 50}, probes.Measure{Name: "size", Path: "/data", Value: 100}), []string{"/data"})
	if !ok || o.Level != probes.OK {
		t.Errorf("/ is full and /data is not: %+v", o)
	}
}
