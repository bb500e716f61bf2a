package main

import (
	"context"
	"os"
	"os/exec"

	"github.com/taintlet/taintlet/test/cluster"
)

// leaveRunning leaves everything running, and says what can be seen, until the
// context ends.
func (d *demo) leaveRunning(ctx context.Context) {
	d.out.say("\nEverything goes on running until Ctrl-C. In another terminal:\n")
	d.out.tell("export KUBECONFIG=%s", d.kubectl.kubeconfig)
	if _, err := exec.LookPath(cluster.KubectlProgram); err != nil { // built by the demo
		d.out.tell("alias kubectl=%s", d.kubectl.path)
	}
	d.out.tell("kubectl get node %s -o yaml", d.nodeName)
	d.out.tell("kubectl events --for node/%s --watch", d.nodeName)
	d.out.tell("tail -f %s", d.file(agentLog))
	if address := d.agentAddress(); address != "" {
		d.out.tell("curl -s http://%s/metrics | grep ^taintlet_condition", address)
	}
	if self, err := os.Executable(); err == nil {
		d.out.say("\nTo take memory again (Ctrl-C gives it back):\n")
		d.out.tell("%s %s %d", self, takeMemory, d.plan.target/mebibyte)
	}
	<-ctx.Done()
	d.out.say("\nCleaning up.")
}
