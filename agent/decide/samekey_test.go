package decide_test

import (
	"reflect"
	"slices"
	"testing"
)

// Worlds with the same key go on alike: after each event they have the same key again, and
// the judge says the same of them. A reboot is left out: after it, times count from when the
// record was written, which the key does not have. So the enumeration takes worlds for the same
// that differ in that alone.
func TestSameKeySameFuture(t *testing.T) {
	pairs, differ := 0, 0
	for _, a := range alphabets() {
		for _, begin := range starts()[:quick(10)] {
			memo := newMemo()
			k := &keyer{plans: map[reflect.Type][]how{}, isStale: true, isLate: true}
			known := map[uint64]*world{}
			paths := map[*world][]string{}
			frontier := []*world{begin.begin(t, memo)}
			for range 2 {
				var next []*world
				for _, from := range frontier {
					for _, event := range a.events {
						w := from.clone()
						if !w.happens(event) {
							continue
						}
						key := k.key(w)
						paths[w] = append(slices.Clone(paths[from]), event)
						twin, found := known[key]
						if !found {
							known[key] = w
							next = append(next, w)
							continue
						}
						if pairs++; pairs%5 != 0 {
							continue
						}
						for _, event := range a.events {
							if event == "reboot" {
								continue
							}
							x, y := twin.clone(), w.clone()
							one, other := x.happens(event), y.happens(event)
							if one != other || one && (k.key(x) != k.key(y) || x.judge.verdict != y.judge.verdict) {
								if differ++; differ < 10 {
									t.Errorf("%s, from %s: %q and %q are the same, and not with %q", a.name, begin.name, paths[twin], paths[w], event)
								}
							}
						}
					}
				}
				frontier = next
			}
		}
	}
	t.Logf("%d pairs, %d differ", pairs, differ)
}
