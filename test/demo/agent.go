package main

import (
	"context"
	"fmt"
	"github.com/taintlet/taintlet/test/bed"
	"os"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

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
	if err := d.writeAgentFiles(); err != nil {
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
	return d.out.await(ctx, memoryCondition+" of the Node is False", func(ctx context.Context) error {
		d.healthy, err = d.cluster.WaitNode(ctx, d.nodeName, cluster.HasCondition(memoryCondition, corev1.ConditionFalse))
		return err
	})
}

func (d *demo) writeAgentFiles() error {
	identity, err := d.cluster.Config(bed.User)
	if err != nil {
		return err
	}
	if err := cluster.WriteKubeconfig(d.file("agent.kubeconfig"), identity); err != nil {
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
