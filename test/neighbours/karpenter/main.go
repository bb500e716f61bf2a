// Command karpenter is Karpenter with its provider kwok, as its own command kwok is, with a
// clock that is ahead of the machine's by TAINTLET_CLOCK_AHEAD, such as 1h. Whatever Karpenter
// sees is older by that time. TAINTLET_REPAIR makes the provider list HostRepairNeeded, with
// that action: ReplaceNode or RebootNode.
package main

import (
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/node/health"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
)

// ahead is a clock that shows a later time.
type ahead struct {
	clock.RealClock
	by time.Duration
}

func (a ahead) Now() time.Time                        { return time.Now().Add(a.by) }
func (a ahead) Since(earlier time.Time) time.Duration { return a.Now().Sub(earlier) }

// repairing is a provider that also repairs a Node for HostRepairNeeded, if a route is lost.
type repairing struct {
	cloudprovider.CloudProvider
	action cloudprovider.RepairAction
}

func (r repairing) RepairPolicies() []cloudprovider.RepairPolicy {
	policies := r.CloudProvider.RepairPolicies()
	if r.action == "" {
		return policies
	}
	return append(policies, cloudprovider.RepairPolicy{
		ConditionType: "HostRepairNeeded", ConditionStatus: corev1.ConditionTrue, ReasonRegex: "^RouteLost$",
		TerminationGracePeriod: new(time.Duration), Action: r.action,
	})
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	by, err := time.ParseDuration(os.Getenv("TAINTLET_CLOCK_AHEAD"))
	if err != nil {
		return fmt.Errorf("TAINTLET_CLOCK_AHEAD: %w", err)
	}
	ctx, op := operator.NewOperator()
	op.Clock = ahead{by: by}
	types, err := kwok.ConstructInstanceTypes(ctx)
	if err != nil {
		return err
	}
	client := op.GetClient()
	plain := repairing{kwok.NewCloudProvider(ctx, client, types), cloudprovider.RepairAction(os.Getenv("TAINTLET_REPAIR"))}
	provider := overlay.Decorate(plain, client, op.InstanceTypeStore)
	matcher, err := health.NewRepairPolicyMatcher(ctx, provider)
	if err != nil {
		return err
	}
	cluster := state.NewCluster(op.Clock, client, provider, state.WithRepairPolicyMatcher(matcher))
	op.WithControllers(ctx, controllers.NewControllers(ctx, op.Manager, op.Clock, client, op.EventRecorder, provider, plain, cluster, op.InstanceTypeStore, op.PredictionStore)...).Start(ctx)
	return nil
}
