package fleet

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/pace"
)

const (
	// notePatience and askPatience bound the API server's answers within a round, about Leases alone and about
	// Nodes. Leases have less time, because the host publishes its suspicion only afterwards.
	notePatience = time.Second
	askPatience  = 2 * time.Second
	// askSoonest and askLatest bound the pause after Standings without an answer,
	// ±10 %. It is twice as long each time: in a great incident every host asks, and
	// each question is up to 20 requests.
	askSoonest = 5 * time.Second
	askLatest  = time.Minute
	// readAtOnce Nodes or Leases are read at a time: twelve of the largest are more than an agent's memory.
	readAtOnce = 4
)

// errNotNow says that the API server is being asked, or did not answer a short time ago.
var errNotNow = errors.New("the API server is not asked now")

// Consult takes in the verdict on a round, asks the API server what it needs, and returns the
// Standings; nil: none are asked for, or there was no answer. A host whose note of Leases fails waits
// longer.
//
// This is asked between a round and its sample. An answer before the next round would come 2 to 4 s
// later.
func (f *Fleet) Consult(ctx context.Context, news *verdict.Verdict) (standings []verdict.Standing) {
	if f.options.Source != nil {
		f.options.Source.ObserveWay(news.Round.Outcome(verdict.Route) == verdict.Failed, news.Round.Results[verdict.API].Elsewhere)
		standings, _ = f.Standings(ctx, news.Ask, news.Leases)
	}
	f.take(news) // may have the list read, which the question needs too
	return standings
}

// each reads something of each Node, of some at the same time.
func each(nodes []string, read func(i int, node string) error) error {
	var group errgroup.Group
	group.SetLimit(readAtOnce)
	for i, node := range nodes {
		group.Go(func() error { return read(i, node) })
	}
	return group.Wait()
}

// Standings reads the states of the Nodes from the API server, and the Leases of the noted ones;
// without Nodes, the Leases alone. After an error nothing is known.
func (f *Fleet) Standings(ctx context.Context, nodes, noted []string) (standings []verdict.Standing, err error) {
	if len(nodes) == 0 {
		return f.leases(ctx, noted), nil
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	if !f.reading.TryLock() {
		return nil, errNotNow
	}
	defer f.reading.Unlock()
	if time.Now().Before(f.askDue) {
		return nil, errNotNow
	}
	if err = f.freshPeers(ctx); err == nil {
		standings, err = f.standings(ctx, nodes[:min(MaxPeers, len(nodes))], noted)
	}
	if err != nil {
		f.askPause = min(max(askSoonest, 2*f.askPause), askLatest)
		f.askDue = time.Now().Add(pace.Jittered(f.askPause))
		return nil, err
	}
	f.askPause = 0
	return standings, nil
}

// leases reads when the Leases of these Nodes were renewed; zero: it could not be read.
func (f *Fleet) leases(ctx context.Context, nodes []string) (found []verdict.Standing) {
	ctx, cancel := context.WithTimeout(ctx, notePatience)
	defer cancel()
	for _, name := range nodes[:min(MaxPeers, len(nodes))] {
		found = append(found, verdict.Standing{Node: name})
	}
	_ = each(nodes[:len(found)], func(i int, name string) (err error) {
		found[i].Renewed, err = f.options.Source.LeaseRenewed(ctx, name)
		return err
	})
	return found
}

// standings asks. A Node without a ready agent does not count. The caller holds reading.
func (f *Fleet) standings(ctx context.Context, nodes, noted []string) ([]verdict.Standing, error) {
	agents := f.agents.endpoints()
	f.mu.Lock()
	maintenance := f.maintenance
	f.mu.Unlock()
	found := make([]verdict.Standing, len(nodes))
	return found, each(nodes, func(i int, name string) error {
		node, err := f.options.Source.GetNode(ctx, name)
		if apierrors.IsNotFound(err) {
			found[i] = verdict.Standing{Node: name, Excuse: "does not exist"}
			return nil
		}
		if err != nil {
			return err
		}
		s := standingOf(node, maintenance)
		if s.Excuse == "" && !slices.ContainsFunc(agents, func(e endpoint) bool { return e.node == name }) {
			s.Excuse = "has no ready agent"
		}
		mayCount := s.Excuse == "" || s.Excuse == verdict.Cordoned || s.Excuse == verdict.Maintained
		if mayCount && !s.Suspects && slices.Contains(noted, name) {
			s.Renewed, _ = f.options.Source.LeaseRenewed(ctx, name) // it counts without, where others have none either
		}
		found[i] = s
		return nil
	})
}

// standingOf reads the state that a Node publishes. It ignores the condition's age, which would
// compare the clocks of two hosts. A Node without an agent is no longer an endpoint. A Node that
// suspects itself is alive. Its suspicion prevents taints of other Nodes even while it is cordoned
// or under maintenance.
func standingOf(node *taints.Node, maintenance []string) verdict.Standing {
	s := verdict.Standing{Node: node.Name}
	if c := node.Condition(decide.ConditionType(verdict.Condition)); c != nil {
		s.Suspects = c.Status == taints.ConditionTrue || c.Status == taints.ConditionUnknown && (verdict.IsSuspicion(c.Reason) || c.Reason == describe.ReasonBraked)
	}
	// Another program is about to remove the Node, or to reboot its host.
	leaving := []string{"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/rebooting", corev1.TaintNodeOutOfService}
	ready := node.Condition("Ready")
	switch {
	case ready == nil || ready.Status != taints.ConditionTrue:
		s.Excuse = "is not ready"
	case node.IsDeleted:
		s.Excuse = "is being deleted"
	case slices.ContainsFunc(node.Taints, func(t taints.Taint) bool { return slices.Contains(leaving, t.Key) }):
		s.Excuse = "is about to be removed or rebooted"
	case !s.Suspects && decide.MaintenanceOf(node, maintenance) != "":
		s.Excuse = verdict.Maintained
	case !s.Suspects && node.IsUnschedulable:
		s.Excuse = verdict.Cordoned
	}
	return s
}
