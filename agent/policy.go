package agent

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/node"
	"github.com/taintlet/taintlet/taints"
)

// policyAnswer is what is known of the admission policy.
type policyAnswer struct {
	isKnown, isPresent bool
	at                 time.Time
	// isAwaited: a decision waits for the next answer.
	isAwaited bool
	// loading is a newer answer, about a policy that may not be loaded yet.
	loading node.PolicyAnswer
}

const (
	// freshFor is how long an answer holds for a new stand-in.
	freshFor = time.Second
	// loadedWithin is how long API servers need to load a policy. They look each second
	// (policyRefreshInterval in k8s.io/apiserver/pkg/admission/plugin/policy/generic).
	loadedWithin = 3 * time.Second
)

// brings reports whether an answer is about a policy that is new. A lost taint waits for no
// policy to be loaded.
func (a policyAnswer) brings(next node.PolicyAnswer, version string) bool {
	isOther := next.Version != "" && next.Version != version
	return a.isKnown && next.IsPresent && (!a.isPresent || isOther && !a.isAwaited)
}

// isTooOld reports whether a decision needs a newer answer: a stand-in is desired now that
// was not before, and the policy may have been installed since; or a kept taint was lost,
// and it may have been removed.
func (a policyAnswer) isTooOld(before, next []decide.DesiredTaint, notices []decide.Notice, now time.Time) bool {
	switch {
	case !a.isKnown || now.Sub(a.at) <= freshFor:
		return false
	case a.isPresent:
		return slices.ContainsFunc(notices, func(n decide.Notice) bool { return n.Kind == decide.TaintLost && n.Via == taints.Kept })
	}
	return slices.ContainsFunc(next, func(p decide.DesiredTaint) bool {
		return p.Via == taints.StandIn && !slices.ContainsFunc(before, func(b decide.DesiredTaint) bool { return b.Pair == p.Pair })
	})
}
