package decide_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/taints"
)

// meddle changes foreign taints as others do all day: add, remove, change
// value, turn around.
func meddle(n *taints.Node, r *rand.Rand, own func(taints.Pair) bool) {
	switch r.IntN(4) {
	case 0:
		taint := taints.Taint{
			Key:    fmt.Sprintf("example.com/f%d", r.IntN(6)),
			Value:  fmt.Sprint(r.IntN(3)),
			Effect: []taints.Effect{taints.NoSchedule, taints.NoExecute, taints.PreferNoSchedule}[r.IntN(3)],
		}
		if taint.Effect == taints.NoExecute {
			taint.TimeAdded = epoch().Add(time.Duration(r.IntN(1000)) * time.Second)
		}
		if !n.Has(taint.Pair()) {
			n.Taints = append(n.Taints, taint)
		}
	case 1:
		if i := anyOf(n.Taints, r); i >= 0 && !own(n.Taints[i].Pair()) {
			n.Taints = append(n.Taints[:i], n.Taints[i+1:]...)
		}
	case 2:
		if i := anyOf(n.Taints, r); i >= 0 && !own(n.Taints[i].Pair()) {
			n.Taints[i].Value = fmt.Sprint(r.IntN(3))
		}
	case 3:
		r.Shuffle(len(n.Taints), func(i, j int) { n.Taints[i], n.Taints[j] = n.Taints[j], n.Taints[i] })
	}
}

func anyOf(list []taints.Taint, r *rand.Rand) int {
	if len(list) == 0 {
		return -1
	}
	return r.IntN(len(list))
}

// TestForeignTaintsStayAsTheyAre at every write, in order, value and time,
// whatever others and the levels do meanwhile.
func TestForeignTaintsStayAsTheyAre(t *testing.T) {
	writes, foreign := 0, 0
	for seed := range uint64(quick(60)) {
		r := random(seed)
		s := newSim(restless(settings(r)))
		s.onWrite = func(s *sim, c taints.Desired) {
			next, _ := c.Differs(s.read.Node)
			before, after := notOurs(s.cfg, s.read.Taints), notOurs(s.cfg, next)
			if !taints.Equal(before, after) {
				t.Fatalf("seed %d: foreign taints were %v, would be %v", seed, before, after)
			}
			foreign += len(before)
		}
		for range 600 {
			s.edit(func(n *taints.Node) { meddle(n, r, s.cfg.Produces) })
			if r.IntN(50) == 0 {
				s.facts.KeepPolicy = !s.facts.KeepPolicy
			}
			s.after(20*time.Second, sample(names()[r.IntN(4)], anySample(r)))
		}
		writes += s.writes
	}
	t.Logf("%d writes beside %d foreign taints", writes, foreign)
}

// TestOnlyOwnPairsAreRemoved: others put pairs that a rule could make on the
// Node before taintlet wants them. Those of them that are not kept stay.
func TestOnlyOwnPairsAreRemoved(t *testing.T) {
	for seed := range uint64(quick(60)) {
		r := random(seed)
		cfg := restless(config.Default().Policy())
		for i, effect := range []taints.Effect{taints.NoSchedule, taints.PreferNoSchedule, taints.NoSchedule} {
			cfg.Rules[i].Taint = decide.Taint{Key: fmt.Sprintf("example.com/r%d", i), Effect: effect}
		}
		s := newSim(cfg)
		theirs := map[taints.Pair]bool{}
		s.onWrite = func(s *sim, c taints.Desired) {
			next, _ := c.Differs(s.read.Node)
			for pair := range theirs {
				if s.read.Has(pair) && !(&taints.Node{Taints: next}).Has(pair) {
					t.Fatalf("seed %d: removed %s, which others put there", seed, pair)
				}
			}
		}
		for range 400 {
			pair := cfg.Rules[r.IntN(3)].Taint.Pair()
			s.edit(func(n *taints.Node) {
				switch has := n.Has(pair); {
				case !has && r.IntN(3) == 0 && !wants(s, pair):
					n.Taints = append(n.Taints, taints.Taint{Key: pair.Key, Value: "theirs", Effect: pair.Effect})
					theirs[pair] = true
				case has && theirs[pair] && r.IntN(3) == 0 && !wants(s, pair):
					n.Taints, _, _ = taints.Plan(n.Taints, []taints.Pair{pair}, nil)
					delete(theirs, pair)
				}
			})
			s.after(20*time.Second, sample(names()[r.IntN(4)], anySample(r)))
			if r.IntN(40) == 0 {
				s.restart(false, 0)
			}
		}
	}
}

func wants(s *sim, p taints.Pair) bool {
	for _, placed := range s.state.DesiredTaints() {
		if placed.Pair == p {
			return true
		}
	}
	return false
}

// TestAskedAgainTheAnswerIsTheSame: until what is desired has landed, Step gives
// the same answer, and asking moves no level and takes no token.
func TestAskedAgainTheAnswerIsTheSame(t *testing.T) {
	asked := 0
	for seed := range uint64(quick(40)) {
		r := random(seed)
		s := newSim(settings(r))
		s.onWrite = func(s *sim, c taints.Desired) {
			state := s.state
			tokens := state.NextToken(s.cfg, s.now)
			if wait := tokens.Sub(s.now); wait > 0 && wait <= time.Minute {
				return // a token comes while it is asked
			}
			for _, wait := range []time.Duration{0, 0, time.Second, time.Minute} {
				var d decide.Decision
				state, d = decide.Step(s.cfg, state, decide.Inputs{Node: s.read, Facts: s.facts, Slot: decide.SlotHeld}, s.now.Add(wait))
				asked++
				if d.Desired == nil || !reflect.DeepEqual(*d.Desired, c) {
					t.Fatalf("seed %d: asked again after %s:\n%+v\nfirst:\n%+v", seed, wait, d.Desired, c)
				}
				if len(d.Notices) > 0 {
					t.Fatalf("seed %d: asked again, told again: %v", seed, d.Notices)
				}
			}
			if again := state.NextToken(s.cfg, s.now); !again.Equal(tokens) {
				t.Fatalf("seed %d: asking again took a token", seed)
			}
		}
		for range 600 {
			s.edit(func(n *taints.Node) {
				if r.IntN(20) == 0 {
					n.Taints = nil
				}
				if r.IntN(20) == 0 {
					n.Annotations[taints.HeldAnnotation] = "others"
				}
			})
			s.after(20*time.Second, sample(names()[r.IntN(4)], anySample(r)))
		}
	}
	t.Logf("asked %d times", asked)
}
