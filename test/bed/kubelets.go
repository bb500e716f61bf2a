package bed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
	"github.com/taintlet/taintlet/test/process"
)

// syncEvery is how often a Kubelet compares its pod with its process.
const syncEvery = 250 * time.Millisecond

// Kubelet stands in for the kubelet of a Node, for the pod of the agents' DaemonSet alone.
// The pod is a process on this host, which begins and ends with the pod. The pod's status
// is what the process is: ready as its readiness probe finds it, terminated when it has
// ended. A container that has ended stays so, as in a kubelet's back-off, until its pod is
// deleted.
//
// A changed ConfigMap is in force at once, and there is no liveness probe, because a
// kubelet takes minutes for both.
type Kubelet struct {
	// Node is the name of the Node. Host is what its agent reads.
	Node string
	Host *fixtures.Host

	c        *cluster.Cluster
	manifest *Manifest
	dir      string
	number   int32 // of this Kubelet in this process

	mu      sync.Mutex
	program string
	pod     types.UID // whose process it is
	podName string
	agent   *process.Process // nil: none was started for this pod
	output  *process.Lines
	probe   *corev1.Probe
	isReady bool
	reason  string      // why the process ended, as the test says
	began   metav1.Time // of the process
	ended   metav1.Time // zero: it runs
	failed  error       // of the last sync
}

// InstallFleet installs the chart with these values, where a cluster has a DNS pod, and stands
// in for the kubelets of that many Nodes, named worker-1 and so on, for the length of the
// test. It returns the manifest that was applied.
func InstallFleet(t *testing.T, c *cluster.Cluster, values map[string]any, count int, program string) (fleet []*Kubelet, manifest string) {
	t.Helper()
	manifest = Render(t, KeepServed, "-f", ValuesFile(t, values), "--set", "namespace.create=true,cleanup.afterUninstall=false", "--set", fmt.Sprintf("port=%d", FleetPort))
	Apply(t.Context(), t, c, manifest)
	policies := []string{"taintlet-nodes", "taintlet-events"}
	if strings.Contains(manifest, "name: taintlet-leases\n") {
		policies = append(policies, "taintlet-leases")
	}
	WaitInForce(t.Context(), t, c, Namespace, policies...)
	dns := NewSlice(metav1.NamespaceSystem, "kube-dns", "kube-dns", "dns-tcp", DNSPort)
	AddEndpoint(dns, "worker-1", "10.244.1.2").TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: metav1.NamespaceSystem, Name: "coredns-1"}
	if err := CreateSlices(t.Context(), c, dns); err != nil {
		t.Fatal(err)
	}
	return RunFleet(t, c, count, program), manifest
}

// RunFleet is InstallFleet of a chart that is installed in another way.
func RunFleet(t *testing.T, c *cluster.Cluster, count int, program string) (fleet []*Kubelet) {
	t.Helper()
	for number := range count {
		fleet = append(fleet, runKubelet(t, c, fmt.Sprintf("worker-%d", number+1), program))
	}
	return fleet
}

// FleetPort is where InstallFleet's agents listen: not at the chart's port, which an agent of
// another test may have on all addresses of the host.
const FleetPort = 24808

// kubelets counts those of this process: each has an address of its own.
var kubelets atomic.Int32 //nolint:gochecknoglobals // one for all tests

// runKubelet registers a Node and stands in for its kubelet for the length of the test.
func runKubelet(t testing.TB, c *cluster.Cluster, node, program string) *Kubelet {
	t.Helper()
	manifest, err := ShippedManifest()
	if err != nil {
		t.Fatal(err)
	}
	k := &Kubelet{Node: node, Host: fixtures.NewHost(t), c: c, manifest: manifest, dir: t.TempDir(), number: kubelets.Add(1), program: program}
	c.Register(t, node)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	group.Go(func() { k.every(ctx, k.sync) })
	group.Go(func() { k.probes(ctx) })
	t.Cleanup(func() {
		cancel()
		group.Wait()
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.agent != nil {
			_ = k.agent.Kill() // it may have ended
		}
		if t.Failed() {
			t.Logf("the kubelet of %s: %v; log of its agent:\n%s", k.Node, k.failed, tailOf(k.output, 20))
		}
	})
	return k
}

