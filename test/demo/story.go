package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// demo is what the steps share: each finds what those before it have made.
type demo struct {
	out  *console
	dir  string // all files; removed at the end
	fail context.CancelCauseFunc

	nodeName string
	binary   string // the agent
	plugin   string // kubectl-taintlet
	kubectl  kubectl
	cluster  *cluster.Cluster
	node     *cluster.Node
	plan     plan
	agent    *process.Process
	ballast  *process.Process
	healthy  *corev1.Node // the Node as it was before the trouble
}

// step is one chapter of the story.
type step struct {
	title string
	do    func(*demo, context.Context) error
}

func steps() []step {
	return []step{
		{"What taintlet sees on this host, without any cluster", (*demo).showOnce},
		{"Start a Kubernetes control plane", (*demo).startControlPlane},
		{"Make this host a Node, and install what keeps the taints", (*demo).prepareCluster},
		{"Run the agent on this host, for this Node", (*demo).runAgent},
		{"Take memory until the agent taints the Node", (*demo).exhaust},
		{"Pods stay away, and the taint stays although a controller wants it gone", (*demo).hold},
		{"Give the memory back: the taint goes, the pod gets its Node", (*demo).recover},
	}
}

// tell runs all steps and cleans up. With keep it leaves, after the steps,
// everything running until the context ends.
func tell(ctx context.Context, out *console, keep bool) (err error) {
	dir, err := os.MkdirTemp("", "taintlet-demo-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	// A child that ends although nobody asked it to ends the story with it.
	inner, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	d := &demo{out: out, dir: dir, fail: fail, nodeName: nodeName()}
	defer func() {
		err = errors.Join(err, d.cleanUp())
	}()
	if err := d.runSteps(inner); err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("%w%s", err, d.agentSays())
		}
		return err
	}
	if keep {
		d.leaveRunning(ctx)
	}
	return nil
}

func (d *demo) runSteps(ctx context.Context) error {
	all := steps()
	for i, step := range all {
		d.out.heading(i+1, len(all), step.title)
		if err := step.do(d, ctx); err != nil {
			if ctx.Err() != nil { // whatever the step says, this is why
				err = context.Cause(ctx)
			}
			return fmt.Errorf("step %d/%d: %w", i+1, len(all), err)
		}
	}
	d.out.say("\nAll of it happened, in %s.", d.out.elapsed())
	return nil
}

// nodeName is the host name as a kubelet would take it, where it can be one.
func nodeName() string {
	name, err := os.Hostname()
	name = strings.ToLower(name)
	if err != nil || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "this-host"
	}
	return name
}

// cleanUp ends all that was started, the last first.
func (d *demo) cleanUp() error {
	var errs []error
	for _, p := range []*process.Process{d.ballast, d.agent} {
		if p != nil {
			_ = p.Stop(graceful) // one that had ended before has ended the story
		}
	}
	if d.cluster != nil {
		errs = append(errs, d.cluster.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(d.dir))...)
}

// graceful is how long a process may take to end when asked.
const graceful = 5 * time.Second

// start starts a process with its output as the command says, or in the log. If
// it ends although nobody stopped it, the story ends with it.
func (d *demo) start(name string, command *exec.Cmd, log string) (*process.Process, error) {
	p, err := process.Start(name, command, log)
	if err != nil {
		return nil, err
	}
	go func() {
		<-p.Ended()
		if err := p.Err(); err != nil {
			d.fail(err)
		}
	}()
	return p, nil
}

func (d *demo) file(name string) string { return filepath.Join(d.dir, name) }
