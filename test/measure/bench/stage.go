package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/taintlet/taintlet/test/bed"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/kubelet"
	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

const nodeName = "bench"

// stage is what the measurements need: a control plane, a kubelet, and the
// agent's binary and rights.
type stage struct {
	dir     string
	cluster *cluster.Cluster
	kubelet *kubelet.Kubelet
	agent   string // path of the binary
	memory  memoryPlan
	tasks   tasksPlan
}

// setUp starts all but the agent. What it has started when it fails is in the
// stage too, which is to be torn down in any case.
func (s *stage) setUp(ctx context.Context, o *options) (err error) {
	measure.Say("starting a control plane")
	s.cluster, err = cluster.Start(ctx, cluster.Options{Progress: os.Stderr})
	if err != nil {
		return err
	}
	// In the cluster's folder, which is removed even if this process is killed.
	if s.dir, err = os.MkdirTemp(s.cluster.LogDir(), "bench-"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	if s.agent = o.agent; s.agent == "" {
		measure.Say("building the agent")
		if s.agent, err = process.BuildAgent(ctx, s.dir, process.BuildOptions{Release: true}); err != nil {
			return err
		}
	}
	if err := s.cluster.GrantAsAgent(ctx, bed.User); err != nil {
		return err
	}
	if s.memory, err = planMemory(); err != nil {
		return err
	}
	if s.tasks, err = planTasks(); err != nil {
		return err
	}
	measure.Say("starting a kubelet")
	s.kubelet, err = kubelet.Start(ctx, s.cluster, kubelet.Options{
		NodeName: nodeName, Progress: os.Stderr,
		EvictionHard: map[string]string{
			"memory.available": strconv.FormatUint(s.memory.kubelet, 10),
			"nodefs.available": strconv.Itoa(diskPercent) + "%",
			"pid.available":    strconv.FormatUint(s.tasks.leastFit, 10),
		},
		EvictionPressureTransitionPeriod: time.Second,
		KernelMemcgNotification:          o.notified,
	})
	if err != nil {
		return err
	}
	return s.checkWorkingSet(ctx)
}

func (s *stage) tearDown() error {
	var errs []error
	if s.kubelet != nil {
		errs = append(errs, s.kubelet.Stop())
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	return errors.Join(errs...)
}