func tailOf(output *process.Lines, count int) string {
	if output == nil {
		return ""
	}
	lines := strings.Split(output.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

func (k *Kubelet) every(ctx context.Context, do func(context.Context) error) {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := do(ctx)
		k.mu.Lock()
		k.failed = err
		k.mu.Unlock()
	}
}

// sync starts and ends the process with the pod, and writes the pod's status.
func (k *Kubelet) sync(ctx context.Context) error {
	pods, err := k.c.Client().CoreV1().Pods(Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName=" + k.Node, LabelSelector: "app.kubernetes.io/name=taintlet",
	})
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var current *corev1.Pod
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.DeletionTimestamp == nil {
			current = pod
		}
	}
	if current == nil || current.UID != k.pod {
		k.end()
		k.agent, k.isReady = nil, false
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.DeletionTimestamp != nil {
			if err := k.c.Client().CoreV1().Pods(Namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0)); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	if current == nil {
		return nil
	}
	if err := k.writeConfig(ctx); err != nil {
		return err
	}
	if k.agent == nil {
		if err := k.start(ctx, current); err != nil {
			return err
		}
	}
	return k.writeStatus(ctx, current)
}

// writeConfig brings the file of the ConfigMap up to date.
func (k *Kubelet) writeConfig(ctx context.Context) error {
	configuration, err := k.c.Client().CoreV1().ConfigMaps(Namespace).Get(ctx, Account, metav1.GetOptions{})
	if err != nil {
		return err
	}
	text, path := configuration.Data["config.yaml"], k.file("config.yaml")
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return nil
	}
	return errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path))
}

func (k *Kubelet) file(name string) string { return filepath.Join(k.dir, name) }

// start starts the pod's process, with the token of the pod.
func (k *Kubelet) start(ctx context.Context, pod *corev1.Pod) error {
	token, err := k.c.Token(ctx, Namespace, Account, &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}, 0)
	if err != nil {
		return err
	}
	if err := cluster.WriteKubeconfig(k.file("kubeconfig"), k.c.WithToken(token)); err != nil {
		return err
	}
	output := &process.Lines{}
	command := k.Command(k.program, pod.Name, k.address())
	command.Stderr = output
	agent, err := process.Start("the agent of "+k.Node, command, "")
	if err != nil {
		return err
	}
	k.podName, k.pod, k.probe, k.agent, k.output, k.isReady = pod.Name, pod.UID, pod.Spec.Containers[0].ReadinessProbe, agent, output, false
	k.began, k.ended = metav1.Now().Rfc3339Copy(), metav1.Time{}
	return nil
}

// Command is the command of an agent of the Node with that pod's name, which listens on that
// address.
func (k *Kubelet) Command(program, pod, listen string) *exec.Cmd {
	command := process.Command(program, append(k.Host.Flags(), "--kubeconfig="+k.file("kubeconfig"), "--config="+k.file("config.yaml"), "--listen="+listen)...)
	command.Env = append(append(os.Environ(), k.manifest.Env(k.Node, k.hostIP())...), "POD_NAME="+pod)
	return command
}

// address is where the agent listens: hosts have addresses of their own, here on loopback,
// and so have the processes of tests.
func (k *Kubelet) address() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d:%d", 1+pid>>8&0x7f, pid&0xff, 10+k.number, FleetPort)
}

// hostIP is what the API server is told, which takes no address of the loopback.
func (k *Kubelet) hostIP() string { return fmt.Sprintf("192.0.2.%d", 10+k.number) }

// end ends the process as with its pod, if one runs.
func (k *Kubelet) end() {
	if k.agent != nil {
		_ = k.agent.Stop(5 * time.Second) // it may have ended
	}
}

// Signal sends a signal to the agent, such as SIGSTOP.
func (k *Kubelet) Signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := syscall.Kill(k.agent.PID(), signal); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the agent's container with that reason: "Error", or "OOMKilled" as when the
// kernel's cgroup says so.
func (k *Kubelet) Kill(reason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reason = reason
	_ = k.agent.Kill() // it may have ended
}

// UseProgram has the next pod of the Node run another program.
func (k *Kubelet) UseProgram(program string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.program = program
}

