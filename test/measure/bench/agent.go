package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/taintlet/taintlet/test/bed"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

const (
	// graceful is how long the agent may take to end when asked.
	graceful = 5 * time.Second
)

// startAgent starts the agent where the kubelet lives, and returns when it has
// said on the Node that the host is fine.
func (s *stage) startAgent(ctx context.Context) (*process.Process, error) {
	identity, err := s.cluster.Config(bed.User)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(s.dir, "agent.kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig, identity); err != nil {
		return nil, err
	}
	file := filepath.Join(s.dir, "agent.yaml")
	if err := os.WriteFile(file, []byte(s.configuration()), 0o600); err != nil {
		return nil, fmt.Errorf("write the agent's configuration: %w", err)
	}
	command := process.Command(s.agent, "--node-name="+nodeName, "--kubeconfig="+kubeconfig, "--listen=127.0.0.1:0", "--config="+file)
	a, err := s.kubelet.StartInside("the agent", command, filepath.Join(s.dir, "agent.log"))
	if err != nil {
		return nil, err
	}
	if err := s.awaitHealthy(ctx, a); err != nil {
		return nil, errors.Join(err, a.Stop(graceful))
	}
	return a, nil
}

// awaitHealthy waits until the agent's conditions are there and False.
func (s *stage) awaitHealthy(ctx context.Context, a *process.Process) error {
	_, err := s.cluster.WaitNode(ctx, nodeName, func(node *corev1.Node) bool {
		healthy := 0
		for _, condition := range node.Status.Conditions {
			if strings.HasPrefix(string(condition.Type), "Host") && condition.Status == corev1.ConditionFalse {
				healthy++
			}
		}
		return healthy >= len(subjects()) && a.Err() == nil
	})
	if err != nil {
		return fmt.Errorf("wait for the agent to find this host healthy: %w\n%s", err, a.Tail(10))
	}
	return nil
}
