package decide_test

import (
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Whatever the samples of a bad host are, no minute has more than two writes that
// only tell people something new.
func TestNewsIsBounded(t *testing.T) {
	const hours = 3
	s := newSim(config.Default().Policy())
	seenAll(s)
	var reports []time.Time
	changes := len(s.events)
	s.onWrite = func(s *sim, c taints.Desired) {
		if len(s.events) == changes && len(c.Conditions) > 0 {
			reports = append(reports, s.now)
		}
		changes = len(s.events)
	}
	r := random(5)
	for range quick(hours * 3600) {
		o := sample(names()[r.IntN(4)], anySample(r))
		o.Severity = r.IntN(101)
		s.after(time.Second, o)
	}
	for i, at := range reports {
		if i >= 2 && at.Sub(reports[i-2]) < time.Minute {
			t.Fatalf("three reports within %s", at.Sub(reports[i-2]))
		}
	}
	t.Logf("%d reports and %d level changes in %d h", len(reports), len(s.events), hours)
	if len(reports) < quick(hours*60) {
		t.Errorf("only %d reports: the samples are too calm for this test", len(reports))
	}
}

// What a person reads when the host has recovered is the good value, with the next
// sample, and when it clears is when it does clear.
func TestRecoveryIsToldAtOnceAndTrue(t *testing.T) {
	for seed := range uint64(quick(60)) {
		r := random(seed)
		s := newSim(config.Default().Policy())
		seenAll(s)
		for range 1 + r.IntN(5) { // damping
			for s.state.Level(probes.MemoryPressure) == probes.OK {
				s.after(time.Second, sample(probes.MemoryPressure, "bad"))
			}
			s.after(2*time.Minute, sample(probes.MemoryPressure, "bad"))
			s.after(time.Second, sample(probes.MemoryPressure, "ok"))
			told := s.memory(t).ClearsAt
			if told.IsZero() {
				t.Fatalf("seed %d: it is not told when it clears", seed)
			}
			for s.state.Level(probes.MemoryPressure) != probes.OK {
				s.after(time.Second, sample(probes.MemoryPressure, "ok"))
			}
			if late := s.now.Sub(told.Time); late < 0 || late >= 2*time.Second { // the record has whole seconds
				t.Fatalf("seed %d: it cleared %s after the time that was told", seed, late)
			}
			s.after(time.Duration(r.IntN(600))*time.Second, sample(probes.MemoryPressure, "ok"))
		}
	}
}

// An hour of noise: the values move, now and then a sample is near, bad or Unknown,
// and never two of three. Nobody is told anything, and nothing is written.
func TestAnHourOfNoiseIsQuiet(t *testing.T) {
	s := newSim(config.Default().Policy())
	seenAll(s)
	s.onNotice = func(n decide.Notice) { t.Errorf("%s at %s: %s", n.Kind, s.now, n.Message) }
	heartbeat, changes := false, 0
	s.onWrite = func(s *sim, c taints.Desired) {
		changes++
		if _, differs := c.Differs(s.read.Node); differs || !heartbeat {
			t.Errorf("written at %s: %+v", s.now, c)
		}
	}
	r, lastBad := random(15), map[probes.Condition]int{}
	for second := range 3600 {
		for _, c := range names() {
			symbol := []string{"ok", "ok", "ok", "near", "unknown"}[r.IntN(5)]
			if second-lastBad[c] > 20 && r.IntN(10) == 0 {
				symbol, lastBad[c] = "bad", second
			}
			o := sample(c, symbol)
			o.Severity = map[string]int{"ok": 0, "near": r.IntN(50), "bad": 50 + r.IntN(51)}[symbol]
			s.after(250*time.Millisecond, o)
		}
		if second%300 == 299 {
			heartbeat = true
			s.step(decide.Inputs{Refresh: true})
			heartbeat = false
		}
	}
	if changes != 12 {
		t.Errorf("%d patches, want the 12 heartbeats", changes)
	}
}

// What the Node says of a condition that is OK, and of one that cannot be told, is true
// within 30 s when it has changed for good, and a moment of something else is not told.
func TestWhatTheNodeSaysIsTrue(t *testing.T) {
	s := newSim(config.Default().Policy())
	seenAll(s)
	says := func() string {
		shown := s.read.Condition(decide.ConditionType(probes.NetworkUnavailable))
		return string(shown.Status) + " " + shown.Reason
	}
	take := func(length time.Duration, symbol, reason string) {
		for range length / (5 * time.Second) {
			o := sample(probes.NetworkUnavailable, symbol)
			o.Reason = reason
			s.after(5*time.Second, o)
		}
	}
	expect := func(when, want string) {
		t.Helper()
		if got := says(); got != want {
			t.Errorf("%s the Node says %q, want %q", when, got, want)
		}
	}
	take(2*time.Minute, "ok", "NetworkHealthy")
	expect("at first", "False NetworkHealthy")
	take(10*time.Second, "near", "NotYetSure")
	take(15*time.Second, "unknown", "NotProven")
	expect("25 s after DNS failed for all", "Unknown NotProven")
	take(time.Minute, "unknown", "NotProven")
	take(25*time.Second, "ok", "NetworkHealthy")
	expect("25 s after it is well again", "False NetworkHealthy")
	take(time.Minute, "ok", "NetworkHealthy")
	take(10*time.Second, "unknown", "SomePeersUnreachable")
	s.step(decide.Inputs{Refresh: true})
	expect("a heartbeat in a moment of something else:", "False NetworkHealthy")
	take(20*time.Second, "unknown", "SomePeersUnreachable")
	expect("30 s after some peers are gone", "Unknown SomePeersUnreachable")
}

// After a restart the Node of a host that recovers says why it is tainted, and not that
// all is well.
func TestTaintedNodeSaysWhyAfterARestart(t *testing.T) {
	s := newSim(config.Default().Policy())
	seenAll(s)
	for _, symbol := range []string{"bad", "bad", "bad", "bad", "bad"} {
		o := sample(probes.NetworkUnavailable, symbol)
		o.Reason = "DNSUnreachable"
		s.after(5*time.Second, o)
	}
	s.restart(false, 0)
	for _, name := range names() {
		o := sample(name, "ok")
		o.Reason = "NetworkHealthy"
		s.after(time.Second, o)
	}
	shown := s.read.Condition(decide.ConditionType(probes.NetworkUnavailable))
	if shown.Status != taints.ConditionTrue || shown.Reason != "Recovering" || !strings.Contains(shown.Message, ": DNSUnreachable;") {
		t.Errorf("%s %s: %s", shown.Status, shown.Reason, shown.Message)
	}
}
