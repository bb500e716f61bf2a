package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/cluster"
)

const (
	// agentUser is who the agent is in the cluster.
	agentUser = "system:serviceaccount:taintlet-system:taintlet"
	graceful  = 5 * time.Second
)

// buildAgent builds the agent as `make build` does.
func buildAgent(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "taintlet")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", path,
		"github.com/taintlet/taintlet/cmd/taintlet")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the agent: %w\n%s", err, out)
	}
	return path, nil
}

// grant gives the agent the rights that it needs.
func (s *stage) grant(ctx context.Context) error {
	meta, roles := metav1.ObjectMeta{Name: "taintlet"}, s.cluster.Client().RbacV1()
	_, err := roles.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"mutatingadmissionpolicybindings"}, Verbs: []string{"get"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("grant the agent its rights: %w", err)
	}
	_, err = roles.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: agentUser}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("grant the agent its rights: %w", err)
	}
	return nil
}

// agent is a running agent.
type agent struct {
	cmd    *exec.Cmd
	log    string
	exited chan struct{}
}

// startAgent starts the agent where the kubelet lives, and returns when it has
// said on the Node that the host is fine. An empty configuration is the
// built-in one.
func (s *stage) startAgent(ctx context.Context, configuration string) (*agent, error) {
	identity, err := s.cluster.Config(agentUser)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(s.dir, "agent.kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig, identity); err != nil {
		return nil, err
	}
	args := []string{"--node-name=" + nodeName, "--kubeconfig=" + kubeconfig, "--listen=127.0.0.1:0"}
	if configuration != "" {
		file := filepath.Join(s.dir, "agent.yaml")
		if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
			return nil, fmt.Errorf("write the agent's configuration: %w", err)
		}
		args = append(args, "--config="+file)
	}
	a := &agent{cmd: exec.Command(s.agent, args...), log: filepath.Join(s.dir, "agent.log"), exited: make(chan struct{})} //nolint:noctx // it lives until stop
	log, err := os.Create(a.log)
	if err != nil {
		return nil, fmt.Errorf("make the agent's log: %w", err)
	}
	defer func() { _ = log.Close() }() // the agent has its own
	a.cmd.Stdout, a.cmd.Stderr = log, log
	if err := s.kubelet.Run(a.cmd); err != nil {
		return nil, err
	}
	go func() {
		defer close(a.exited)
		_ = a.cmd.Wait() // stop says what came of it
	}()
	if err := s.awaitHealthy(ctx, a); err != nil {
		return nil, errors.Join(err, a.stop())
	}
	return a, nil
}

// awaitHealthy waits until the agent's conditions are there and False.
func (s *stage) awaitHealthy(ctx context.Context, a *agent) error {
	_, err := s.cluster.WaitNode(ctx, nodeName, func(node *corev1.Node) bool {
		healthy := 0
		for _, condition := range node.Status.Conditions {
			if strings.HasPrefix(string(condition.Type), "Host") && condition.Status == corev1.ConditionFalse {
				healthy++
			}
		}
		return healthy >= len(subjects()) && !a.ended()
	})
	if err != nil {
		return fmt.Errorf("wait for the agent to find this host healthy: %w\n%s", err, a.tail())
	}
	return nil
}

func (a *agent) ended() bool {
	select {
	case <-a.exited:
		return true
	default:
		return false
	}
}

// stop asks the agent to end, insists if need be, and returns when it has.
func (a *agent) stop() error {
	if a.ended() {
		return fmt.Errorf("the agent ended by itself: %s\n%s", a.cmd.ProcessState, a.tail())
	}
	_ = a.cmd.Process.Signal(syscall.SIGTERM) // it may end just now
	insist := time.AfterFunc(graceful, func() { _ = a.cmd.Process.Kill() })
	defer insist.Stop()
	<-a.exited
	return nil
}

// tail is the end of the agent's log.
func (a *agent) tail() string {
	log, err := os.ReadFile(a.log)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return "The end of the agent's log:\n" + strings.Join(lines[max(0, len(lines)-10):], "\n")
}
