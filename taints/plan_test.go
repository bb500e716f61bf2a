package taints_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/taints"
)

// list reads "key=value:effect key:effect".
func list(text string) []taints.Taint {
	var out []taints.Taint
	for word := range strings.FieldsSeq(text) {
		identity, effect, _ := strings.Cut(word, ":")
		key, value, _ := strings.Cut(identity, "=")
		out = append(out, taints.Taint{Key: key, Value: value, Effect: taints.Effect(effect)})
	}
	return out
}

func pairs(text string) []taints.Pair {
	var out []taints.Pair
	for _, taint := range list(text) {
		out = append(out, taint.Pair())
	}
	return out
}

func TestPlan(t *testing.T) {
	for name, c := range map[string]struct {
		current, owned, want string
		next, nowOwned, lost string
	}{
		"add to nothing":                  {"", "", "a:NoSchedule", "a:NoSchedule", "a:NoSchedule", ""},
		"nothing to do":                   {"f:NoExecute a:NoSchedule", "a:NoSchedule", "a:NoSchedule", "f:NoExecute a:NoSchedule", "a:NoSchedule", ""},
		"add after foreign":               {"f:NoExecute g=1:NoSchedule", "", "a:NoSchedule", "f:NoExecute g=1:NoSchedule a:NoSchedule", "a:NoSchedule", ""},
		"remove ours from between":        {"f:NoExecute a:NoSchedule g:NoSchedule", "a:NoSchedule", "", "f:NoExecute g:NoSchedule", "", ""},
		"the last one goes":               {"a:NoSchedule", "a:NoSchedule", "", "", "", ""},
		"same key, other effect, foreign": {"a:NoExecute", "a:NoSchedule", "", "a:NoExecute", "", ""},
		"wanted but somebody else's":      {"a=x:NoSchedule", "", "a:NoSchedule", "a=x:NoSchedule", "", ""},
		"value changes in place":          {"a=1:NoSchedule f:NoExecute", "a:NoSchedule", "a=2:NoSchedule", "a=2:NoSchedule f:NoExecute", "a:NoSchedule", ""},
		"lost and set again":              {"f:NoExecute", "a:NoSchedule", "a:NoSchedule", "f:NoExecute a:NoSchedule", "a:NoSchedule", "a:NoSchedule"},
		"gone and not wanted":             {"f:NoExecute", "a:NoSchedule", "", "f:NoExecute", "", ""},
		"one via for another":             {"a:NoSchedule f:NoExecute", "a:NoSchedule", "b:NoSchedule", "f:NoExecute b:NoSchedule", "b:NoSchedule", ""},
	} {
		t.Run(name, func(t *testing.T) {
			next, nowOwned, lost := taints.Plan(list(c.current), pairs(c.owned), list(c.want))
			if !taints.Equal(next, list(c.next)) {
				t.Errorf("next = %v, want %s", next, c.next)
			}
			if !slices.Equal(nowOwned, pairs(c.nowOwned)) {
				t.Errorf("nowOwned = %v, want %s", nowOwned, c.nowOwned)
			}
			if !slices.Equal(lost, pairs(c.lost)) {
				t.Errorf("lost = %v, want %s", lost, c.lost)
			}
		})
	}
}

// Whatever is owned and wanted: what is not owned stays as it is, in order, and
// planning again changes nothing.
func TestPlanKeepsForeignTaintsAndIsIdempotent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a repeatable sequence
	keys := []string{"a", "b", "c", "d", "e"}
	pick := func() []taints.Taint {
		var out []taints.Taint
		for _, key := range keys {
			for _, effect := range []taints.Effect{taints.NoSchedule, taints.NoExecute} {
				if random.IntN(3) == 0 {
					added := time.Unix(random.Int64N(1e9), 0)
					out = append(out, taints.Taint{Key: key, Effect: effect, Value: keys[random.IntN(5)], TimeAdded: added})
				}
			}
		}
		random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		return out
	}
	for range 10_000 {
		current, want := pick(), pick()
		var owned []taints.Pair
		for _, taint := range pick() {
			owned = append(owned, taint.Pair())
		}
		foreign := func(l []taints.Taint) []taints.Taint {
			return slices.DeleteFunc(slices.Clone(l), func(t taints.Taint) bool {
				return slices.Contains(owned, t.Pair()) || !(&taints.Node{Taints: current}).Has(t.Pair())
			})
		}
		next, nowOwned, _ := taints.Plan(current, owned, want)
		if !taints.Equal(foreign(current), foreign(next)) {
			t.Fatalf("foreign taints changed: %v -> %v (owned %v)", current, next, owned)
		}
		again, ownedAgain, lost := taints.Plan(next, nowOwned, want)
		if !taints.Equal(again, next) || !slices.Equal(ownedAgain, nowOwned) || len(lost) > 0 {
			t.Fatalf("planning again changed %v to %v", next, again)
		}
	}
}

func TestResolve(t *testing.T) {
	cluster := func(policy bool) taints.Facts {
		return taints.Facts{KeepPolicy: policy, StandInPrefix: "taintlet.dev"}
	}
	for name, c := range map[string]struct {
		want  string
		facts taints.Facts
		via   taints.Via
		pair  string
	}{
		"well-known, policy":       {"node.kubernetes.io/memory-pressure:NoSchedule", cluster(true), taints.Kept, "node.kubernetes.io/memory-pressure:NoSchedule"},
		"well-known, no policy":    {"node.kubernetes.io/disk-pressure:NoSchedule", cluster(false), taints.StandIn, "taintlet.dev/disk-pressure:NoSchedule"},
		"NoExecute is nobody's":    {"node.kubernetes.io/memory-pressure:NoExecute", cluster(false), taints.Direct, "node.kubernetes.io/memory-pressure:NoExecute"},
		"PreferNoSchedule neither": {"node.kubernetes.io/memory-pressure:PreferNoSchedule", cluster(true), taints.Direct, "node.kubernetes.io/memory-pressure:PreferNoSchedule"},
		"other key":                {"example.com/tight:NoSchedule", cluster(true), taints.Direct, "example.com/tight:NoSchedule"},
	} {
		t.Run(name, func(t *testing.T) {
			via, pair := taints.Resolve(pairs(c.want)[0], c.facts)
			if via != c.via || pair != pairs(c.pair)[0] {
				t.Errorf("Resolve = %s %s", via, pair)
			}
		})
	}
}

func TestAStandInNeverEvicts(t *testing.T) {
	got := taints.StandInFor(pairs("node.kubernetes.io/memory-pressure:NoExecute")[0], "taintlet.dev")
	if got != pairs("taintlet.dev/memory-pressure:NoSchedule")[0] {
		t.Errorf("stand-in = %s", got)
	}
}
