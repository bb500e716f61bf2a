package kubelet

import (
	"context"
	"fmt"
	"io"

	"github.com/taintlet/taintlet/test/process"
)

// takeTurn waits until no other Kubelet runs on this host, and returns what to
// call when this one has ended. All kubelets have their pods in the same cgroups,
// and each kills what it finds there and does not know (cleanupOrphanedPodCgroups
// in pkg/kubelet/kubelet_pods.go of Kubernetes).
func takeTurn(ctx context.Context, progress io.Writer) (end func(), err error) {
	end, err = process.Lock(ctx, cgroupRoot, func() {
		if progress != nil {
			fmt.Fprintln(progress, "waiting for another kubelet of these tests to end")
		}
	})
	if err != nil {
		return nil, fmt.Errorf("wait for other kubelets: %w", err)
	}
	return end, nil
}
