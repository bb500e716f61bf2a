package decide_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// The write bound. In t hours a bucket gives out at most M = burst + t/interval tokens: by
// default 3 + 1.5t to each of C conditions, for clears and steps up to Critical, and U =
// 6 + 6t to the Node, for repairs and ends of pauses.
//
//   - Level changes. A set follows a clear or is the first of its condition, a
//     step down from Critical follows a step up. So at most 2·M + 1 of each condition.
//   - Node writes. Each write carries a change of level, or a repair (one token, one
//     write), or a step of a dispute. A veto needs a step up to Critical before it in the
//     same episode: at most one more for each token. A contest ends with the clear of its
//     condition, which took a token, and one of each rule may be under way at the start.
//     The end of a person's pause takes a token; a taint removed during the pause is noted,
//     and set again at its end: two writes. So does the end of mode Observe, whose
//     begin removes the taints. Taking over from an agent that fell silent is one write
//     in three heartbeats at most, and so below all else. A policy that fails is
//     used once a day: one write sets the own keys of all rules, and one the kept
//     pairs a day later. A set that waits for a sample after a silence of the API server
//     is two writes, of a level whose counterpart cost a token. So at most 3·(C·M + U) + C + R + 2·(1 + t/24) with R rules,
//     whatever others do to the Node.
//
// Not bounded by us: new Node objects, starts of the agent, and changes of
// configuration. Each is one write. So is a change of the policy, and one more if
// it fails then.

func tokensIn(b decide.WriteBudget, t time.Duration) int {
	return b.Burst + int(t/b.Interval.Duration)
}

func levelBound(b decide.WriteBudget, t time.Duration, conditions int) int {
	return conditions * (2*tokensIn(b, t) + 1)
}

func writeBound(cfg *decide.Policy, t time.Duration) int {
	tokens := 4*tokensIn(cfg.WriteBudget, t) + tokensIn(cfg.Upkeep, t)
	return 3*tokens + 4 + len(cfg.Rules) + 2*(1+int(t/(24*time.Hour)))
}

// In an hour, four conditions change the taints of a Node at most 36 times, each 9 times.
func TestChangesInAnHour(t *testing.T) {
	budget := config.Default().Policy().WriteBudget
	if one, all := levelBound(budget, time.Hour, 1), levelBound(budget, time.Hour, 4); one > 11 || all > 40 {
		t.Errorf("%d changes of one condition, %d of four", one, all)
	}
}

// restless makes everything fast that the bucket has to bound alone.
func restless(cfg *decide.Policy) *decide.Policy {
	return eachDebounce(cfg, func(d *decide.Debounce) {
		d.ClearAfter.Duration, d.MaxClearAfter.Duration, d.CriticalAfter.Duration = 0, 0, 0
	})
}

// hostile is the sample that makes most trouble now.
func hostile(level probes.Level, critical bool, r *rand.Rand) string {
	switch {
	case level == probes.OK && critical:
		return "certain critical"
	case level == probes.OK:
		return "certain"
	case level == probes.Degraded && critical && r.IntN(2) == 0:
		return "critical"
	}
	return "ok"
}

func anySample(r *rand.Rand) string {
	return []string{"ok", "ok", "near", "bad", "certain", "critical", "certain critical", "unknown"}[r.IntN(8)]
}

func TestLevelChangesAreBounded(t *testing.T) {
	worst := map[string]int{}
	for seed := range uint64(quick(20)) {
		for _, critical := range []bool{false, true} {
			for _, fast := range []bool{false, true} {
				for _, wicked := range []bool{false, true} {
					cfg := config.Default().Policy()
					if critical {
						withCritical(cfg)
					}
					if fast {
						restless(cfg)
					}
					name := fmt.Sprintf("critical=%t fast=%t adversary=%t", critical, fast, wicked)
					worst[name] = max(worst[name], hostileRun(t, name, cfg, wicked, critical, random(seed)))
				}
			}
		}
	}
	t.Logf("most level changes in 8 h, bound %d: %v", levelBound(config.Default().Policy().WriteBudget, 8*time.Hour, 4), worst)
}

