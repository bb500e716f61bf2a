package network

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// agent is a running agent, on a host of the bed.
type agent struct {
	*bed.Host

	scene   *scene
	t       *testing.T
	process *process.Process
	output  *process.Lines
	dir     string // its configuration and the tree of files that it reads
	pod     *corev1.Pod
}

const configHeader = "apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\n"

// start registers that many Nodes, the first hosts of the bed, and runs an agent
// on each with that configuration, for the length of the test. It returns when
// all are ready.
func (s *scene) start(t *testing.T, count int, config string) []*agent {
	t.Helper()
	var agents []*agent
	for _, h := range s.bed.Hosts[:count] {
		s.cluster.Register(t, h.Name)
		s.addPod(t, metav1.NamespaceSystem, "kube-dns-"+h.Name, h, s.hasDNS(h))
		agents = append(agents, &agent{Host: h, scene: s, t: t, pod: s.addPod(t, bed.Namespace, "taintlet-"+h.Name, h, true)})
	}
	s.waitSlices(t, bed.Namespace, "taintlet", count)
	s.waitSlices(t, metav1.NamespaceSystem, "kube-dns", min(count, len(s.bed.DNS)))
	for _, a := range agents {
		a.dir = s.tree(t, a.Name, config)
		a.kubeconfig()
		a.run()
	}
	for _, a := range agents {
		a.waitReady()
	}
	return agents
}

func (s *scene) hasDNS(h *bed.Host) bool { return h.Number <= len(s.bed.DNS) }