// probes asks the agent whether it is ready, as often as the pod's readiness probe says,
// and every second until it is for the first time.
func (k *Kubelet) probes(ctx context.Context) {
	failures, began := int32(0), time.Now()
	for {
		k.mu.Lock()
		probe, isReady, agent := k.probe, k.isReady, k.agent
		k.mu.Unlock()
		pause := time.Second
		if isReady {
			pause = time.Until(began.Add(time.Duration(probe.PeriodSeconds) * time.Second))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if began = time.Now(); agent == nil {
			continue
		}
		if failures++; k.answers(ctx, probe) {
			failures = 0
		} else if isReady {
			k.tell(ctx, "Unhealthy", "Readiness probe failed")
		}
		k.mu.Lock()
		if k.agent == agent {
			k.isReady = failures == 0 || k.isReady && failures < probe.FailureThreshold
		}
		k.mu.Unlock()
	}
}

// tell writes an Event about the pod.
func (k *Kubelet) tell(ctx context.Context, reason, message string) {
	k.mu.Lock()
	pod, uid := k.podName, k.pod
	k.mu.Unlock()
	now := metav1.Now()
	_, err := k.c.Client().CoreV1().Events(Namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: pod + "."},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: Namespace, Name: pod, UID: uid, FieldPath: "spec.containers{taintlet}"},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "kubelet", Host: k.Node},
	}, metav1.CreateOptions{})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed = errors.Join(k.failed, err)
}

// answers makes one readiness probe.
func (k *Kubelet) answers(ctx context.Context, probe *corev1.Probe) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(probe.TimeoutSeconds)*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+k.address()+probe.HTTPGet.Path, nil)
	if err != nil {
		return false
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	answer.Body.Close() //nolint:errcheck // only the status matters
	return answer.StatusCode == http.StatusOK
}

// container is the status of the pod's container, as its process is.
func (k *Kubelet) container(image string) corev1.ContainerStatus {
	status := corev1.ContainerStatus{Name: Account, Image: image, ImageID: "none"}
	select {
	case <-k.agent.Ended():
		const killed = 128 + int32(syscall.SIGKILL)
		if k.ended.IsZero() {
			k.ended = metav1.Now().Rfc3339Copy()
		}
		ended := &corev1.ContainerStateTerminated{ExitCode: killed, Reason: k.reason, StartedAt: k.began, FinishedAt: k.ended}
		if code := k.agent.ExitCode(); code >= 0 {
			ended.ExitCode, ended.Reason = int32(code), "Error" //nolint:gosec // a code has 8 bits
		}
		status.LastTerminationState.Terminated, status.RestartCount = ended, 1
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off restarting failed container"}
		status.Started = new(false)
	default:
		status.State.Running, status.Ready, status.Started = &corev1.ContainerStateRunning{StartedAt: k.began}, k.isReady, new(true)
	}
	return status
}

// writeStatus writes the pod's status if it is another than before.
func (k *Kubelet) writeStatus(ctx context.Context, pod *corev1.Pod) error {
	container := k.container(pod.Spec.Containers[0].Image)
	if old := pod.Status.ContainerStatuses; len(old) == 1 && equality.Semantic.DeepEqual(old[0], container) {
		return nil
	}
	ready := corev1.ConditionFalse
	if container.Ready {
		ready = corev1.ConditionTrue
	}
	pod.Status.Phase, pod.Status.HostIP, pod.Status.PodIP = corev1.PodRunning, k.hostIP(), k.hostIP()
	pod.Status.HostIPs, pod.Status.PodIPs = []corev1.HostIP{{IP: k.hostIP()}}, []corev1.PodIP{{IP: k.hostIP()}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{container}
	before := pod.Status.Conditions
	pod.Status.Conditions = nil
	for kind, status := range map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodScheduled: corev1.ConditionTrue, corev1.PodInitialized: corev1.ConditionTrue, corev1.ContainersReady: ready, corev1.PodReady: ready,
	} {
		since := metav1.Now()
		for _, old := range before {
			if old.Type == kind && old.Status == status {
				since = old.LastTransitionTime
			}
		}
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: since})
	}
	_, err := k.c.Client().CoreV1().Pods(Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}