// hostileRun checks the bound at every change of 8 hours.
func hostileRun(t *testing.T, name string, cfg *decide.Policy, wicked, critical bool, r *rand.Rand) int {
	t.Helper()
	s := newSim(cfg)
	begin := s.now
	step := time.Duration(1+r.IntN(20)) * time.Second
	s.step(decide.Inputs{})
	for s.now.Sub(begin) < 8*time.Hour {
		s.now = s.now.Add(step)
		for _, c := range names() {
			symbol := anySample(r)
			if wicked {
				symbol = hostile(s.state.Level(c), critical, r)
			}
			s.observeOnly(sample(c, symbol))
		}
		if bound := levelBound(cfg.WriteBudget, s.now.Sub(begin), 4); len(s.events) > bound {
			t.Fatalf("%s: %d level changes in %s, more than %d", name, len(s.events), s.now.Sub(begin), bound)
		}
	}
	return len(s.events)
}

// observeOnly takes a step without a Node: levels move, nothing is written.
func (s *sim) observeOnly(o probes.Observation) {
	var d decide.Decision
	s.state, d = decide.Step(s.cfg, s.state, decide.Inputs{Observations: []probes.Observation{o}, Slot: decide.SlotHeld}, s.now)
	for _, n := range d.Notices {
		if n.Kind == decide.LevelChanged {
			s.events = append(s.events, event{s.now, n.Condition, n.From, n.To})
		}
	}
}

// TestLevelChangesAreBoundedInEverySequence walks all sequences of ten samples
// of four kinds, a minute apart, with a small bucket; then again with two
// conditions that are sampled at in turn.
func TestLevelChangesAreBoundedInEverySequence(t *testing.T) {
	depth := 10
	if testing.Short() {
		depth = 7
	}
	cfg := withCritical(restless(config.Default().Policy()))
	eachDebounce(cfg, func(d *decide.Debounce) {
		d.BadSamples, d.Samples = 1, 1
		d.ClearAfter.Duration, d.MaxClearAfter.Duration, d.CriticalAfter.Duration = time.Minute, 2*time.Minute, time.Minute
	})
	cfg.WriteBudget.Burst, cfg.WriteBudget.Interval.Duration = 1, 4*time.Minute
	for conditions := 1; conditions <= 2; conditions++ {
		samples := [2][4]decide.Inputs{}
		for c := range 2 {
			for i, symbol := range []string{"ok", "bad", "critical", "unknown"} {
				samples[c][i] = decide.Inputs{Observations: []probes.Observation{sample(names()[c], symbol)}, Slot: decide.SlotHeld}
			}
		}
		w := walk{cfg: cfg, samples: samples, conditions: conditions, depth: depth}
		w.from(newSim(cfg).state, 0, 0, 0)
		t.Logf("%d condition(s): %d sequences of %d samples, most level changes %d (bound %d)", conditions, w.ends, depth, w.worst, w.bound(depth))
		if w.exceeded != "" {
			t.Error(w.exceeded)
		}
	}
}

type walk struct {
	cfg         *decide.Policy
	samples     [2][4]decide.Inputs
	conditions  int
	depth       int
	ends, worst int
	exceeded    string
}

func (w *walk) bound(depth int) int {
	return levelBound(w.cfg.WriteBudget, time.Duration(depth)*time.Minute, w.conditions)
}

func (w *walk) from(s decide.State, depth, changes int, path int) {
	if bound := w.bound(depth); changes > bound && w.exceeded == "" {
		w.exceeded = fmt.Sprintf("sequence %s (base 4): %d changes in %d min, more than %d", strconv.FormatInt(int64(path), 4), changes, depth, bound)
	}
	w.worst = max(w.worst, changes)
	if depth == w.depth {
		w.ends++
		return
	}
	now := epoch().Add(time.Duration(depth+1) * time.Minute)
	for i := range w.samples[0] {
		in := w.samples[depth%w.conditions][i]
		next, d := decide.Step(w.cfg, s, in, now)
		n := changes
		for _, notice := range d.Notices {
			if notice.Kind == decide.LevelChanged {
				n++
			}
		}
		w.from(next, depth+1, n, path*4+i)
	}
}

