package network

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/ask"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// lost is a class whose target is led to until a test says otherwise, as the
// interface of a host that comes back from sleep has no carrier for some seconds.
type lost struct{ now bool }

func (l *lost) Ask(context.Context, *verdict.Surroundings, time.Duration) verdict.Result {
	if l.now {
		return verdict.Result{Outcome: verdict.Failed, IsSure: true, Detail: "no carrier"}
	}
	return verdict.Result{Outcome: verdict.Well}
}

// A host that slept, for however short a time, and one whose agent stood still, knows
// nothing of before. By the clock that stands still meanwhile, no time has passed.
func TestSleepForgets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		gap, slept time.Duration
		reason     string
	}{
		{"an hour's sleep", time.Hour, time.Hour, "RouteNotKnown"},
		{"a snapshot of 8 s", 13 * time.Second, 8 * time.Second, "RouteNotKnown"},
		{"the agent stood still for a minute", time.Minute, 0, "RouteNotKnown"},
		{"a round later", testPeriod, 0, "RouteLost"},
		{"a late round", 25 * time.Second, 0, "RouteLost"},
		{"clocks read one after the other", testPeriod, time.Millisecond, "RouteLost"},
	} {
		now, slept := time.Unix(1000, 0), 7*time.Hour // the host may have slept before the agent's start
		p := New(thisHost, testPeriod)
		route := &lost{}
		p.checks, p.clock = map[verdict.Class]ask.Check{verdict.Route: route}, func() (time.Time, time.Duration) { return now, slept }
		for range 3 {
			p.Observe(t.Context())
			now = now.Add(testPeriod)
		}
		now, slept, route.now = now.Add(test.gap-testPeriod), slept+test.slept, true
		before := p.evaluator
		for range 4 { // until it has carrier again
			if o := p.Observe(t.Context()); o.Reason != test.reason {
				t.Errorf("%s: %s: %s", test.name, o.Reason, o.Message)
			}
			now = now.Add(time.Second)
		}
		if forgets := p.evaluator != before; forgets != (test.reason == "RouteNotKnown") {
			t.Errorf("%s: the rounds before are forgotten: %t", test.name, forgets)
		}
		route.now = false
		if o := p.Observe(t.Context()); o.Level != probes.OK {
			t.Errorf("%s, and back: %+v", test.name, o)
		}
		now, route.now = now.Add(testPeriod), true
		if o := p.Observe(t.Context()); o.Reason != "RouteLost" {
			t.Errorf("%s, back and lost: %+v", test.name, o)
		}
	}
}

// dueSoon is a verdict that more is known in 7 s.
type dueSoon struct{ *verdict.Evaluator }

func (j dueSoon) Next(r verdict.Round) verdict.Verdict {
	v := j.Evaluator.Next(r)
	v.Observation.Due = r.At.Add(7 * time.Second)
	return v
}

// The agent waits by another clock than that of the rounds.
func TestDueIsOnTheClockOfTheAgent(t *testing.T) {
	t.Parallel()
	p := New(thisHost, testPeriod)
	p.checks, p.evaluator = nil, dueSoon{verdict.NewEvaluator(testPeriod, 1)}
	p.clock = func() (time.Time, time.Duration) { return time.Unix(1000, 0), 0 }
	before := time.Now()
	if due := p.Observe(t.Context()).Due; due.Before(before.Add(7*time.Second)) || due.After(time.Now().Add(7*time.Second)) {
		t.Errorf("due %s, now %s", due, time.Now())
	}
}

// The clock is that of the record: it counts sleep.
func TestHostClock(t *testing.T) {
	t.Parallel()
	var boot unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot); err != nil {
		t.Fatal(err)
	}
	at, slept := hostClock()
	if since := at.Sub(time.Unix(0, boot.Nano())); since < 0 || since > time.Minute || slept < -shortestSleep {
		t.Errorf("%s after the boot clock, slept %s", since, slept)
	}
}
