package taints

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Plan returns the taints that a Node should carry next. Only owned pairs are
// replaced or removed; every other taint keeps its place, value and time.
// Wanted taints that are missing are added at the end. A wanted pair that is
// there without being owned belongs to somebody else and stays theirs.
//
// nowOwned are the pairs that are ours once next is on the Node, in the order
// of want. lost are the owned and wanted pairs that somebody took off the Node.
func Plan(current []corev1.Taint, owned []Pair, want []corev1.Taint) (next []corev1.Taint, nowOwned, lost []Pair) {
	next = make([]corev1.Taint, 0, len(current)+len(want))
	for _, taint := range current {
		pair := PairOf(taint)
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
		pair := PairOf(taint)
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

// Has reports whether the list holds the pair.
func Has(list []corev1.Taint, p Pair) bool { return index(list, p) >= 0 }

// Equal reports whether two lists hold the same taints, values and times in
// the same order.
func Equal(a, b []corev1.Taint) bool {
	return slices.EqualFunc(a, b, func(x, y corev1.Taint) bool {
		return PairOf(x) == PairOf(y) && x.Value == y.Value && x.TimeAdded.Equal(y.TimeAdded)
	})
}

func index(list []corev1.Taint, p Pair) int {
	return slices.IndexFunc(list, func(t corev1.Taint) bool { return PairOf(t) == p })
}
