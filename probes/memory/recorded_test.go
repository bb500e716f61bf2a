package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// recorded returns the samples of a recording in testdata, of a host with 24 GiB
// of memory.
func recorded(t *testing.T, name string) (samples []sample) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var ms, some, full int64
		s := sample{measured: true, reclaims: reclaims{counted: true}}
		if _, err := fmt.Sscan(line, &ms, &s.available, &some, &full, &s.reclaims.count); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		s.available <<= 10
		s.held = 23*gib - s.available
		s.stalls.Some, s.stalls.Full = time.Duration(some)*time.Microsecond, time.Duration(full)*time.Microsecond
		samples = append(samples, s.takenAt(time.Unix(1000, 0).Add(time.Duration(ms)*time.Millisecond)))
	}
	return samples
}

// A recorded overload is seen by its stalls before memory is low. With its end all is well.
func TestRecordedOverload(t *testing.T) {
	t.Parallel()
	p := New(probetest.Healthy(), allMemory)
	var reasons []string
	for _, s := range recorded(t, "overload.txt") {
		o := p.follow(s)
		probetest.WellFormed(t, o)
		if o.Level > probes.OK && float64(s.available) > 0.2*s.whole() {
			t.Errorf("with more than a fifth available: %+v", o)
		}
		if len(reasons) == 0 || reasons[len(reasons)-1] != o.Reason {
			reasons = append(reasons, o.Reason)
			t.Log(s.at.Sub(time.Unix(1000, 0)), probetest.Text(o))
		}
	}
	const want = "MemorySufficient MemoryNearThreshold MemoryStalled MemoryLow MemoryStalled MemoryNearThreshold MemorySufficient"
	if got := strings.Join(reasons, " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A group at its limit, while the host itself reclaims now and then for another
// reason, is no trouble of the host either.
func TestRecordedControlGroupWhileTheHostReclaimsALittle(t *testing.T) {
	t.Parallel()
	for _, every := range []int{1000, 5, 1} { // samples
		p := New(probetest.Healthy(), allMemory)
		for i, s := range recorded(t, "limit.txt") {
			s.available, s.held = 3*gib, 20*gib
			s.reclaims.count = uint64((i + every - 7%every) / every)
			if o := p.follow(s); o.Level > probes.OK {
				t.Errorf("one reclaim in %d samples: %+v", every, o)
			}
		}
	}
}

// A control group at its limit, recorded, is no trouble of a host with as little
// available as a stall may have.
func TestRecordedControlGroupAtItsLimit(t *testing.T) {
	t.Parallel()
	for _, counted := range []bool{true, false} {
		p := New(probetest.Healthy(), allMemory)
		bad := 0
		for _, s := range recorded(t, "limit.txt") {
			s.available, s.held = 3*gib, 20*gib
			s.reclaims.counted = counted
			if p.follow(s).Level > probes.OK {
				bad++
			}
		}
		if counted != (bad == 0) {
			t.Errorf("reclaims are counted: %t: %d bad samples", counted, bad)
		}
	}
}
