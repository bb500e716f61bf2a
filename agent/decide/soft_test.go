package decide_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// softPair is that of the soft rule of a condition in these tests.
func softPair(c probes.Condition) taints.Pair {
	return taints.Pair{Key: "example.com/" + short(c), Effect: taints.PreferNoSchedule}
}

// softly adds a soft rule for each condition.
func softly(w *world) {
	for _, c := range names() {
		pair := softPair(c)
		w.cfg.SoftRules = append(w.cfg.SoftRules, decide.SoftRule{Condition: c, Severity: 30, Taint: decide.Taint{Key: pair.Key, Effect: pair.Effect}})
	}
	w.policy = w.cfg.Policy()
	w.policy.Upkeep = w.policy.WriteBudget
}

// hard returns the taints of a Node that no soft rule asks for, and the others.
func hard(w *world) (hard, soft []string) {
	for _, taint := range w.node.Taints {
		if isSoft := slices.ContainsFunc(names(), func(c probes.Condition) bool { return softPair(c) == taint.Pair() }); isSoft {
			soft = append(soft, taint.String())
		} else {
			hard = append(hard, taint.String())
		}
	}
	slices.Sort(hard)
	return hard, soft
}

// Two agents see the same, and one of them has soft rules, whose taints others remove now
// and then. All levels, all other taints and all tokens are the same at any time: a soft taint
// takes no token of others and delays nothing. Its own changes are within its budget.
func TestSoftTaintsTakeNothingFromOthers(t *testing.T) {
	t.Parallel()
	changes, clears := 0, 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 26)) //nolint:gosec // a test is the same again
		plain, withSoft := newWorld(), newWorld()
		for _, w := range []*world{plain, withSoft} {
			if err := w.events("config critical memory; config clear-after 20s 1h; config budget 2 3m"); err != nil {
				t.Fatal(err)
			}
		}
		softly(withSoft)
		_, before := hard(withSoft)
		count := 0
		for second := range 1500 {
			for _, event := range randomEvents(r, plain) {
				for _, w := range []*world{plain, withSoft} {
					w.now = time.Duration(second) * time.Second
					if err := w.events(event); err != nil {
						t.Fatalf("seed %d, %d s: %v\n%v\n%v", seed, second, err, withSoft.happened[max(0, len(withSoft.happened)-12):], plain.happened[max(0, len(plain.happened)-12):])
					}
				}
			}
			if _, soft := hard(withSoft); len(soft) > 0 && r.IntN(300) == 0 {
				if err := withSoft.events("others remove " + soft[0]); err != nil {
					t.Fatal(err)
				}
				plain.step(decide.Inputs{})
				_, before = hard(withSoft)
			}
			now, soft := hard(withSoft)
			if want, _ := hard(plain); !slices.Equal(now, want) {
				t.Fatalf("seed %d, %d s: taints %v, without soft rules %v\n%v\n%v", seed, second, now, want, withSoft.happened[max(0, len(withSoft.happened)-12):], plain.happened[max(0, len(plain.happened)-12):])
			}
			for _, c := range names() {
				if got, want := withSoft.state.Level(c), plain.state.Level(c); got != want {
					t.Fatalf("seed %d, %d s: %s %s, without soft rules %s", seed, second, c, got, want)
				}
			}
			if got, want := withSoft.state.TokensLeft(withSoft.policy, withSoft.clock()), plain.state.TokensLeft(plain.policy, plain.clock()); got != want {
				t.Fatalf("seed %d, %d s: %d tokens, without soft rules %d", seed, second, got, want)
			}
			count += changed(before, soft)
			before = soft
		}
		// A removal by others is one write more, after which the taint waits for its token.
		if more, most := withSoft.writes()-plain.writes(), 2*(2+1500/180); more > most {
			t.Errorf("seed %d: soft taints took %d writes, the budget has %d", seed, more, most)
		}
		changes += count
		clears += withSoft.levels(probes.OK)
	}
	if changes < 12*5 || clears < 12*2 {
		t.Errorf("only %d changes of soft taints, %d clears", changes, clears)
	}
}

// levels returns how many changes to a level were told.
func (w *world) levels(to probes.Level) (n int) {
	for _, notice := range w.notices {
		if notice.Kind == decide.LevelChanged && notice.To == to {
			n++
		}
	}
	return n
}

// writes returns how many patches changed taints or the record.
func (w *world) writes() (n int) {
	for _, what := range w.happened {
		if strings.HasPrefix(what, "write") {
			n++
		}
	}
	return n
}

// changed returns how many taints are in one of the lists only.
func changed(before, after []string) (n int) {
	for _, lists := range [][2][]string{{before, after}, {after, before}} {
		for _, taint := range lists[0] {
			if !slices.Contains(lists[1], taint) {
				n++
			}
		}
	}
	return n
}

// randomEvents are those of one second: a sample, and seldom what others do.
func randomEvents(r *rand.Rand, w *world) []string {
	c := short(names()[r.IntN(4)])
	events := []string{fmt.Sprintf("%s %s", c, []string{"ok", "ok", "ok", "severity 25", "severity 45", "bad", "critical", "unknown"}[r.IntN(8)])}
	if r.IntN(60) < 50 { // mostly what lasts
		events[0] = fmt.Sprintf("%s %s", c, []string{"ok", "severity 40", "ok", "bad"}[(int(w.now/time.Minute)/2+len(c))%4])
	}
	hard, _ := hard(w)
	switch r.IntN(2000) {
	case 0:
		events = append(events, "restart")
	case 1:
		if len(hard) > 0 {
			events = []string{"others remove " + hard[0], events[0]} // before the sample clears it
		}
	case 2:
		events = append(events, "kubelet DrainInProgress True")
	case 3, 4:
		events = append(events, "kubelet DrainInProgress False")
	case 5:
		events = append(events, "slot none")
	case 6, 7:
		events = append(events, "slot held")
	}
	return events
}
