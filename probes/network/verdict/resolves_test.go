package verdict

import (
	"slices"
	"testing"

	"github.com/taintlet/taintlet/probes"
)

// errorsOnly makes the nameservers answer with errors.
func errorsOnly(r *Round) { r.Results[DNS] = Result{Outcome: Failed, IsError: true} }

// Nameservers that answer with errors accuse this host only if those of its peers answer
// without. Older agents take errors for answers: what they say of DNS counts for nothing.
func TestErrorsOfNameservers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		know, well int
		want       string
	}{
		{"here only", 12, 12, "DNSUnreachable"},
		{"at a third too", 12, 8, "DNSUnreachable"},
		{"at half too", 12, 6, "NotProven"},
		{"for all", 12, 0, "NotProven"},
		{"all peers are of an older release", 0, 0, "NotProven"},
		{"two peers are of this release", 2, 2, "NotProven"},
		{"three peers are of this release", 3, 3, "DNSUnreachable"},
	} {
		s := newScript()
		s.play(5)
		if o := s.play(24, errorsOnly, resolving(test.know, test.well)); o.Reason != test.want {
			t.Errorf("%s: %s %s: %s", test.name, o.Level, o.Reason, o.Message)
		}
	}
}

// A host under maintenance is no witness that nameservers answer without errors.
func TestErrorsOfNameserversUnderMaintenance(t *testing.T) {
	t.Parallel()
	s := newScript()
	s.play(5)
	if o := s.play(24, errorsOnly, resolving(12, 12), answers(func(_ int, a *Answer) { a.Maintenance = true })); o.Reason != "NotProven" {
		t.Errorf("%s %s: %s", o.Level, o.Reason, o.Message)
	}
}

// A host tells what its nameservers answer, and only what it knows.
func TestTellsWhetherItResolves(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change change
		want   string
	}{
		{"well", func(*Round) {}, "true"},
		{"errors", errorsOnly, "false"},
		{"silence", class(DNS, Failed, ""), "false"},
		{"errors since the start", func(r *Round) { r.Results[DNS] = Result{Never: true, IsError: true} }, "false"},
		{"silence since the start", never(DNS), "not known"},
		{"switched off", func(r *Round) { delete(r.Results, DNS) }, "not known"},
	} {
		s := newScript()
		s.play(1, test.change)
		got := "not known"
		if a := s.last.Own; a.Resolves != nil {
			got = map[bool]string{true: "true", false: "false"}[*a.Resolves]
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
	s := newScript()
	s.play(1, errorsOnly)
	for range streakOf - 1 {
		if s.play(1); *s.last.Own.Resolves {
			t.Error("errors of the last 5 rounds are forgotten")
		}
	}
	if s.play(1); !*s.last.Own.Resolves {
		t.Error("errors before the last 5 rounds are not forgotten")
	}
}

// A restart of the agent must not clear the taint of a host whose nameservers answer with
// errors.
func TestErrorsSinceTheStartClearNothing(t *testing.T) {
	t.Parallel()
	since := func(r *Round) { r.Results[DNS] = Result{Never: true, IsError: true} }
	s := newScript()
	if o := s.play(30, since, resolving(12, 12)); o.Reason != "NeverHealthy" || !o.Hysteresis || !slices.Equal(o.NeverHealthy, []string{"DNSUnreachable"}) {
		t.Errorf("well at the peers: %+v", o)
	}
	if o := s.play(30, since, resolving(12, 0)); o.Level != probes.OK || o.Hysteresis || !slices.Equal(o.NeverHealthy, []string{"DNSUnreachable"}) {
		t.Errorf("for all: %+v", o)
	}
}
