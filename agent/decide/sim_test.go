package decide_test

import (
	"encoding/json"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// sim is a decider and its Node without the scenarios' text: for millions of
// steps. A copy goes its own way.
type sim struct {
	cfg   *decide.Policy
	facts taints.Facts
	state decide.State
	boot  decide.Boot
	now   time.Time
	read  *decide.Node
	peers decide.Peers

	events  []event
	writes  int
	retold  int    // writes that only say to people what the conditions say
	longest string // the longest record, for tests that sample for it
	// watchFirst: the watch shows what was written before the writer says so.
	watchFirst bool
	// onWrite, when set, sees what is desired before it is written.
	onWrite func(s *sim, c taints.Desired)
	// onNotice, when set, sees every Notice.
	onNotice func(decide.Notice)
}

// event is a change of level.
type event struct {
	at        time.Time
	condition probes.Condition
	from, to  probes.Level
}

// rises reports whether more is asked for than before.
func (e event) rises() bool { return e.to > e.from }

// clears reports whether the condition is OK now.
func (e event) clears() bool { return e.to == probes.OK }

func newSim(cfg *decide.Policy) *sim {
	s := &sim{
		cfg:   cfg,
		facts: taints.Facts{KeepPolicy: true, KeepVersion: "1", StandInPrefix: taints.DefaultStandInPrefix},
		now:   epoch(),
		boot:  decide.Boot{ID: "boot", At: epoch().Add(-time.Hour)},
		read:  decide.Read(&taints.Node{Name: "host", UID: "1"}),
	}
	s.state = decide.New(s.boot, "test")
	s.step(decide.Inputs{})
	return s
}

// fork returns a copy that shares nothing that changes.
func (s *sim) fork() *sim {
	twin := *s
	twin.events = append([]event(nil), s.events...)
	return &twin
}

// after moves on in time and samples.
func (s *sim) after(d time.Duration, samples ...probes.Observation) {
	s.now = s.now.Add(d)
	s.step(decide.Inputs{Observations: samples})
}

// step takes one step and writes what is desired at once.
func (s *sim) step(in decide.Inputs) {
	for range 10 {
		in.Node, in.Facts, in.Slot, in.Peers = s.read, s.facts, decide.SlotHeld, s.peers
		var d decide.Decision
		s.state, d = decide.Step(s.cfg, s.state, in, s.now)
		for _, n := range d.Notices {
			if s.onNotice != nil {
				s.onNotice(n)
			}
			if n.Kind == decide.LevelChanged {
				s.events = append(s.events, event{s.now, n.Condition, n.From, n.To})
			}
		}
		if d.Desired == nil {
			return
		}
		if s.onWrite != nil {
			s.onWrite(s, *d.Desired)
		}
		after := d.Desired.ApplyTo(s.read.Node)
		stamp(s.read.Node, after, d.Desired.Conditions, s.now)
		if _, differs := d.Desired.Differs(s.read.Node); differs {
			if onlyTells(s.read.Node, after) {
				s.retold++
			} else {
				s.writes++
			}
		}
		s.read = decide.Read(after)
		if s.watchFirst {
			s.state, _ = decide.Step(s.cfg, s.state, decide.Inputs{Node: s.read, Facts: s.facts, Slot: decide.SlotHeld}, s.now)
		}
		in = decide.Inputs{Written: true}
	}
	panic("the decider never settles")
}

// onlyTells reports whether two versions of a Node differ in nothing but what the
// record says to people, and in its revision.
func onlyTells(before, after *taints.Node) bool {
	return taints.Equal(before.Taints, after.Taints) &&
		before.Annotations[taints.HeldAnnotation] == after.Annotations[taints.HeldAnnotation] &&
		recordedOf(before) != "" && recordedOf(before) == recordedOf(after)
}

// recordedOf is the record without what it says to people, and without its revision.
func recordedOf(node *taints.Node) string {
	var whole map[string]any
	if json.Unmarshal([]byte(node.Annotations[taints.RecordAnnotation]), &whole) != nil {
		return ""
	}
	for _, field := range []string{"revision", "at", "time"} {
		delete(whole, field)
	}
	all, _ := whole["conditions"].(map[string]any)
	for _, one := range all {
		if c, ok := one.(map[string]any); ok {
			for _, field := range []string{"since", "clearsAt", "heldBy", "flaps", "faultSince", "removals", "removedBy", "removedAt"} {
				delete(c, field)
			}
		}
	}
	text, err := json.Marshal(whole)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// edit changes the Node as others might.
func (s *sim) edit(change func(*taints.Node)) {
	node := s.read.Clone()
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	change(node)
	s.read = decide.Read(node)
}

// restart makes a new process out of what is on the Node. In a new boot the
// clock of the process has been stepped by wall.
func (s *sim) restart(newBoot bool, wall time.Duration) {
	if newBoot {
		s.now = s.now.Add(wall)
		s.boot = decide.Boot{ID: s.boot.ID + "'", At: s.now.Add(-30 * time.Second)}
	} else { // the same boot, seen by a stepped clock
		s.now, s.boot.At = s.now.Add(wall), s.boot.At.Add(wall)
	}
	s.state = decide.New(s.boot, "test")
}

func sample(c probes.Condition, symbol string) probes.Observation {
	o, err := observation(c, symbol)
	if err != nil {
		panic(err)
	}
	return o
}

// withCritical adds the built-in rules for Critical, which a file may not.
func withCritical(cfg *decide.Policy) *decide.Policy {
	cfg.Rules = config.Default().Policy().BuiltInRules()
	cfg.EvictionInterval = 0
	return cfg
}

// eachDebounce changes the debounce of all conditions.
func eachDebounce(cfg *decide.Policy, change func(*decide.Debounce)) *decide.Policy {
	for i := range cfg.Conditions {
		change(&cfg.Conditions[i].Debounce)
	}
	return cfg
}

// names of the conditions of a host.
func names() []probes.Condition { return hostNames() }

var hostNames = sync.OnceValue(func() []probes.Condition { return config.Default().Names() })

// reread is the same configuration, read again.
func reread(policy *decide.Policy) *decide.Policy {
	again := *policy
	return &again
}

// memoryDebounce is the debounce of MemoryPressure.
func memoryDebounce(cfg *decide.Policy) decide.Debounce {
	memory, _ := cfg.Condition(probes.MemoryPressure)
	return memory.Debounce
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// quick scales the work of a search down under -short.
func quick(n int) int {
	if testing.Short() {
		return max(1, n/30)
	}
	return n
}

// forge replaces one field of the record on a Node.
func forge(n *taints.Node, field, value string) {
	var whole map[string]json.RawMessage
	if json.Unmarshal([]byte(n.Annotations[taints.RecordAnnotation]), &whole) != nil {
		return
	}
	whole[field] = json.RawMessage(value)
	text, err := json.Marshal(whole)
	if err != nil {
		panic(err)
	}
	n.Annotations[taints.RecordAnnotation] = string(text)
}
