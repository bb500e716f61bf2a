package taints

import "slices"

// Plan returns the taints that a Node should carry next. Only owned pairs are replaced or removed;
// every other taint keeps its place, value and time. Wanted taints that are missing are added at
// the end. A wanted pair that is present without being owned belongs to another program, and stays
// that program's.
//
// nowOwned are the pairs that are ours once next is on the Node, in the order of want. lost are the
// owned and wanted pairs that another client removed from the Node.
func Plan(current []Taint, owned []Pair, want []Taint) (next []Taint, nowOwned, lost []Pair) {
	next = make([]Taint, 0, len(current)+len(want))
	for _, taint := range current {
		pair := taint.Pair()
		if !slices.Contains(owned, pair) {
			next = append(next, taint)
			continue
		}
		if i := index(want, pair); i >= 0 {
			taint.Value = want[i].Value
			next = append(next, taint)
		}
	}
	for _, taint := range want {
		pair := taint.Pair()
		isOwned := slices.Contains(owned, pair)
		if index(current, pair) < 0 {
			next = append(next, taint)
			nowOwned = append(nowOwned, pair)
			if isOwned {
				lost = append(lost, pair)
			}
		} else if isOwned {
			nowOwned = append(nowOwned, pair)
		}
	}
	return next, nowOwned, lost
}

// Equal reports whether two lists hold the same taints, values and times in
// the same order.
func Equal(a, b []Taint) bool {
	return slices.EqualFunc(a, b, func(x, y Taint) bool {
		return x.Pair() == y.Pair() && x.Value == y.Value && x.TimeAdded.Equal(y.TimeAdded)
	})
}

func index(list []Taint, p Pair) int {
	return slices.IndexFunc(list, func(t Taint) bool { return t.Pair() == p })
}
