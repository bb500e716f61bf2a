// Package probetest is what the tests of the probes share: hosts to probe,
// ways to damage them, and what holds for every Observation. Only tests import
// it.
package probetest

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// Binary is what no text file of the kernel holds.
const Binary = "\x7fELF\x02\x01\x01\x00\xff\xfe \x00\n\x80\x81\x00/\x00\x01"

// WellFormed checks what holds for every Observation.
func WellFormed(t testing.TB, o probes.Observation) {
	t.Helper()
	camelCase := regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	switch {
	case o.Condition == "":
		t.Errorf("no condition: %+v", o)
	case !camelCase.MatchString(o.Reason):
		t.Errorf("reason %q is not CamelCase: %+v", o.Reason, o)
	case o.Message == "" || strings.ContainsAny(o.Message, "\n\x00") || strings.Contains(o.Message, "NaN"):
		t.Errorf("message is no sentence: %+v", o)
	case o.Severity < 0 || o.Severity > 100:
		t.Errorf("severity %d is not within 0 to 100: %+v", o.Severity, o)
	case o.Hysteresis && o.Level != probes.OK:
		t.Errorf("hysteresis without OK: %+v", o)
	case o.Certain:
		t.Errorf("one sample proves nothing here: %+v", o)
	}
}

// Check compares level, reason and a part of the message.
func Check(t testing.TB, o probes.Observation, level probes.Level, reason, inMessage string) {
	t.Helper()
	WellFormed(t, o)
	if o.Level != level || o.Reason != reason || !strings.Contains(o.Message, inMessage) {
		t.Errorf("got %v %s %q, want %v %s with %q", o.Level, o.Reason, o.Message, level, reason, inMessage)
	}
}

// Observe takes one sample, with time enough.
func Observe(t testing.TB, p probes.Probe) probes.Observation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	o := p.Observe(ctx)
	WellFormed(t, o)
	if o.Condition != p.Condition() {
		t.Errorf("a probe of %s speaks of %s", p.Condition(), o.Condition)
	}
	return o
}
