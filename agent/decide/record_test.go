package decide_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// longestKeys returns a valid configuration whose rules have the longest keys
// and values, and a stand-in prefix of the longest kind.
func longestKeys(t *testing.T) *decide.Policy {
	t.Helper()
	cfg := config.Default()
	label := strings.Repeat("x", 62)
	prefix := strings.Join([]string{label, label, label, strings.Repeat("y", 63)}, ".")
	for i := range cfg.Rules {
		cfg.Rules[i].Taint = decide.Taint{
			Key:    prefix + "/" + string(rune('a'+i)) + strings.Repeat("z", 62),
			Value:  strings.Repeat("v", 63),
			Effect: taints.PreferNoSchedule,
		}
	}
	cfg.KeyPrefix = prefix
	if errs := cfg.Validate(); len(errs) > 0 {
		t.Fatal(errs)
	}
	return cfg.Policy()
}

// disputed makes everything happen that a record remembers: all conditions
// set, damped, all pairs contested, and again.
func disputed(s *sim) {
	s.facts.StandInPrefix = s.cfg.StandInPrefix
	s.now = s.now.Add(200 * 24 * time.Hour) // long numbers: up since half a year
	for range 5 {
		for _, c := range names() {
			for s.state.Level(c) == probes.OK {
				s.after(time.Second, sample(c, "certain critical"))
			}
		}
		for range 100 {
			for _, c := range names() {
				s.after(237*time.Millisecond, sample(c, "critical"))
			}
		}
		for range 3 {
			s.edit(func(n *taints.Node) { n.Taints = nil })
			s.after(20*time.Second, sample(probes.MemoryPressure, "critical"))
			largest(s)
		}
		for n := 0; n < 3000 && s.state.Level(probes.MemoryPressure) != probes.OK; n++ {
			for _, c := range names() {
				s.after(937*time.Millisecond, sample(c, "ok"))
			}
		}
		s.now = s.now.Add(61*time.Minute + 123456789)
	}
}

// largest remembers the longest record.
func largest(s *sim) {
	if text := s.read.Annotations[taints.RecordAnnotation]; len(text) > len(s.longest) {
		s.longest = text
	}
}

func TestRecordFitsItsFourKilobytes(t *testing.T) {
	all := withCritical(config.Default().Policy())
	for name, cfg := range map[string]*decide.Policy{"defaults": config.Default().Policy(), "longest keys": longestKeys(t), "built-in rules for Critical": all} {
		for _, policy := range []bool{true, false} {
			cfg.WriteBudget.Burst = 100 // so that every dispute is written
			s := newSim(cfg)
			s.boot.ID = "0f8fad5b-d9cb-469f-a165-70867728950e"
			s.state = decide.New(s.boot, "test")
			s.facts.KeepPolicy = policy
			isDisputed, isHeld := false, false
			s.onWrite = func(s *sim, c taints.Desired) {
				text := c.Annotations[taints.RecordAnnotation]
				if len(text) > len(s.longest) {
					s.longest = text
				}
				isDisputed = isDisputed || strings.Contains(text, "dispute") && strings.Contains(text, "owned")
				isHeld = isHeld || strings.Contains(text, "clearsAt") && strings.Contains(text, "heldBy")
			}
			disputed(s)
			t.Logf("%s, policy %t: the longest record has %d bytes", name, policy, len(s.longest))
			if len(s.longest) > 4096 {
				t.Errorf("%s: %d bytes: %s", name, len(s.longest), s.longest)
			}
			if !isDisputed || !isHeld {
				t.Errorf("%s: not the worst record: %s", name, s.longest)
			}
		}
	}
}

// unsigned is the record without who wrote it, when and as which revision, and
// without what it says to people.
func unsigned(s *sim) string {
	node := s.read.Clone()
	forge(node, "instance", "0")
	return recordedOf(node)
}

// TestRecordRoundTrip: what a restarted agent writes is, byte for byte, what is
// there, but for who wrote it and when; so is what the next decision makes of
// it.
func TestRecordRoundTrip(t *testing.T) {
	for seed := range uint64(quick(150)) {
		r := random(seed)
		s := past(settings(r), r)
		if seed%3 == 0 && len(s.read.Taints) > 0 { // a dispute as well
			for range 2 {
				s.edit(func(n *taints.Node) { n.Taints = nil })
				s.after(time.Second, sample(probes.MemoryPressure, "bad"))
			}
			for range 600 {
				s.after(time.Second, sample(probes.DiskPressure, "ok"))
			}
		}
		twin := s.fork()
		twin.restart(false, 0)
		twin.step(decide.Inputs{})
		a, b := unsigned(s), unsigned(twin)
		if a != b || twin.writes > s.writes+1 {
			t.Fatalf("seed %d: the restarted agent wrote\n%s\nover\n%s", seed, b, a)
		}
		for _, x := range []*sim{s, twin} {
			x.after(time.Second, sample(probes.PIDPressure, "certain"))
		}
		a, b = unsigned(s), unsigned(twin)
		if a != b {
			t.Fatalf("seed %d: the next record differs:\n%s\nrestarted:\n%s", seed, a, b)
		}
	}
}

