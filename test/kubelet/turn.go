package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// takeTurn waits until no other Kubelet runs on this host, and returns what is
// to be closed when this one has ended. All kubelets have their pods in the same
// cgroups, and each kills what it finds there and does not know
// (cleanupOrphanedPodCgroups in pkg/kubelet/kubelet_pods.go of Kubernetes). The
// kernel gives the lock back when this process ends in whatever way.
func takeTurn(ctx context.Context, progress io.Writer) (*os.File, error) {
	turn, err := os.Open(cgroupRoot)
	if err != nil {
		return nil, fmt.Errorf("wait for other kubelets: %w", err)
	}
	for told := false; ; told = true {
		err := unix.Flock(int(turn.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return turn, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("wait for other kubelets: %w", err), turn.Close())
		}
		if !told && progress != nil {
			fmt.Fprintln(progress, "waiting for another kubelet of these tests to end")
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for other kubelets: %w", ctx.Err()), turn.Close())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
