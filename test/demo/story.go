package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

const (
	memoryTaint    = corev1.TaintNodeMemoryPressure
	heldAnnotation = "taintlet.dev/held"
	// memoryCondition is the agent's own condition type on the Node.
	memoryCondition = "HostMemoryPressure"
	podName         = "waiting"
	agentLog        = "agent.log"
	// statusUpdates is how many versions of the Node the controller is shown.
	statusUpdates = 5
	// graceful is how long a process may take to end when asked.
	graceful = 5 * time.Second
)

// demo is what the steps share: each finds what those before it have made.
type demo struct {
	out  *console
	dir  string // all files; removed at the end
	fail context.CancelCauseFunc

	nodeName                string
	binary, plugin, kubectl string // programs
	cluster                 *cluster.Cluster
	node                    *cluster.Node
	plan                    plan
	agent, ballast          *process.Process
}

// tell tells the whole story and cleans up. With keep it leaves, after the steps,
// everything running until the context ends.
func tell(ctx context.Context, out *console, keep bool) (err error) {
	dir, err := os.MkdirTemp("", "taintlet-demo-")
	if err != nil {
		return err
	}
	// A child that ends although nobody asked it to ends the story with it.
	inner, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	d := &demo{out: out, dir: dir, fail: fail, nodeName: nodeName()}
	defer func() { err = errors.Join(err, d.cleanUp()) }()
	steps := []struct {
		title string
		do    func(context.Context) error
	}{
		{"What taintlet sees on this host, without any cluster", d.showOnce},
		{"Start a Kubernetes control plane", d.startControlPlane},
		{"Make this host a Node, and install the policy that keeps taints", d.prepareCluster},
		{"Run the agent on this host, for this Node", d.runAgent},
		{"Take memory until the agent taints the Node", d.exhaust},
		{"The scheduler keeps pods away, and the taint stays although a controller tries to remove it", d.hold},
		{"Free the memory: the agent removes the taint, and the pod gets its Node", d.recover},
	}
	for i, step := range steps {
		d.out.say("\n%d/%d %s  [%s]", i+1, len(steps), step.title, d.out.elapsed())
		if err := step.do(inner); err != nil {
			if cause := context.Cause(inner); cause != nil { // whatever the step says, this is why
				err = cause
			}
			if d.agent != nil && d.agent.Err() == nil {
				err = fmt.Errorf("%w\n%s", err, d.agent.Tail(10))
			}
			return fmt.Errorf("step %d/%d: %w", i+1, len(steps), err)
		}
	}
	d.out.say("\nAll steps succeeded in %s.", d.out.elapsed())
	if keep {
		d.leaveRunning(ctx)
	}
	return nil
}