// TestRecordToleratesUnknownFields: a later release of the same version may
// have added some; they are passed over and written away with the next write.
func TestRecordToleratesUnknownFields(t *testing.T) {
	s := newSim(config.Default().Policy())
	s.after(time.Second, sample(probes.MemoryPressure, "certain"))
	s.edit(func(n *taints.Node) {
		forge(n, "novelty", `{"a":[1,2,{"b":null}]}`)
		forge(n, "conditions", `{"MemoryPressure":{"level":"Degraded","penalty":1,"setAt":3601000000000,"mood":"bad"},"LunarPhase":{"level":"OK"}}`)
	})
	s.restart(false, 0)
	s.after(time.Second, sample(probes.MemoryPressure, "bad"))
	if s.state.Level(probes.MemoryPressure) != probes.Degraded || len(s.read.Taints) != 1 {
		t.Fatalf("level %s, taints %v", s.state.Level(probes.MemoryPressure), s.read.Taints)
	}
	for range 200 {
		s.after(time.Second, sample(probes.MemoryPressure, "ok"))
	}
	if len(s.read.Taints) != 0 {
		t.Errorf("not cleared: %v", s.read.Taints)
	}
}

// FuzzRecord: whatever somebody writes into the annotation, the agent neither
// panics nor removes what cannot be its own, it sets a taint, and its next
// start reads what it has written.
func FuzzRecord(f *testing.F) {
	s := newSim(withCritical(config.Default().Policy()))
	for _, c := range names() {
		s.after(time.Second, sample(c, "certain critical"))
	}
	f.Add(s.read.Annotations[taints.RecordAnnotation])
	s.facts.KeepPolicy = false
	s.edit(func(n *taints.Node) { n.Taints = nil })
	s.after(time.Second, sample(probes.MemoryPressure, "critical"))
	s.edit(func(n *taints.Node) { n.Taints = nil })
	s.after(time.Second, sample(probes.MemoryPressure, "critical"))
	f.Add(s.read.Annotations[taints.RecordAnnotation])
	for _, text := range []string{
		"", "{}", "null", "[]", `{"version":1}`, `{"version":2,"owned":7}`, `{"version":1,"revision":18446744073709551615}`,
		`{"version":1,"revision":9223372036854775808,"boot":"boot","at":9223372036854775807,"tokensAt":-9223372036854775808,"owned":["dedicated:NoSchedule","gpu:NoExecute"]}`,
		`{"version":1,"revision":1,"conditions":{"MemoryPressure":{"level":"Critical","penalty":1e308,"setAt":-9223372036854775808,"dispute":{"Critical":{"stage":255,"until":1,"lostAt":9223372036854775807}}}}}`,
	} {
		f.Add(text)
	}
	f.Fuzz(surviveRecord)
}

func surviveRecord(t *testing.T, text string) {
	s := newSim(withCritical(config.Default().Policy()))
	foreign := []taints.Taint{
		{Key: "dedicated", Value: "db", Effect: taints.NoSchedule},
		{Key: corev1.TaintNodeNotReady, Effect: taints.NoExecute},
		{Key: corev1.TaintNodeMemoryPressure, Effect: taints.PreferNoSchedule},
		{Key: "gpu", Effect: taints.NoExecute},
	}
	s.edit(func(n *taints.Node) {
		n.Taints = append([]taints.Taint(nil), foreign...)
		n.Annotations[taints.RecordAnnotation] = text
	})
	s.restart(false, 0)
	s.mustKeep(t, foreign)
	symbols := []string{"unknown", "critical", "ok", "near", "bad", "certain"}
	for i := range 60 {
		s.after(5*time.Second, sample(names()[i%4], symbols[i%len(symbols)]))
	}
	for range 5 {
		s.after(5*time.Second, sample(probes.MemoryPressure, "bad"))
	}
	var newer struct{ Version int }
	if err := json.Unmarshal([]byte(text), &newer); err == nil && newer.Version > 1 {
		return // read-only: nothing may be expected
	}
	if s.state.Level(probes.MemoryPressure) < probes.Degraded {
		t.Fatal("bad samples set nothing any more")
	}
	s.restart(false, 0)
	s.step(decide.Inputs{})
	if s.state.Level(probes.MemoryPressure) < probes.Degraded {
		t.Fatalf("a restart forgot the level; the record is %s", s.read.Annotations[taints.RecordAnnotation])
	}
}

// mustKeep fails the test at a write after which the taints of others are not these.
func (s *sim) mustKeep(t *testing.T, foreign []taints.Taint) {
	s.onWrite = func(s *sim, d taints.Desired) {
		next, _ := d.Differs(s.read.Node)
		if kept := notOurs(s.cfg, next); !taints.Equal(kept, foreign) {
			t.Fatalf("foreign taints became %v", kept)
		}
	}
}

// notOurs returns the taints that this configuration cannot have made.
func notOurs(cfg *decide.Policy, list []taints.Taint) []taints.Taint {
	var foreign []taints.Taint
	for _, taint := range list {
		if !cfg.Produces(taint.Pair()) {
			foreign = append(foreign, taint)
		}
	}
	return foreign
}
