package soak

import (
	"reflect"
	"slices"
	"testing"
)

// A seed says when what happens; every kind happens, and nothing in the end.
func TestPlan(t *testing.T) {
	t.Parallel()
	perDay := map[string]float64{"often": 6, "seldom": 0.5, "never alone": 2}
	one := plan(1, 7, perDay)
	if !reflect.DeepEqual(one, plan(1, 7, perDay)) {
		t.Error("the same seed gives another plan")
	}
	if reflect.DeepEqual(one, plan(2, 7, perDay)) {
		t.Error("another seed gives the same plan")
	}
	counts := map[string]int{}
	for _, p := range one {
		counts[p.Kind]++
		if p.At < 0 || p.At >= quietFrom {
			t.Errorf("%s at %g", p.Kind, p.At)
		}
	}
	if want := map[string]int{"often": 42, "seldom": 3, "never alone": 14}; !reflect.DeepEqual(counts, want) {
		t.Errorf("%v, want %v", counts, want)
	}
	if !slices.IsSortedFunc(one, func(a, b plannedAt) int {
		if a.At < b.At {
			return -1
		}
		return 1
	}) {
		t.Error("not in the order of time")
	}
	if short := plan(1, 0.1, perDay); len(short) != 3 {
		t.Errorf("a short run has %d incidents, want one of each kind", len(short))
	}
}

// The last tenth, which is judged, has no incidents.
func TestTheLastTenthIsQuiet(t *testing.T) {
	t.Parallel()
	if quietFrom >= 0.9 {
		t.Errorf("incidents until %g", quietFrom)
	}
}
