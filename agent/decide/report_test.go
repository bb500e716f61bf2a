package decide_test

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// told is a host whose memory has that level, with all of it told on the Node, and
// whose agent is restarted a minute after the heartbeat.
func told(t *testing.T, symbol string, cfg *decide.Policy) *sim {
	t.Helper()
	s := newSim(cfg)
	seenAll(s)
	for range 20 {
		s.after(10*time.Second, sample(probes.MemoryPressure, symbol))
	}
	s.step(decide.Inputs{Refresh: true})
	s.edit(func(n *taints.Node) {
		for i := range n.Conditions {
			n.Conditions[i].LastHeartbeatTime = s.now
		}
	})
	s.after(time.Minute)
	s.restart(false, 0)
	return s
}

// begin has all probes take their first sample of a restarted agent, and returns what
// was written: the Node, and its conditions.
func begin(s *sim, symbol string, severity int) (node, conditions int) {
	s.onWrite = func(s *sim, c taints.Desired) {
		if _, differs := c.Differs(s.read.Node); differs {
			node++
		}
		if len(c.Conditions) > 0 {
			conditions++
		}
	}
	for _, name := range names() {
		o := sample(name, "ok")
		if name == probes.MemoryPressure {
			o = sample(name, symbol)
		}
		o.Severity, o.Message = severity, "another value"
		s.after(time.Second, o)
	}
	return node, conditions
}

// A restarted agent takes the record over, and does not write conditions that say
// what it would write. Their heartbeat and their news go on.
func TestRestartWritesOnce(t *testing.T) {
	for _, symbol := range []string{"ok", "bad"} {
		s := told(t, symbol, config.Default().Policy())
		before := s.read.Clone()
		if node, conditions := begin(s, symbol, 60); node > 1 || conditions > 0 || symbol == "bad" && node != 1 {
			t.Errorf("%s: the Node was written %d times, its conditions %d times", symbol, node, conditions)
		}
		if !taints.Equal(before.Taints, s.read.Taints) {
			t.Errorf("%s: taints became %v", symbol, s.read.Taints)
		}
		written := 0
		s.onWrite = func(_ *sim, c taints.Desired) { written += len(c.Conditions) }
		if o := sample(probes.MemoryPressure, symbol); symbol == "bad" {
			for late, want := range map[time.Duration]int{20 * time.Second: 0, 80 * time.Second: len(names()) + 1} {
				twin := s.fork()
				o.Message, written = "a third value", 0
				twin.after(late, o)
				if written != want {
					t.Errorf("a third value %s later: %d conditions are written, want %d", late, written, want)
				}
			}
		}
		written = 0
		s.step(decide.Inputs{Refresh: true})
		if written != len(names())+1 { // and HostRepairNeeded
			t.Errorf("%s: a heartbeat wrote %d conditions", symbol, written)
		}
	}
}

// What differs from what stands on the Node is written at the start, and so is what is
// due, or of which it is not known when it was written.
func TestRestartWritesWhatDiffers(t *testing.T) {
	edit := func(change func(*taints.NodeCondition)) func(*sim) {
		return func(s *sim) {
			s.edit(func(n *taints.Node) { change(n.Condition(decide.ConditionType(probes.MemoryPressure))) })
		}
	}
	at := func(after time.Duration) func(*sim) {
		return func(s *sim) {
			edit(func(c *taints.NodeCondition) { c.LastHeartbeatTime = s.now.Add(after) })(s)
		}
	}
	for name, c := range map[string]struct {
		was, is string
		change  func(*sim)
	}{
		"bad since":           {"ok", "certain", nil},
		"good since":          {"bad", "ok", nil},
		"unknown since":       {"bad", "unknown", nil},
		"another status":      {"ok", "ok", edit(func(c *taints.NodeCondition) { c.Status = taints.ConditionUnknown })},
		"another reason":      {"bad", "bad", edit(func(c *taints.NodeCondition) { c.Reason = "Other" })},
		"another end":         {"bad", "bad", edit(func(c *taints.NodeCondition) { c.Message += "!" })},
		"no condition":        {"ok", "ok", edit(func(c *taints.NodeCondition) { c.Type = "Other" })},
		"heartbeat is due":    {"ok", "ok", at(-5 * time.Minute)},
		"in the future":       {"ok", "ok", at(time.Minute)},
		"no time":             {"ok", "ok", edit(func(c *taints.NodeCondition) { c.LastHeartbeatTime = time.Time{} })},
		"heartbeats are off":  {"ok", "ok", func(s *sim) { s.cfg.Heartbeat = 0 }},
		"the record is full":  {"bad", "bad", func(s *sim) { s.edit(func(n *taints.Node) { n.Annotations["big"] = string(make([]byte, 256<<10)) }) }},
		"another Node object": {"ok", "ok", func(s *sim) { s.edit(func(n *taints.Node) { n.UID, n.Conditions = "2", nil }) }},
	} {
		s := told(t, c.was, config.Default().Policy())
		if c.change != nil {
			c.change(s)
		}
		if _, conditions := begin(s, c.is, 60); conditions == 0 {
			t.Errorf("%s: the conditions are not written", name)
		}
	}
}

// The record says which configuration is in force. A change of it is one write, of the record
// alone.
func TestRecordSaysWhichConfigurationIsInForce(t *testing.T) {
	hashed := func(hash string) *decide.Policy {
		policy := config.Default().Policy()
		policy.Hash = hash
		return policy
	}
	s := told(t, "ok", hashed("oldest"))
	begin(s, "ok", 1)
	s.cfg = hashed("newest")
	nodes, conditions := 0, 0
	s.onWrite = func(s *sim, c taints.Desired) {
		nodes++
		conditions += len(c.Conditions)
	}
	for range 10 {
		s.after(time.Second, sample(probes.MemoryPressure, "ok"))
	}
	status, err := decide.ReadRecord(s.read.Node)
	if err != nil || status.Config != "newest" || nodes != 1 || conditions != 0 {
		t.Errorf("%v, configuration %q after %d writes with %d conditions", err, status.Config, nodes, conditions)
	}
}
