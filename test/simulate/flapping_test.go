// Package simulate plays days of made-up hosts: one of ordinary life, on which no agent may
// taint, and the host that flaps in the documentation.
package simulate

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

const (
	// The host fails for that long at the end of each period. The first period begins
	// beside the samples, so that no failure does at the very moment of one.
	flapFor, flapPeriod, flapOffset = 10020 * time.Millisecond, 10 * time.Minute, 3 * time.Second
	flapUntil                       = 6 * time.Hour

	// The kubelet's eviction manager samples that often (monitoringInterval in
	// pkg/kubelet/kubelet.go), and clears that long after the last bad sample
	// (--eviction-pressure-transition-period).
	kubeletPeriod, kubeletTransition = 10 * time.Second, 5 * time.Minute
)

func flaps(at time.Duration) bool {
	return at >= flapOffset && (at-flapOffset)%flapPeriod >= flapPeriod-flapFor
}

// held counts the changes of a taint, and the time for which it is there.
type held struct {
	is      bool
	changes int
	since   time.Duration
	total   time.Duration
}

func (h *held) set(is bool, now time.Duration) {
	if is == h.is {
		return
	}
	if h.is {
		h.total += now - h.since
	}
	h.is, h.since = is, now
	h.changes++
}

func (h *held) String() string {
	changes := h.changes
	h.set(false, flapUntil) // so that the time until the end counts
	return fmt.Sprintf("%d changes, %.1f %% tainted", changes, 100*h.total.Seconds()/flapUntil.Seconds())
}

// byKubelet is what the kubelet's rule does with the host.
func byKubelet() (h held) {
	badAt := -kubeletTransition
	for now := time.Duration(0); now < flapUntil; now += kubeletPeriod {
		if flaps(now) {
			badAt = now
		}
		h.set(now-badAt < kubeletTransition, now)
	}
	return h
}

// byTaintlet is what the decider does with the host, with the default configuration. Each write
// lands at once. Samples come as often as the agent takes them near a threshold.
func byTaintlet() (h held) {
	cfg := config.Default()
	memory := cfg.Conditions[0]
	policy, boot := cfg.Policy(), decide.Boot{ID: "simulated", At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	state, node := decide.New(boot, "simulation"), decide.Read(&taints.Node{Name: "simulated", UID: "1", ResourceVersion: "1"})
	var step func(in decide.Inputs, now time.Duration)
	step = func(in decide.Inputs, now time.Duration) {
		in.Node, in.Facts = node, taints.Facts{KeepPolicy: true, StandInPrefix: cfg.KeyPrefix}
		var d decide.Decision
		if state, d = decide.Step(policy, state, in, boot.At.Add(now)); d.Desired != nil {
			node = decide.Read(d.Desired.ApplyTo(node.Node))
			h.set(len(node.Taints) > 0, now)
			step(decide.Inputs{Written: true}, now)
		}
	}
	const nearInterval = 4 // of its shortest intervals lie between two samples of what is decided
	for now := time.Duration(0); now < flapUntil; {
		o := probes.Observation{Condition: memory.Name, Level: probes.OK, Reason: "Simulated", Message: "simulated"}
		if flaps(now) {
			o.Level = probes.Degraded
		}
		step(decide.Inputs{Observations: []probes.Observation{o}}, now)
		next := min(memory.Common().Period.Duration, nearInterval*memory.Common().MinInterval)
		if o.Level == probes.Degraded && state.Level(memory.Name) == probes.OK {
			next = min(next, memory.Common().FollowUp)
		}
		now += next
	}
	return h
}

// The picture of the documentation shows what both rules do with a host that fails for 10 s
// every 10 minutes, for six hours. The pages quote the picture (figures.txt).
func TestFlappingHostOfTheDocumentation(t *testing.T) {
	picture, err := os.ReadFile("../../docs/images/flapping.svg")
	if err != nil {
		t.Fatal(err)
	}
	for rule, h := range map[string]held{"taintlet": byTaintlet(), "the kubelet": byKubelet()} {
		if text := h.String(); !strings.Contains(string(picture), text) {
			t.Errorf("by the rule of %s there are %s, which docs/images/flapping.svg does not have", rule, text)
		}
	}
}