// TestWritesAreBoundedAgainstAHostileCoWriter: others remove our taints,
// strip, forge and age the record every second or so, for hours.
func TestWritesAreBoundedAgainstAHostileCoWriter(t *testing.T) {
	const hours = 2
	for name, attack := range attacks() {
		for _, critical := range []bool{false, true} {
			cfg := config.Default().Policy()
			if critical {
				withCritical(cfg)
			}
			r := random(7)
			s := newSim(cfg)
			samples := make([]probes.Observation, 4)
			for range quick(hours * 3600) {
				for i, c := range names() {
					samples[i] = sample(c, hostile(s.state.Level(c), critical, r))
				}
				s.after(time.Second, samples...)
				s.edit(func(n *taints.Node) { attack(n, r) })
				s.step(decide.Inputs{})
			}
			bound := writeBound(cfg, hours*time.Hour)
			t.Logf("%s, critical=%t: %d writes in %d h, bound %d", name, critical, s.writes, hours, bound)
			if s.writes > bound {
				t.Errorf("%s, critical=%t: %d writes, more than %d", name, critical, s.writes, bound)
			}
		}
	}
}

func attacks() map[string]func(*taints.Node, *rand.Rand) {
	strip := func(n *taints.Node, _ *rand.Rand) { n.Taints = nil }
	old := ""
	all := map[string]func(*taints.Node, *rand.Rand){
		"takes the taints off":                   strip,
		"takes the taints off as the controller": func(n *taints.Node, _ *rand.Rand) { n.Taints, n.LastWriter = nil, "kube-controller-manager" },
		"takes kept taints off as the controller": func(n *taints.Node, _ *rand.Rand) {
			n.LastWriter = "kube-controller-manager"
			n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t taints.Taint) bool { return strings.HasPrefix(t.Key, "node.kubernetes.io/") })
		},
		"takes one taint off":      func(n *taints.Node, r *rand.Rand) { n.Taints = without(n.Taints, r) },
		"strips the record":        func(n *taints.Node, _ *rand.Rand) { delete(n.Annotations, taints.RecordAnnotation) },
		"writes nonsense":          func(n *taints.Node, _ *rand.Rand) { n.Annotations[taints.RecordAnnotation] = "nonsense" },
		"empties what is held":     func(n *taints.Node, _ *rand.Rand) { n.Annotations[taints.HeldAnnotation] = "" },
		"forges a higher revision": func(n *taints.Node, _ *rand.Rand) { forge(n, "revision", strconv.Itoa(1<<40)) },
		"forges any revision":      func(n *taints.Node, r *rand.Rand) { forge(n, "revision", strconv.FormatUint(r.Uint64(), 10)) },
		"forges the highest revision": func(n *taints.Node, _ *rand.Rand) {
			forge(n, "revision", strconv.FormatUint(1<<63-1, 10))
		},
		"claims to be another agent": func(n *taints.Node, r *rand.Rand) {
			forge(n, "instance", fmt.Sprintf(`{"name":"other","term":%d}`, r.Uint64()))
		},
		"pauses, takes the taints off and resumes": func(n *taints.Node, r *rand.Rand) {
			delete(n.Annotations, taints.PausedAnnotation)
			if r.IntN(2) == 0 {
				n.Annotations[taints.PausedAnnotation] = "true"
				n.Taints = nil
			}
		},
		"observes and enforces again": func(n *taints.Node, r *rand.Rand) {
			n.Annotations[taints.ModeAnnotation] = []string{"Observe", "Enforce"}[r.IntN(2)]
		},
		"forges that the policy fails": func(n *taints.Node, r *rand.Rand) {
			forge(n, "keep", fmt.Sprintf(`{"lost":"node.kubernetes.io/memory-pressure:NoSchedule","version":"%d","until":%d}`, r.IntN(2), r.Int64()))
		},
		"forges nothing owned": func(n *taints.Node, _ *rand.Rand) { forge(n, "owned", "[]") },
		"puts an old record back": func(n *taints.Node, r *rand.Rand) {
			if old == "" || r.IntN(100) == 0 {
				old = n.Annotations[taints.RecordAnnotation]
			}
			n.Annotations[taints.RecordAnnotation] = old
		},
	}
	names := []string{"pauses, takes the taints off and resumes", "takes one taint off", "strips the record", "forges any revision", "empties what is held", "forges nothing owned", "takes the taints off as the controller"}
	mixed := make([]func(*taints.Node, *rand.Rand), 0, len(names))
	for _, name := range names {
		mixed = append(mixed, all[name])
	}
	all["does all of it at random"] = func(n *taints.Node, r *rand.Rand) { mixed[r.IntN(len(mixed))](n, r) }
	return all
}

func without(list []taints.Taint, r *rand.Rand) []taints.Taint {
	if len(list) == 0 {
		return list
	}
	i := r.IntN(len(list))
	return append(append([]taints.Taint(nil), list[:i]...), list[i+1:]...)
}
