package decide_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// named is a bad sample of memory with a culprit.
func named(name string, took float64) probes.Observation {
	o := sample(probes.MemoryPressure, "bad")
	o.Severity, o.Message = 60, fmt.Sprintf("available 1 GiB; pod %s took %.0f", name, took)
	o.Culprit = probes.Culprit{Kind: "pod", Name: name, Took: took}
	return o
}

// A culprit that is found after the taint was set is written at once, and remembered as what
// set the condition. That its figures move, or that another one is found with each sample,
// makes no more writes than any other difference.
func TestLateCulprit(t *testing.T) {
	s := newSim(config.Default().Policy())
	seenAll(s)
	var written []string
	s.onWrite = func(_ *sim, d taints.Desired) {
		for _, c := range d.Conditions {
			if c.Type == "HostMemoryPressure" {
				written = append(written, c.Message)
			}
		}
	}
	o := named("", 0)
	o.Message, o.Culprit = "available 1 GiB", probes.Culprit{}
	s.after(100*time.Millisecond, o)
	s.after(100*time.Millisecond, o)
	if s.state.Level(probes.MemoryPressure) != probes.Degraded || len(written) == 0 {
		t.Fatalf("not set: %q", written)
	}
	written = nil
	s.after(time.Second, named("a", 5))
	if len(written) != 1 || !strings.Contains(written[0], "pod a took 5") {
		t.Fatalf("the culprit is told in %q", written)
	}
	for i := range 30 {
		s.after(time.Second, named("a", 6+float64(i)))
	}
	if len(written) != 1 {
		t.Errorf("figures that move are written: %q", written)
	}
	written = nil
	for i := range 60 {
		s.after(time.Second, named(fmt.Sprint(i), 9))
	}
	if len(written) > 3 {
		t.Errorf("%d writes in a minute", len(written))
	}
	good := sample(probes.MemoryPressure, "ok")
	written = nil
	s.after(2*time.Minute, good)
	for range 20 {
		s.after(time.Second, good)
	}
	if len(written) == 0 || !strings.Contains(written[0], "bad since") || !strings.Contains(written[0], "pod a took 5") {
		t.Errorf("while it recovers: %q", written)
	}
}

// That nobody can be named is written too, when it is found after the taint was set.
func TestLateTextWithoutACulprit(t *testing.T) {
	s := newSim(config.Default().Policy())
	seenAll(s)
	var written []string
	s.onWrite = func(_ *sim, d taints.Desired) {
		for _, c := range d.Conditions {
			if c.Type == "HostMemoryPressure" {
				written = append(written, c.Message)
			}
		}
	}
	o := sample(probes.MemoryPressure, "bad")
	s.after(100*time.Millisecond, o)
	s.after(100*time.Millisecond, o)
	written = nil
	o.Message, o.Culprit = "available 1 GiB, threshold 2 GiB; stalled 20 %, threshold 15 %; not known who took it", probes.Culprit{IsTold: true}
	for range 10 {
		s.after(time.Second, o)
	}
	if len(written) != 1 || !strings.Contains(written[0], "not known who took it") {
		t.Errorf("written: %q", written)
	}
	o = sample(probes.MemoryPressure, "near")
	written = nil
	s.after(2*time.Minute, o)
	if len(written) == 0 || !strings.Contains(written[0], ": available 1 GiB; not known who took it; clears") {
		t.Errorf("while it recovers: %q", written)
	}
}

// A culprit changes no level: with it and without it the same taints follow.
func TestCulpritDecidesNothing(t *testing.T) {
	plain, told := newSim(config.Default().Policy()), newSim(config.Default().Policy())
	for _, s := range []*sim{plain, told} {
		seenAll(s)
	}
	for i := range 200 {
		o := sample(probes.MemoryPressure, []string{"bad", "bad", "ok", "near", "bad"}[i/7%5])
		plain.after(3*time.Second, o)
		if o.Level > probes.OK {
			o.Culprit = probes.Culprit{Kind: "pod", Name: fmt.Sprint(i), Took: 1}
		}
		told.after(3*time.Second, o)
		if plain.state.Level(o.Condition) != told.state.Level(o.Condition) || !taints.Equal(plain.read.Taints, told.read.Taints) {
			t.Fatalf("sample %d: %v with %v, %v with %v", i, plain.state.Level(o.Condition), plain.read.Taints, told.state.Level(o.Condition), told.read.Taints)
		}
	}
}
