package decide

import (
	"cmp"
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

const (
	// controllerWithin is how soon after a set a removal by nobody knows whom is the
	// node-lifecycle-controller's: it deletes a taint in well under a second, and a person has
	// to see the taint first.
	controllerWithin = 2 * time.Second
	// keepAgainAfter is when a policy that failed is used again, unless it changes before.
	keepAgainAfter = 24 * time.Hour
)

// controllers are the field managers of the node-lifecycle-controller. It has the name of the
// program that it is a part of; those of k3s and MicroK8s are others.
func controllers() []string { return []string{"kube-controller-manager", "k3s", "kubelite"} }

// keepFailure is what a State knows of an admission policy that is there and lets the
// node-lifecycle-controller remove a kept pair: it has an error that its failurePolicy
// ignores. While that lasts, stand-ins take the place of the kept pairs of all conditions.
// Zero: it has not failed.
type keepFailure struct {
	// lost is the pair that was removed.
	lost taints.Pair
	// version is that of the policy.
	version string
	// until is when the policy is tried again.
	until time.Time
}

// followKeep forgets a failure when the policy has changed or has gone, and a day after it.
// Until then the policy counts as absent.
func (s *State) followKeep(t *turn) {
	if !t.in.Facts.KeepPolicy || s.keep.version != t.in.Facts.KeepVersion || !t.now.Before(s.keep.until) {
		s.keep = keepFailure{}
	}
	t.in.Facts.KeepPolicy = t.in.Facts.KeepPolicy && !s.IsKeepFailing() && heldFits(t)
}

// losesKept notes that the node-lifecycle-controller removed a pair that the policy was to
// keep, and reports whether it did. No person can end that by a removal, and no second try
// is made: the stand-in is what stays.
func (s *State) losesKept(t *turn, d DesiredTaint) bool {
	node, by := t.in.Node, t.in.Node.LastWriter
	isAsked := d.Via == taints.Kept && t.in.Facts.KeepPolicy && slices.Contains(taints.HeldKeys(node.Node), d.Pair.Key)
	isSoon := !s.ledger.setAt.IsZero() && t.in.NodeAt.Sub(s.ledger.setAt) <= controllerWithin && !s.pause.has(d.Condition)
	if !isAsked || !slices.Contains(controllers(), by) && (by != "" || !isSoon) {
		return false
	}
	t.notifyLost(d, cmp.Or(by, controllers()[0]), 1)
	if !s.IsKeepFailing() { // one write of the controller removes the pairs of several conditions
		s.keep = keepFailure{d.Pair, t.in.Facts.KeepVersion, t.now.Add(keepAgainAfter)}
		t.notify(Notice{Kind: KeepPolicyFails, Condition: d.Condition, Message: describe.KeepFails(d.Pair)})
	}
	return true
}

// IsKeepFailing reports whether the admission policy has failed and is not used.
func (s *State) IsKeepFailing() bool { return s.keep != keepFailure{} }

// KeepFails says that the admission policy fails, where that costs a condition its kept
// taint; empty: it does not.
func (s *State) KeepFails(policy *Policy, name probes.Condition) string {
	isKept := func(r Rule) bool {
		_, isReconciled := taints.LifecycleCondition(r.Taint.Pair())
		return isReconciled && r.Condition == name && r.Level <= s.Level(name)
	}
	if !s.IsKeepFailing() || !slices.ContainsFunc(policy.Rules, isKept) {
		return ""
	}
	return describe.KeepFails(s.keep.lost)
}