// addPod makes a pod on the host, running and ready, for the length of the test:
// an agent in the host's network, or a DNS server.
func (s *scene) addPod(t *testing.T, namespace, name string, h *bed.Host, wanted bool) *corev1.Pod {
	t.Helper()
	if !wanted {
		return nil
	}
	var now int64 // no kubelet confirms its end
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/name": "taintlet"}},
		Spec: corev1.PodSpec{
			NodeName: h.Name, HostNetwork: true, ServiceAccountName: bed.Account,
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			TerminationGracePeriodSeconds: &now,
			Containers: []corev1.Container{{Name: "taintlet", Image: "none", Ports: []corev1.ContainerPort{
				{Name: "metrics", ContainerPort: bed.AgentPort},
			}}},
		},
	}
	address := h.Address
	if namespace == metav1.NamespaceSystem {
		address = bed.PodAddress(h.Number)
		pod.Labels = map[string]string{"k8s-app": "kube-dns"}
		pod.Spec.HostNetwork, pod.Spec.ServiceAccountName, pod.Spec.Containers[0].Ports = false, "default", nil
	}
	pods := s.cluster.Client().CoreV1().Pods(namespace)
	cluster.Eventually(t, "the service account of "+name, func() error {
		created, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
		if err == nil {
			pod = created
		}
		return err
	})
	t.Cleanup(func() {
		if err := pods.Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Error(err)
		}
	})
	pod.Status.Phase, pod.Status.HostIP, pod.Status.PodIP = corev1.PodRunning, h.Address.String(), address.String()
	pod.Status.PodIPs = []corev1.PodIP{{IP: address.String()}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// tree makes the files of an agent: its configuration, and the /proc and /sys of
// a host that is well in all but, perhaps, its network, which is the namespace's.
func (s *scene) tree(t *testing.T, name, config string) string {
	t.Helper()
	dir := filepath.Join(s.dir, name)
	for file, content := range map[string]string{
		"config.yaml":                 configHeader + "disk: {paths: [/], availablePercent: 0.1, writeProbe: {directory: \"\"}}\n" + config,
		"proc/meminfo":                "MemTotal: 16777216 kB\nMemFree: 8388608 kB\nMemAvailable: 8388608 kB\nBuffers: 0 kB\nCached: 0 kB\nActive(anon): 8388608 kB\nInactive(anon): 0 kB\nAnonPages: 8388608 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\nVmallocTotal: 34359738367 kB\n",
		"proc/loadavg":                "0.10 0.20 0.30 1/100 4242\n",
		"proc/sys/kernel/pid_max":     "32768\n",
		"proc/sys/kernel/threads-max": "100000\n",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // agents are not root
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil { //nolint:gosec // see above
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"proc/net": "/proc/self/net", "sys": "/sys"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// kubeconfig writes who the agent is to the API server: the bearer of its pod's
// token.
func (a *agent) kubeconfig() {
	a.t.Helper()
	path := filepath.Join(a.dir, "kubeconfig")
	as := a.scene.cluster.WithToken(bed.TokenOfPod(a.t, a.scene.cluster, a.pod))
	if err := bed.WriteIdentity(path, as); err != nil {
		a.t.Fatal(err)
	}
}

// run starts the agent as the chart does: without root and any capability, with
// its memory limit, and as if there was one CPU.
func (a *agent) run() {
	a.t.Helper()
	command := bed.Unprivileged(os.Getenv(agentEnv),
		"--procfs="+filepath.Join(a.dir, "proc"), "--sysfs="+filepath.Join(a.dir, "sys"), "--host-root="+a.dir,
		"--kubeconfig="+filepath.Join(a.dir, "kubeconfig"), "--config="+a.configFile(),
		"--node-name="+a.Name, fmt.Sprintf("--listen=:%d", bed.AgentPort))
	command.Env = append(os.Environ(), a.scene.agents.Env(a.Name, a.Address.String())...)
	a.output = &process.Lines{}
	command.Stderr = a.output
	var err error
	if a.process, err = a.Start("the agent of "+a.Name, command, ""); err != nil {
		a.t.Fatal(err)
	}
	p, output := a.process, a.output
	a.t.Cleanup(func() {
		select {
		case <-p.Ended():
		default:
			if err := p.Kill(); err != nil {
				a.t.Error(err)
			}
		}
		if a.t.Failed() {
			a.t.Logf("log of %s:\n%s", p.Name(), tail(output.String(), 30))
		}
	})
}

// tail returns the last lines, each of a bounded length.
func tail(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = lines[max(0, len(lines)-count):]
	for i := range lines {
		lines[i] = lines[i][:min(len(lines[i]), 400)]
	}
	return strings.Join(lines, "\n")
}

func (a *agent) configFile() string { return filepath.Join(a.dir, "config.yaml") }

// reconfigure puts another configuration in place of the agent's, as a
// ConfigMap's volume does.
func (a *agent) reconfigure(change func(string) string) {
	a.t.Helper()
	old, err := fs.ReadFile(os.DirFS(a.dir), "config.yaml")
	if err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(a.configFile()+".new", []byte(change(string(old))), 0o644); err != nil { //nolint:gosec // agents are not root
		a.t.Fatal(err)
	}
	if err := os.Rename(a.configFile()+".new", a.configFile()); err != nil {
		a.t.Fatal(err)
	}
}

// get asks an agent's HTTP server from its own host, by loopback, as a kubelet.
func (a *agent) get(path string) (string, error) {
	return a.Get(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), bed.AgentPort), path)
}

// waitReady waits until the agent says that it is.
func (a *agent) waitReady() {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), time.Minute)
	defer cancel()
	err := a.process.WaitUntil(ctx, func(context.Context) error {
		_, err := a.get("/readyz")
		return err
	})
	if err != nil {
		a.t.Fatalf("%v\n%s", err, tail(a.output.String(), 10))
	}
}

// waitSamples waits until each agent has taken that many more samples of its
// network, by its metrics.
func waitSamples(t *testing.T, agents []*agent, count int) {
	t.Helper()
	first := map[string]int{}
	for _, a := range agents {
		now, err := a.samples()
		if err != nil {
			t.Fatal(err)
		}
		first[a.Name] = now
	}
	cluster.Eventually(t, "samples", func() error {
		for _, a := range agents {
			now, err := a.samples()
			if err != nil {
				return err
			}
			if taken := now - first[a.Name]; taken < count {
				return fmt.Errorf("%s took %d of %d", a.Name, taken, count)
			}
		}
		return nil
	})
}

// samples is how many samples of its network the agent has taken.
func (a *agent) samples() (int, error) {
	text, err := a.get("/metrics")
	if err != nil {
		return 0, err
	}
	return int(bed.Metric(text, samplesSeries)), nil
}

const samplesSeries = `taintlet_probe_duration_seconds_count{condition="NetworkUnavailable"}`
