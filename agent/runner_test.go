package agent

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// The next sample follows soon while it decides more, and not when the level is
// decided already.
func TestDue(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		name    string
		decided probes.Level
		last    probes.Observation
		want    time.Duration
	}{
		{"good", probes.OK, probes.Observation{Level: probes.OK}, 5 * time.Second},
		{"bad", probes.OK, probes.Observation{Level: probes.Degraded}, 700 * time.Millisecond},
		{"near and due", probes.OK, probes.Observation{Level: probes.OK, Hysteresis: true, Due: now}, 700 * time.Millisecond},
		{"unknown and due", probes.OK, probes.Observation{Level: probes.Unknown, Due: now}, 700 * time.Millisecond},
		{"due in 3 s", probes.OK, probes.Observation{Level: probes.Unknown, Due: now.Add(3 * time.Second)}, 3 * time.Second},
		{"due in 10 s", probes.OK, probes.Observation{Level: probes.Unknown, Due: now.Add(10 * time.Second)}, 4 * time.Second},
		{"unknown", probes.OK, probes.Observation{Level: probes.Unknown}, 4 * time.Second},
		{"decided", probes.Degraded, probes.Observation{Level: probes.Unknown, Due: now}, 4 * time.Second},
	} {
		r := &runner{start: now, period: 5 * time.Second, step: time.Second, followUp: 700 * time.Millisecond}
		r.decided.Store(int32(test.decided))
		if got := r.due(now, test.last); got != test.want {
			t.Errorf("%s: due after %s, want %s", test.name, got, test.want)
		}
	}
}
