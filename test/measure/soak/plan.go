package soak

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// quietFrom is the part of a run from which on all is well.
const quietFrom = 0.87

// plannedAt is when one incident of a kind is due, as a part of the run.
type plannedAt struct {
	At   float64
	Kind string
}

// plan spreads incidents over a run until quietFrom: of each kind so many a day, at
// random times that a seed decides.
func plan(seed uint64, days float64, perDay map[string]float64) []plannedAt {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // not a secret
	var all []plannedAt
	kinds := make([]string, 0, len(perDay))
	for kind := range perDay {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		for range max(1, int(perDay[kind]*days)) {
			all = append(all, plannedAt{quietFrom * random.Float64(), kind})
		}
	}
	slices.SortFunc(all, func(a, b plannedAt) int { return cmp.Compare(a.At, b.At) })
	return all
}
