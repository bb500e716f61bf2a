package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// memoryCondition is the agent's own condition type on the Node.
const memoryCondition = "HostMemoryPressure"

const agentLog = "agent.log"

// runAgent starts the agent with a threshold just below what is available now,
// and waits until it has said on the Node that memory is fine.
func (d *demo) runAgent(ctx context.Context) error {
	now, err := process.ReadHostMemory()
	if err != nil {
		return err
	}
	if d.plan, err = planFor(now); err != nil {
		return err
	}
	if err := d.writeAgentFiles(ctx); err != nil {
		return err
	}
	d.out.tell("%s of memory are available here. The agent's configuration:\n", bytesText(now.Available))
	d.out.quote(d.plan.config())
	d.out.say("")
	command := process.Command(d.binary, "--node-name="+d.nodeName,
		"--kubeconfig="+d.file("agent.kubeconfig"), "--config="+d.file("config.yaml"), "--listen=127.0.0.1:0")
	if d.agent, err = d.start("the agent", command, d.file(agentLog)); err != nil {
		return err
	}
	err = d.out.await(ctx, memoryCondition+" of the Node is False", func(ctx context.Context) error {
		d.healthy, err = d.cluster.WaitNode(ctx, d.nodeName, cluster.HasCondition(memoryCondition, corev1.ConditionFalse))
		return err
	})
	if err != nil {
		return err
	}
	if err := d.callReady(ctx); err != nil {
		return err
	}
	return d.showStatus(ctx)
}

// callReady says of the DaemonSet's pod what a kubelet would: it runs, and its agent is
// ready, because that has written the Node.
func (d *demo) callReady(ctx context.Context) error {
	return d.out.await(ctx, "the agent's pod is ready", func(ctx context.Context) error {
		pods := d.cluster.Client().CoreV1().Pods(bed.Namespace)
		found, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + d.nodeName})
		if err != nil {
			return err
		}
		for i := range found.Items {
			pod := &found.Items[i]
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: bed.Account, Image: pod.Spec.Containers[0].Image, Ready: true, Started: new(true),
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
			}}
			if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		_, err = d.cluster.WaitDaemonSet(ctx, bed.Namespace, bed.Account, func(set *appsv1.DaemonSet) bool { return set.Status.NumberReady == 1 })
		return err
	})
}

// showStatus shows what kubectl taintlet status says of the Node. Its exit code 3 says that
// not all is well.
func (d *demo) showStatus(ctx context.Context) error {
	command := exec.CommandContext(ctx, d.plugin, "status", d.nodeName)
	command.Env = append(os.Environ(), "KUBECONFIG="+d.kubectl.kubeconfig, "COLUMNS=130")
	out, err := command.Output()
	if code := command.ProcessState.ExitCode(); err != nil && code != 3 {
		return fmt.Errorf("kubectl taintlet status: %w\n%s", err, out)
	}
	d.out.command("kubectl taintlet status " + d.nodeName)
	d.out.quote(string(out))
	return nil
}

// writeAgentFiles writes the agent's configuration, into the ConfigMap too, and who it is: the
// bearer of a token of the agents' account on this Node.
func (d *demo) writeAgentFiles(ctx context.Context) error {
	maps := d.cluster.Client().CoreV1().ConfigMaps(bed.Namespace)
	configuration, err := maps.Get(ctx, bed.Account, metav1.GetOptions{})
	if err != nil {
		return err
	}
	configuration.Data["config.yaml"] = d.plan.config()
	if _, err := maps.Update(ctx, configuration, metav1.UpdateOptions{}); err != nil {
		return err
	}
	token, err := d.cluster.TokenOn(ctx, bed.Namespace, bed.Account, d.nodeName, cluster.LongToken)
	if err != nil {
		return err
	}
	if err := cluster.WriteKubeconfig(d.file("agent.kubeconfig"), d.cluster.WithToken(token)); err != nil {
		return err
	}
	if err := os.WriteFile(d.file("config.yaml"), []byte(d.plan.config()), 0o600); err != nil {
		return fmt.Errorf("write the agent's configuration: %w", err)
	}
	return nil
}

// agentSays is the end of the agent's log, for those who want to know what went
// wrong.
func (d *demo) agentSays() string {
	if d.agent == nil || d.agent.Err() != nil {
		return "" // it has not run, or the error shows it already
	}
	return "\n" + d.agent.Tail(10)
}

// logLines shows the lines of the agent's log with this text.
func (d *demo) logLines(text string) error {
	log, err := os.ReadFile(d.file(agentLog))
	if err != nil {
		return fmt.Errorf("read the agent's log: %w", err)
	}
	d.out.command("grep '" + text + "' " + agentLog)
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, text) {
			d.out.quote(line)
		}
	}
	return nil
}

// agentAddress is where the agent serves its metrics; empty when unknown.
func (d *demo) agentAddress() string {
	log, err := os.ReadFile(d.file(agentLog))
	if err != nil {
		return ""
	}
	match := regexp.MustCompile(`msg="taintlet starts".* listen=(\S+)`).FindSubmatch(log)
	if match == nil {
		return ""
	}
	return string(match[1])
}
