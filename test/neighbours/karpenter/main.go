// Command karpenter is Karpenter with its provider kwok, as its own command kwok is, with a
// clock that is ahead of the machine's by TAINTLET_CLOCK_AHEAD, such as 1h. Whatever Karpenter
// sees is older by that time.
package main

import (
	"fmt"
	"os"
	"time"

	"k8s.io/utils/clock"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
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
	plain := kwok.NewCloudProvider(ctx, client, types)
	provider := overlay.Decorate(plain, client, op.InstanceTypeStore)
	cluster := state.NewCluster(op.Clock, client, provider)
	op.WithControllers(ctx, controllers.NewControllers(ctx, op.Manager, op.Clock, client, op.EventRecorder, provider, plain, cluster, op.InstanceTypeStore)...).Start(ctx)
	return nil
}