// nodeName is the host name as a kubelet would take it, where it can be one.
func nodeName() string {
	name, err := os.Hostname()
	if name = strings.ToLower(name); err != nil || len(validation.IsDNS1123Subdomain(name)) > 0 {
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

// showOnce builds the agent and shows what it sees here.
func (d *demo) showOnce(ctx context.Context) (err error) {
	d.out.tell("The agent and kubectl-taintlet are built.")
	if d.binary, err = process.BuildAgent(ctx, d.dir, process.BuildOptions{}); err != nil {
		return err
	}
	if d.plugin, err = process.BuildPlugin(ctx, d.dir, process.BuildOptions{}); err != nil {
		return err
	}
	text, err := d.output(ctx, d.binary, "once")
	d.out.quote("taintlet once", text)
	return err
}

// startControlPlane builds it when it is not built yet, and kubectl with it
// when there is none.
func (d *demo) startControlPlane(ctx context.Context) (err error) {
	if d.kubectl, err = cluster.Kubectl(ctx, d.out); err != nil {
		return err
	}
	version, err := cluster.KubernetesVersion()
	if err != nil {
		return err
	}
	d.out.tell("etcd, kube-apiserver, kube-controller-manager and kube-scheduler start, Kubernetes %s.", version)
	if d.cluster, err = cluster.Start(ctx, cluster.Options{AuditLog: true, Progress: d.out}); err != nil {
		return err
	}
	return cluster.WriteKubeconfig(d.file("kubeconfig"), d.cluster.Admin())
}

// prepareCluster registers this host and installs what an installation of
// taintlet has beside the agent.
func (d *demo) prepareCluster(ctx context.Context) error {
	err := d.out.await(ctx, "install deploy/keep.yaml and deploy/taintlet.yaml, register Node "+d.nodeName, func(ctx context.Context) (err error) {
		if err := errors.Join(d.cluster.InstallKeep(ctx), d.cluster.InstallShipped(ctx)); err != nil {
			return err
		}
		d.node, err = d.cluster.RegisterNode(ctx, d.nodeName)
		return err
	})
	if err != nil {
		return err
	}
	d.out.tell("There is no kubelet: the demo renews the Node's status and Lease in its place, reports enough memory,")
	d.out.tell("and runs the agent of the DaemonSet's pod.")
	return d.show(ctx, "get", "nodes")
}

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
	d.out.quote("", d.plan.config())
	d.out.say("")
	command := process.Command(d.binary, "--node-name="+d.nodeName,
		"--kubeconfig="+d.file("agent.kubeconfig"), "--config="+d.file("config.yaml"), "--listen=127.0.0.1:0")
	if d.agent, err = d.start("the agent", command, d.file(agentLog)); err != nil {
		return err
	}
	if err := d.awaitNode(ctx, memoryCondition+" of the Node is False", cluster.HasCondition(memoryCondition, corev1.ConditionFalse)); err != nil {
		return err
	}
	if err := d.out.await(ctx, "the agent's pod is ready", d.callReady); err != nil {
		return err
	}
	return d.showStatus(ctx)
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
	identity, err := bed.IdentityOn(ctx, d.cluster, d.nodeName)
	if err != nil {
		return err
	}
	return errors.Join(cluster.WriteKubeconfig(d.file("agent.kubeconfig"), identity), os.WriteFile(d.file("config.yaml"), []byte(d.plan.config()), 0o600))
}

// callReady says of the DaemonSet's pod what a kubelet would: it runs, and its agent is
// ready, because that has written the Node.
func (d *demo) callReady(ctx context.Context) error {
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
}

// exhaust takes the host's memory by this program once more, as the ballast, and expects taint, condition and Event.
func (d *demo) exhaust(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	d.out.tell("A child process takes memory until %s are left, %s below the threshold.", bytesText(d.plan.target), bytesText(d.plan.threshold-d.plan.target))
	said := &process.Lines{}
	command := process.Command(self, takeMemory, strconv.FormatUint(d.plan.target/mebibyte, 10))
	command.Stdout, command.Stderr = said, os.Stderr
	if d.ballast, err = d.start("the process that takes memory (is there a memory limit for this session?)", command, ""); err != nil {
		return err
	}
	// Where the policy of deploy/keep.yaml is absent, the agent sets a stand-in.
	if err := d.awaitNode(ctx, "taint "+memoryTaint+":NoSchedule is set", cluster.HasTaint(memoryTaint, corev1.TaintEffectNoSchedule)); err != nil {
		return err
	}
	if err := d.awaitNode(ctx, memoryCondition+" is True", cluster.HasCondition(memoryCondition, corev1.ConditionTrue)); err != nil {
		return err
	}
	if err := d.awaitEvent(ctx, "Node", d.nodeName, memoryCondition+"Degraded"); err != nil {
		return err
	}
	if err := d.out.await(ctx, "all memory is taken that was to be taken", func(ctx context.Context) error {
		return d.ballast.WaitLines(ctx, said, func(lines []string) bool { return strings.Contains(strings.Join(lines, ""), targetReached) })
	}); err != nil {
		return err
	}
	d.out.quote("", said.String())
	if err := d.describe(ctx, "node", d.nodeName, "Taints", "Conditions", "Events"); err != nil {
		return err
	}
	return d.showStatus(ctx)
}

// hold expects a new pod to wait, and the taint to stay while the controller
// asks for its removal.
func (d *demo) hold(ctx context.Context) error {
	if err := d.show(ctx, "run", podName, "--image=pause", "--restart=Never"); err != nil {
		return err
	}
	if err := d.awaitPod(ctx, "the scheduler leaves the pod Pending", cluster.Unschedulable); err != nil {
		return err
	}
	if err := d.awaitEvent(ctx, "Pod", podName, "FailedScheduling"); err != nil {
		return err
	}
	if err := errors.Join(d.show(ctx, "get", "pod", podName), d.describe(ctx, "pod", podName, "Events")); err != nil {
		return err
	}
	d.out.say("")
	d.out.tell("The kubelet's own condition MemoryPressure is False, so the controller manager tries to")
	d.out.tell("remove the taint: at every update of the Node it sends a request to remove it.")
	if err := d.out.await(ctx, fmt.Sprintf("it has asked again after each of %d updates", statusUpdates), d.tempt); err != nil {
		return err
	}
	asked, err := d.countRemovals()
	if err != nil {
		return err
	}
	d.out.tell("The API server's audit log has %d such requests, all answered with 200 OK. The taint is still there.", asked)
	return d.show(ctx, "get", "node", d.nodeName, "-o",
		`custom-columns=TAINTS:.spec.taints[*].key,HELD:.metadata.annotations.taintlet\.dev/held`)
}

// tempt writes the Node's status again and again, as a kubelet whose own
// MemoryPressure is False, and waits each time until the controller manager has asked for the
// removal of the taint. The taint has to be there after that.
func (d *demo) tempt(ctx context.Context) error {
	for range statusUpdates {
		before, err := d.countRemovals()
		if err != nil {
			return err
		}
		if err := d.node.Heartbeat(ctx); err != nil {
			return err
		}
		for now := before; now <= before; { // nothing tells that the log grew
			if err := process.Pause(ctx, 20*time.Millisecond); err != nil {
				return err
			}
			if now, err = d.countRemovals(); err != nil {
				return err
			}
		}
		node, err := d.cluster.Client().CoreV1().Nodes().Get(ctx, d.nodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !cluster.HasTaint(memoryTaint, corev1.TaintEffectNoSchedule)(node) {
			return fmt.Errorf("the taint did not stay: version %s of the Node has the taints %v", node.ResourceVersion, node.Spec.Taints)
		}
	}
	return nil
}

// countRemovals counts, by the API server's audit log, how often the controller
// manager asked for the removal of the taint and was told that it is done.
func (d *demo) countRemovals() (count int, err error) {
	requests, err := d.cluster.Requests("system:serviceaccount:kube-system:node-controller")
	for _, r := range requests {
		if r.Verb == "patch" && r.Resource() == "nodes" && r.ObjectRef.Name == d.nodeName && r.ResponseStatus.Code == http.StatusOK &&
			bytes.Contains(r.RequestObject, []byte(`"taints":`)) && !bytes.Contains(r.RequestObject, []byte(memoryTaint)) {
			count++
		}
	}
	return count, err
}

// recover gives the memory back and expects everything to be as before.
func (d *demo) recover(ctx context.Context) error {
	if err := d.ballast.Stop(graceful); err != nil {
		return err
	}
	d.out.tell("The child process has ended; the agent waits for memory to stay plentiful for 3 s.")
	err := d.awaitNode(ctx, "taint and annotation "+heldAnnotation+" are removed", func(node *corev1.Node) bool {
		_, held := node.Annotations[heldAnnotation]
		return !held && !cluster.HasTaint(memoryTaint, corev1.TaintEffectNoSchedule)(node)
	})
	if now, failed := process.ReadHostMemory(); err != nil && failed == nil && now.Available < d.plan.clear {
		return fmt.Errorf("%w; other programs have taken the memory: %s are available, it takes %s to recover", err, bytesText(now.Available), bytesText(d.plan.clear))
	} else if err != nil {
		return err
	}
	if err := d.awaitPod(ctx, "pod "+podName+" is bound to the Node", cluster.Scheduled); err != nil {
		return err
	}
	if err := d.awaitNode(ctx, memoryCondition+" is False", cluster.HasCondition(memoryCondition, corev1.ConditionFalse)); err != nil {
		return err
	}
	if err := d.awaitEvent(ctx, "Pod", podName, "Scheduled"); err != nil {
		return err
	}
	if err := d.show(ctx, "get", "pod", podName, "-o", "wide"); err != nil {
		return err
	}
	d.out.tell("(It has its NODE. Its status stays Pending: there is no kubelet to start it.)")
	d.out.tell("The Event %sOK follows a minute after the previous Event, because the agent writes at most one a minute.", memoryCondition)
	if err := d.describe(ctx, "node", d.nodeName, "Taints", "Events"); err != nil {
		return err
	}
	text, err := d.output(ctx, "grep", "changed", d.file(agentLog))
	d.out.quote("grep changed "+agentLog, text)
	return err
}

func (d *demo) awaitNode(ctx context.Context, what string, holds func(*corev1.Node) bool) error {
	return d.out.await(ctx, what, func(ctx context.Context) error {
		_, err := d.cluster.WaitNode(ctx, d.nodeName, holds)
		return err
	})
}

func (d *demo) awaitPod(ctx context.Context, what string, holds func(*corev1.Pod) bool) error {
	return d.out.await(ctx, what, func(ctx context.Context) error {
		_, err := d.cluster.WaitPod(ctx, corev1.NamespaceDefault, podName, holds)
		return err
	})
}

// awaitEvent waits for an Event about the object, past or to come.
func (d *demo) awaitEvent(ctx context.Context, kind, name, reason string) error {
	return d.out.await(ctx, "an Event says "+reason, func(ctx context.Context) error {
		_, err := d.cluster.WaitEvent(ctx, kind, name, reason, func(*corev1.Event) bool { return true })
		return err
	})
}

// leaveRunning leaves everything running, and says what can be seen, until the
// context ends.
func (d *demo) leaveRunning(ctx context.Context) {
	d.out.say("\nEverything keeps running until Ctrl-C. In another terminal:\n")
	d.out.tell("export KUBECONFIG=%s", d.file("kubeconfig"))
	if _, err := exec.LookPath(cluster.KubectlProgram); err != nil { // built by the demo
		d.out.tell("alias kubectl=%s", d.kubectl)
	}
	d.out.tell("kubectl get node %s -o yaml", d.nodeName)
	d.out.tell("kubectl events --for node/%s --watch", d.nodeName)
	d.out.tell("tail -f %s   # listen= is where it serves /metrics", d.file(agentLog))
	if self, err := os.Executable(); err == nil {
		d.out.say("\nTo take memory again (Ctrl-C gives it back):\n")
		d.out.tell("%s %s %d", self, takeMemory, d.plan.target/mebibyte)
	}
	<-ctx.Done()
	d.out.say("\nCleaning up.")
}
