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
)

const (
	// renewedWithin is the time within which a kubelet renews its Lease: it does so
	// every 10 s, or 4 % more.
	renewedWithin = 11 * time.Second
	// readAtOnce is how many Nodes or Leases are read at the same time. Each may be as
	// large as the API server stores, and twelve of those are more than an agent's memory.
	readAtOnce = 4
)

// errBusy says that the API server is being asked for something else, errPausing that
// it did not answer a short time ago.
var (
	errBusy    = errors.New("the lists of the fleet are being read")
	errPausing = errors.New("the API server did not answer in time; it is asked again in a moment")
)

// How long the API server may take for what the news of a round need. To note takes less of it:
// only then does this host tell the others that it suspects itself.
const (
	notePatience = time.Second
	askPatience  = 2 * time.Second
)

// Consult asks the API server what the news of a round need, and returns the Standings;
// nil: none are asked for, or there was no answer. A host whose note fails waits longer.
//
// This is asked between a round and its sample. An answer before the next round would
// come 2 to 4 s later.
func (f *Fleet) Consult(ctx context.Context, news *verdict.News) []verdict.Standing {
	if f.options.Way != nil {
		routed, known := news.Classes[verdict.Route]
		f.options.Way.ObserveWay(known && !routed, news.Elsewhere)
	}
	if len(news.Note) > 0 {
		noting, cancel := context.WithTimeout(ctx, notePatience)
		defer cancel()
		_ = f.Note(noting, news.Note)
	}
	if len(news.Ask) == 0 {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	standings, err := f.Standings(asking, news.Ask)
	if err != nil {
		return nil
	}
	return standings
}

// Note reads when the Nodes' Leases were renewed. A Lease that cannot be read is not
// noted.
func (f *Fleet) Note(ctx context.Context, nodes []string) error {
	if f.options.Source == nil {
		return nil
	}
	var group errgroup.Group
	group.SetLimit(readAtOnce)
	for _, name := range nodes[:min(MaxPeers, len(nodes))] {
		group.Go(func() error {
			renewed, err := f.options.Source.LeaseRenewed(ctx, name)
			f.mu.Lock()
			defer f.mu.Unlock()
			f.noted.take(name, renewed, err)
			return err
		})
	}
	return group.Wait()
}

// leaseOf reports whether a Node renews its Lease, if that is known: it was noted
// long enough ago. No clocks of different hosts are compared.
func (f *Fleet) leaseOf(ctx context.Context, name string) (renews, known bool) {
	f.mu.Lock()
	before, isNoted := f.noted.of(name)
	f.mu.Unlock()
	if !isNoted {
		return false, false
	}
	isOld := time.Since(before.at) >= renewedWithin
	renewed, err := f.options.Source.LeaseRenewed(ctx, name)
	switch {
	case err != nil || renewed.IsZero():
		return false, false
	case !renewed.Equal(before.renewed):
		return true, true
	}
	return false, isOld
}

// Standings asks the API server what the Nodes say of themselves. A Node whose
// agent is not a ready endpoint any more does not count. Those that do not exist are left
// out. No answer is guessed: an error says that nothing is known.
func (f *Fleet) Standings(ctx context.Context, nodes []string) ([]verdict.Standing, error) {
	if f.options.Source == nil {
		return nil, nil
	}
	if !f.reading.TryLock() {
		return nil, errBusy
	}
	defer f.reading.Unlock()
	if time.Now().Before(f.asking.due) {
		return nil, errPausing
	}
	standings, err := f.standings(ctx, nodes)
	f.asking.settle(err)
	return standings, err
}

// standings asks. The caller holds reading.
func (f *Fleet) standings(ctx context.Context, nodes []string) ([]verdict.Standing, error) {
	if err := f.freshPeers(ctx); err != nil {
		return nil, err
	}
	agents, maintenance := f.agents.endpoints(), f.maintenanceTypes()
	nodes = nodes[:min(MaxPeers, len(nodes))]
	found := make([]*verdict.Standing, len(nodes))
	var group errgroup.Group
	group.SetLimit(readAtOnce)
	for i, name := range nodes {
		group.Go(func() error {
			node, err := f.options.Source.GetNode(ctx, name)
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return err
			}
			s := standingOf(node, maintenance)
			if s.Excuse == "" && !slices.ContainsFunc(agents, func(e endpoint) bool { return e.node == name }) {
				s.Excuse = "has no ready agent"
			}
			if !s.Suspects && (s.Excuse == "" || s.Excuse == cordoned || s.Excuse == maintained) {
				f.addLease(ctx, &s)
			}
			found[i] = &s
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	standings := []verdict.Standing{}
	for _, s := range found {
		if s != nil {
			standings = append(standings, *s)
		}
	}
	return standings, nil
}

// addLease adds what the Node's Lease shows. What is known of it counts for the others too.
// If a cordoned Node renews its Lease, its host
// is there: it may be cordoned for days.
func (f *Fleet) addLease(ctx context.Context, s *verdict.Standing) {
	renews, known := f.leaseOf(ctx, s.Node)
	switch {
	case s.Excuse == maintained: // but whether Leases can be known still counts
	case known && renews:
		s.Excuse = ""
	case known:
		s.Excuse = "does not renew its Lease"
	}
	s.LeaseKnown = known
}

// cordoned is why a Node may not count: it is about to be drained, and its host to be
// switched off.
const cordoned = "is cordoned"

// maintained is why a Node does not count that is about to be drained or repaired.
const maintained = "is under maintenance"

// leavingTaints say that another program is about to remove the Node or to reboot its host.
// Other drains make it unschedulable.
func leavingTaints() []string {
	return []string{"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/rebooting", corev1.TaintNodeOutOfService}
}

// standingOf reads what a Node says of itself. The condition's age is not asked
// for: that would compare two hosts' clocks. When its agent is gone, it is not an
// endpoint any more.
func standingOf(node *taints.Node, maintenance []string) verdict.Standing {
	s := verdict.Standing{Node: node.Name}
	if c := node.Condition(decide.ConditionType(verdict.Condition)); c != nil {
		s.Suspects = c.Status == taints.ConditionTrue || c.Status == taints.ConditionUnknown && (verdict.IsSuspicion(c.Reason) || c.Reason == describe.ReasonBraked)
	}
	s.Excuse = excuseOf(node, s.Suspects, maintenance)
	return s
}

// excuseOf says why a Node does not count; empty: it does. A Node that suspects itself is
// known to be there: what it says excuses others, and neither its cordon nor its maintenance
// takes that away.
func excuseOf(node *taints.Node, suspects bool, maintenance []string) string {
	ready := node.Condition("Ready")
	switch {
	case ready == nil || ready.Status != taints.ConditionTrue:
		return "is not ready"
	case node.IsDeleted:
		return "is being deleted"
	case slices.ContainsFunc(node.Taints, func(t taints.Taint) bool { return slices.Contains(leavingTaints(), t.Key) }):
		return "is about to be removed or rebooted"
	case !suspects && decide.MaintenanceOf(node, maintenance) != "":
		return maintained
	case node.IsUnschedulable && !suspects:
		return cordoned
	}
	return ""
}
