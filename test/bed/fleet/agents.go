package fleet

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

// Agent is a running agent, on a host of the Scene.
type Agent struct {
	*bed.Host

	// Process is the agent's, Log what it logs.
	Process *process.Process
	Log     *process.Lines
	// Dir has its configuration and the tree of files that it reads.
	Dir string

	scene *Scene
	t     *testing.T
	pod   *corev1.Pod
}

// Quick is a configuration that lets Nodes be cleared after 10 s of good samples, however
// often that happens, so that one incident follows the other. All that decides whether and
// when a Node is tainted is the default.
const Quick = `
network: {debounce: {clearAfter: 10s, maxClearAfter: 10s}}
writeBudget: {interval: 1s}
`

// Start registers that many Nodes, the first hosts of the bed, and runs an agent
// on each with that configuration, for the length of the test. It returns when
// all are ready.
func (s *Scene) Start(t *testing.T, count int, config string) []*Agent {
	t.Helper()
	var agents []*Agent
	for _, h := range s.Network.Hosts[:count] {
		s.Cluster.Register(t, h.Name)
		s.addPod(t, metav1.NamespaceSystem, "kube-dns-"+h.Name, h, s.HasDNS(h))
		agents = append(agents, &Agent{Host: h, scene: s, t: t, pod: s.addPod(t, bed.Namespace, "taintlet-"+h.Name, h, true)})
	}
	s.waitSlices(t, bed.Namespace, "taintlet", count)
	s.waitSlices(t, metav1.NamespaceSystem, "kube-dns", min(count, len(s.Network.DNS)))
	for _, a := range agents {
		a.Dir = s.tree(t, a.Name, config)
		a.kubeconfig()
		a.Run()
	}
	for _, a := range agents {
		a.WaitReady()
	}
	return agents
}

// HasDNS says whether the host has a DNS server.
func (s *Scene) HasDNS(h *bed.Host) bool { return h.Number <= len(s.Network.DNS) }

// addPod makes a pod on the host, running and ready, for the length of the test:
// an agent in the host's network, or a DNS server.
func (s *Scene) addPod(t *testing.T, namespace, name string, h *bed.Host, wanted bool) *corev1.Pod {
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
	pods := s.Cluster.Client().CoreV1().Pods(namespace)
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
func (s *Scene) tree(t *testing.T, name, config string) string {
	t.Helper()
	dir := filepath.Join(s.dir, name)
	for file, content := range map[string]string{
		"config.yaml":                 bed.ConfigHeader + "disk: {paths: [/], availablePercent: 0.1, writeProbe: {directory: \"\"}}\n" + config,
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
func (a *Agent) kubeconfig() {
	a.t.Helper()
	path := filepath.Join(a.Dir, "kubeconfig")
	as := a.scene.Cluster.WithToken(bed.TokenOfPod(a.t, a.scene.Cluster, a.pod))
	if err := bed.WriteIdentity(path, as); err != nil {
		a.t.Fatal(err)
	}
}

// Run starts the agent as the chart does: without root and any capability, with
// its memory limit, and as if there was one CPU.
func (a *Agent) Run() {
	a.t.Helper()
	command := bed.Unprivileged(os.Getenv(agentEnv),
		"--procfs="+filepath.Join(a.Dir, "proc"), "--sysfs="+filepath.Join(a.Dir, "sys"), "--host-root="+a.Dir,
		"--kubeconfig="+filepath.Join(a.Dir, "kubeconfig"), "--config="+a.configFile(),
		"--node-name="+a.Name, fmt.Sprintf("--listen=:%d", bed.AgentPort))
	command.Env = append(os.Environ(), a.scene.manifest.Env(a.Name, a.Address.String())...)
	a.Log = &process.Lines{}
	command.Stderr = a.Log
	var err error
	if a.Process, err = a.Start("the agent of "+a.Name, command, ""); err != nil {
		a.t.Fatal(err)
	}
	p, output := a.Process, a.Log
	a.t.Cleanup(func() {
		select {
		case <-p.Ended():
		default:
			if err := p.Kill(); err != nil {
				a.t.Error(err)
			}
		}
		if a.t.Failed() {
			a.t.Logf("log of %s:\n%s", p.Name(), Tail(output.String(), 30))
		}
	})
}

// Tail returns the last lines, each of a bounded length.
func Tail(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = lines[max(0, len(lines)-count):]
	for i := range lines {
		lines[i] = lines[i][:min(len(lines[i]), 400)]
	}
	return strings.Join(lines, "\n")
}

func (a *Agent) configFile() string { return filepath.Join(a.Dir, "config.yaml") }

// Reconfigure puts another configuration in place of the agent's, as a
// ConfigMap's volume does.
func (a *Agent) Reconfigure(change func(string) string) {
	a.t.Helper()
	old, err := fs.ReadFile(os.DirFS(a.Dir), "config.yaml")
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

// Get asks an agent's HTTP server from its own host, by loopback, as a kubelet.
func (a *Agent) Get(path string) (string, error) {
	return a.Host.Get(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), bed.AgentPort), path)
}

// WaitReady waits until the agent says that it is.
func (a *Agent) WaitReady() {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), time.Minute)
	defer cancel()
	err := a.Process.WaitUntil(ctx, func(context.Context) error {
		_, err := a.Get("/readyz")
		return err
	})
	if err != nil {
		a.t.Fatalf("%v\n%s", err, Tail(a.Log.String(), 10))
	}
}

// WaitSamples waits until each agent has taken that many more samples of its
// network, by its metrics.
func WaitSamples(t *testing.T, agents []*Agent, count int) {
	t.Helper()
	first := map[string]int{}
	for _, a := range agents {
		now, err := a.Samples()
		if err != nil {
			t.Fatal(err)
		}
		first[a.Name] = now
	}
	cluster.Eventually(t, "samples", func() error {
		for _, a := range agents {
			now, err := a.Samples()
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

// Samples is how many samples of its network the agent has taken.
func (a *Agent) Samples() (int, error) {
	text, err := a.Get("/metrics")
	if err != nil {
		return 0, err
	}
	return int(bed.Sum(text, "taintlet_probe_samples_total", `condition="NetworkUnavailable"`)), nil
}
