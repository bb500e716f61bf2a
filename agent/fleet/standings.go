package fleet

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network"
	"github.com/taintlet/taintlet/taints"
)

// rereadAfter is how old the list of agents may be when Standings uses it.
const rereadAfter = 10 * time.Second

// Standings asks the API server what the Nodes say of themselves. A Node whose
// agent is no ready endpoint any more is excused. Those that do not exist are left
// out. No answer is guessed: an error says that nothing is known.
func (f *Fleet) Standings(ctx context.Context, nodes []string) ([]network.Standing, error) {
	if f.options.Source == nil {
		return nil, nil
	}
	f.reading.Lock()
	defer f.reading.Unlock()
	if time.Since(f.readAt) > rereadAfter {
		if err := f.refreshPeers(ctx); err != nil {
			return nil, err
		}
	}
	agents := f.agents.endpoints()
	var standings []network.Standing
	for _, name := range nodes[:min(MaxPeers, len(nodes))] {
		node, err := f.options.Source.GetNode(ctx, name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s := standingOf(node)
		s.Excused = s.Excused || !slices.ContainsFunc(agents, func(e endpoint) bool { return e.node == name })
		standings = append(standings, s)
	}
	return standings, nil
}

// leavingTaints say that somebody is about to remove the Node. Other drains make
// it unschedulable.
func leavingTaints() []string {
	return []string{"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", corev1.TaintNodeOutOfService}
}

// standingOf reads what a Node says of itself. The condition's age is not asked
// for: that would compare two hosts' clocks. When its agent is gone, it is no
// endpoint.
func standingOf(node *corev1.Node) network.Standing {
	s := network.Standing{Node: node.Name}
	ready := taints.Condition(node, corev1.NodeReady)
	s.Excused = ready == nil || ready.Status != corev1.ConditionTrue || node.Spec.Unschedulable || node.DeletionTimestamp != nil ||
		slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return slices.Contains(leavingTaints(), t.Key) })
	if c := taints.Condition(node, decide.ConditionType(probes.NetworkUnavailable)); c != nil {
		s.Suspects = c.Status == corev1.ConditionTrue || c.Status == corev1.ConditionUnknown && isSuspicion(c.Reason)
	}
	return s
}

// isSuspicion reports whether a condition that is Unknown for this reason says
// that its host suspects itself.
func isSuspicion(reason string) bool {
	return slices.Contains([]string{"PeersUnreachable", "ManySuspect", decide.ReasonBraked}, reason)
}
