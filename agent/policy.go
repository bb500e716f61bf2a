package agent

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/taints"
)

// policyAnswer says whether the admission policy is there, once that is known.
type policyAnswer struct {
	isKnown, isPresent bool
	at                 time.Time
	// isAwaited: a stand-in waits for the next answer.
	isAwaited bool
}

// freshFor is how long the answer that there is no policy holds for a new
// stand-in.
const freshFor = time.Second

// isTooOld reports whether the policy may have been installed since the answer that it
// is absent.
func (a policyAnswer) isTooOld(now time.Time) bool {
	return a.isKnown && !a.isPresent && now.Sub(a.at) > freshFor
}

// standsInAnew reports whether a stand-in is desired now that was not before.
func standsInAnew(before, now []decide.DesiredTaint) bool {
	return slices.ContainsFunc(now, func(p decide.DesiredTaint) bool {
		return p.Via == taints.StandIn && !slices.ContainsFunc(before, func(b decide.DesiredTaint) bool { return b.Pair == p.Pair })
	})
}
