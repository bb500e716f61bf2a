package faults

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// paused stops a component for some time.
func paused(name string) func(ctx context.Context, c *cluster.Cluster) error {
	return func(ctx context.Context, c *cluster.Cluster) error {
		pid := c.Processes()[name]
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		defer syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // it was there a moment ago
		return process.Pause(ctx, 4*time.Second)
	}
}

// The control plane itself fails while hosts fall sick and recover, and the Nodes are right
// when it is back.
func TestControlPlaneFails(t *testing.T) {
	c := require(t)
	for _, fault := range []struct {
		name  string
		begin func(ctx context.Context, c *cluster.Cluster) error
	}{
		{"api-server-paused", paused(cluster.APIServer)},
		{"etcd-paused", paused(cluster.Etcd)},
		{"api-server-killed", func(ctx context.Context, c *cluster.Cluster) error { return c.RestartAPIServer(ctx) }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			var scenes []*scene
			for i := range 4 {
				s := newScene(t, fmt.Sprint(fault.name, "-", i))
				s.start()
				scenes = append(scenes, s)
			}
			for _, to := range []health{critical, good} {
				for i, s := range scenes {
					time.AfterFunc(time.Duration(i)*500*time.Millisecond, func() { // before the fault and in it
						s.set(probes.PIDPressure, to)
						s.set(probes.MemoryPressure, min(to, bad))
					})
				}
				if err := fault.begin(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				for _, s := range scenes {
					s.note("the Node is right %s after the fault", s.settlesAs(to))
				}
			}
		})
	}
}

// settlesAs waits until the host has changed, and then until the Node is right.
func (s *scene) settlesAs(to health) time.Duration {
	cluster.Eventually(s.t, "the host's change", func() error {
		if s.host.now(probes.PIDPressure) != to || s.host.now(probes.MemoryPressure) != min(to, bad) {
			return fmt.Errorf("it is not %d yet", to)
		}
		return nil
	})
	return s.settles()
}
