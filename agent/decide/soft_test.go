package decide_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/taints"
)

// Two agents see the same, and one of them has an early taint for memory. All other conditions, with
// their taints, are the same at any time, and the changes of that taint are within the budget of its condition.
func TestSoftTaintsTakeNothingFromOtherConditions(t *testing.T) {
	t.Parallel()
	total := 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 26)) //nolint:gosec // a test is the same again
		plain, withSoft := newWorld(), newWorld()
		for _, w := range []*world{plain, withSoft} {
			if err := w.events("config critical memory; config clear-after 10s 10s; config budget 1 5m"); err != nil {
				t.Fatal(err)
			}
		}
		if err := withSoft.events("config soft memory 30 example.com/memory:PreferNoSchedule"); err != nil {
			t.Fatal(err)
		}
		wasThere, changes := false, 0
		for second := range 1500 {
			for _, event := range randomEvents(r, plain) {
				for _, w := range []*world{plain, withSoft} {
					w.now = time.Duration(second) * time.Second
					if err := w.events(event); err != nil {
						t.Fatalf("seed %d, %d s: %v", seed, second, err)
					}
				}
			}
			if now, want := ofOthers(withSoft), ofOthers(plain); !slices.Equal(now, want) {
				t.Fatalf("seed %d, %d s: %v, without the early taint %v\n%v", seed, second, now, want, withSoft.happened[max(0, len(withSoft.happened)-12):])
			}
			if isThere := withSoft.node.Has(softPair); isThere != wasThere {
				wasThere, changes = isThere, changes+1
			}
		}
		if most := 2*(1+1500/300) + 1; changes > most {
			t.Errorf("seed %d: %d changes of the early taint, its condition has tokens for %d", seed, changes, most)
		}
		total += changes
	}
	if total < 12*3 {
		t.Errorf("only %d changes of early taints", total)
	}
}

var softPair = taints.Pair{Key: "example.com/memory", Effect: taints.PreferNoSchedule}

// ofOthers are the levels and the taints of all conditions but memory.
func ofOthers(w *world) (all []string) {
	for _, c := range names()[1:] {
		all = append(all, w.state.Level(c).String())
	}
	for _, taint := range w.node.Taints {
		if !strings.Contains(taint.Key, "memory") {
			all = append(all, taint.String())
		}
	}
	slices.Sort(all)
	return all
}

// randomEvents are those of one second: a sample, and seldom what others do.
func randomEvents(r *rand.Rand, w *world) []string {
	c := short(names()[r.IntN(4)])
	events := []string{fmt.Sprintf("%s %s", c, []string{"ok", "ok", "ok", "severity 25", "severity 45", "bad", "critical", "unknown"}[r.IntN(8)])}
	if r.IntN(60) < 50 { // mostly what lasts
		events[0] = fmt.Sprintf("%s %s", c, []string{"ok", "severity 40", "ok", "bad"}[(int(w.now/time.Minute)/2+len(c))%4])
	}
	switch r.IntN(2000) {
	case 0:
		events = append(events, "restart")
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
