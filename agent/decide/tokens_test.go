package decide_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// recovering is a host in the middle of a random history, with what each of its
// conditions says now.
type recovering struct {
	*sim
	says [4]string
}

// second takes one sample of each condition.
func (h *recovering) second() {
	for i, name := range names() {
		h.after(250*time.Millisecond, sample(name, h.says[i]))
	}
}

// history makes a host with a random budget, random damping, others who remove its
// taints, and a person who pauses and resumes.
func history(r *rand.Rand) *recovering {
	pick := func(from ...time.Duration) time.Duration { return from[r.IntN(len(from))] }
	policy := eachDebounce(withCritical(config.Default().Policy()), func(d *decide.Debounce) {
		d.ClearAfter.Duration = pick(5*time.Second, 30*time.Second, 2*time.Minute)
		d.MaxClearAfter.Duration = 10 * d.ClearAfter.Duration
		d.CriticalAfter.Duration = 0
	})
	policy.WriteBudget.Burst, policy.WriteBudget.Interval.Duration = 1+r.IntN(2), pick(time.Minute, 10*time.Minute, 40*time.Minute)
	policy.Upkeep = policy.WriteBudget
	h := &recovering{newSim(policy), [4]string{"ok", "ok", "ok", "ok"}}
	for range 60 + r.IntN(240) {
		if r.IntN(8) == 0 {
			h.says[r.IntN(4)] = []string{"ok", "ok", "ok", "bad", "critical", "unknown"}[r.IntN(6)]
		}
		if r.IntN(25) == 0 {
			h.edit(func(n *taints.Node) {
				switch r.IntN(3) {
				case 0:
					n.Annotations[taints.PausedAnnotation] = "true"
				case 1:
					delete(n.Annotations, taints.PausedAnnotation)
				default:
					n.Taints = nil
				}
			})
		}
		h.second()
	}
	for range 5 { // what has begun is known
		h.second()
	}
	return h
}

// clears lets the time go on, with all samples as they are, until the condition is OK.
func (h *recovering) clears(t *testing.T, name probes.Condition) time.Time {
	t.Helper()
	twin := &recovering{h.fork(), h.says}
	for end := h.now.Add(3 * time.Hour); twin.now.Before(end); {
		twin.second()
		if at := slices.IndexFunc(twin.events, func(e event) bool { return e.at.After(h.now) && e.condition == name && e.clears() }); at >= 0 {
			return twin.events[at].at
		}
	}
	t.Fatalf("%s does not clear", name)
	return time.Time{}
}

// What is announced as the end of a condition is the time at which Step clears it, if
// all samples go on as they are, to the next sample: in the metric, and by the minute on
// the Node. Nothing else that happens makes it later.
func TestItClearsWhenItIsAnnounced(t *testing.T) {
	const sampling = 2 * time.Second
	checked, waited := 0, 0
	for seed := range uint64(quick(160)) {
		h := history(random(seed))
		h.step(decide.Inputs{Refresh: true})
		for i, name := range names() {
			if h.says[i] != "ok" || h.state.Level(name) == probes.OK {
				continue
			}
			left, _ := h.state.TimeToClear(h.cfg, name, h.now)
			metric, shown, actual := h.now.Add(left), clearsOn(t, h.read.Node, name, h.now), h.clears(t, name)
			checked++
			if late := actual.Sub(metric); late < 0 || late > sampling {
				t.Errorf("seed %d: the metric announced %s for %s, it cleared %s later", seed, metric.Format(time.TimeOnly), name, late)
			}
			if late := actual.Sub(shown); late < -time.Minute || late > sampling {
				t.Errorf("seed %d: the Node announced %s for %s, it cleared %s later", seed, shown.Format(time.TimeOnly), name, late)
			}
			if actual.Sub(h.now) > 2*time.Minute {
				waited++
			}
		}
	}
	t.Logf("%d ends announced, %d of them more than 2 min ahead", checked, waited)
	if checked < quick(100) || waited < quick(40) {
		t.Error("the histories are too calm for this test")
	}
}

// clearsOn is when the Node says that a condition clears.
func clearsOn(t *testing.T, node *taints.Node, name probes.Condition, now time.Time) time.Time {
	t.Helper()
	message := node.Condition(decide.ConditionType(name)).Message
	_, rest, found := strings.Cut(message, "clears at ")
	at, err := time.Parse("15:04", strings.Split(rest+" ", " ")[0])
	if !found || err != nil {
		t.Fatalf("%s does not say when it clears: %s", name, message)
	}
	midnight := now.Truncate(24 * time.Hour)
	return midnight.Add(time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute)
}
