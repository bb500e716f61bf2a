package kubelet_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/kubelet"
	"github.com/taintlet/taintlet/test/process"
)

const (
	manifest     = "../../deploy/taintlet.yaml"
	keepManifest = "../../deploy/keep.yaml"
	namespace    = "taintlet-system"
	daemonSet    = "taintlet" // and ServiceAccount, ConfigMap and container
	agentPort    = "4808"
)

// deployed is taintlet in a pod of a real kubelet, by the manifests as they are.
type deployed struct {
	cluster *cluster.Cluster
	kubelet *kubelet.Kubelet
	config  string // of the manifest's ConfigMap

	answered, ready time.Duration // since boot, when /readyz first said ok and when the DaemonSet was ready

	nodeBefore    *corev1.Node
	objectsBefore map[object]bool
}

// requireDeployment skips the test where it is not said that nothing is missing.
func requireDeployment(t *testing.T) {
	t.Helper()
	requireKubelet(t)
	if !cluster.Required("image") {
		t.Skip("needs a kubelet and buildah, both with root: set TAINTLET_REQUIRE=controlplane,kubelet,image")
	}
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
}

// deploy installs what deploy/ has, on a kubelet that has the image.
func deploy(t *testing.T) *deployed {
	t.Helper()
	requireDeployment(t)
	d := &deployed{}
	ip, connect := bed.ListenAsService(t)
	d.cluster = cluster.New(t, cluster.Options{
		AuditLog: true,
		Address:  ip, // so that the API server's certificate has it
		Args: map[string][]string{
			cluster.APIServer:         {"--service-cluster-ip-range=" + ip + "/24"},
			cluster.ControllerManager: {"--controllers=*"},
		},
	})
	connect(d.cluster.URL())
	d.startKubelet(t)
	requireFreePort(t) // now that no other kubelet of these tests runs
	setForeignTaints(t, d.cluster)
	d.nodeBefore, d.objectsBefore = d.cluster.GetNode(t, nodeName), objects(t, d.cluster)
	if err := d.cluster.InstallKeep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.cluster.Apply(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, "ok of /readyz", func() error {
		_, err := process.Get(t.Context(), http.DefaultClient, "http://127.0.0.1:"+agentPort+"/readyz")
		return err
	})
	d.answered = sinceBoot(t)
	if _, err := d.cluster.WaitDaemonSet(t.Context(), namespace, daemonSet, func(set *appsv1.DaemonSet) bool {
		return set.Status.DesiredNumberScheduled == 1 && set.Status.NumberReady == 1
	}); err != nil {
		t.Fatal(err)
	}
	d.ready = sinceBoot(t)
	settings, err := d.cluster.Client().CoreV1().ConfigMaps(namespace).Get(t.Context(), daemonSet, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.config = settings.Data["config.yaml"]
	return d
}

// startKubelet starts a kubelet that never finds its own disk full, and gives it
// the image under the name that the manifest asks for.
func (d *deployed) startKubelet(t *testing.T) {
	t.Helper()
	var err error
	d.kubelet, err = kubelet.Start(t.Context(), d.cluster, kubelet.Options{
		NodeName:                  nodeName,
		EvictionHard:              map[string]string{"memory.available": "100Mi"},
		NodeStatusUpdateFrequency: time.Second,
		SyncFrequency:             2 * time.Second,
		Pods:                      true,
		Progress:                  os.Stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			d.showLogs(t)
		}
		if err := d.kubelet.Stop(); err != nil {
			t.Error(err)
		}
	})
	archive, err := kubelet.BuildImage(t.Context(), t.TempDir(), imageVersion(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.kubelet.ImportImage(t.Context(), archive); err != nil {
		t.Fatal(err)
	}
}

// requireFreePort fails the test where somebody has the port of the pod, which is
// the host's.
func requireFreePort(t *testing.T) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", ":"+agentPort)
	if err != nil {
		t.Fatalf("does an agent run on this host? %v", err)
	}
	listener.Close() //nolint:errcheck // nothing was done with it
}

// imageVersion is the tag of the image in the manifest.
func imageVersion(t *testing.T) string {
	t.Helper()
	for _, object := range readManifest(t, manifest) {
		if object.GetKind() == "DaemonSet" {
			set := &appsv1.DaemonSet{}
			convert(t, object, set)
			repository, version, _ := strings.Cut(set.Spec.Template.Spec.Containers[0].Image, ":")
			if "docker.io/"+repository != kubelet.ImageName || version == "" {
				t.Fatalf("the manifest asks for image %s, and %s is what is built", set.Spec.Template.Spec.Containers[0].Image, kubelet.ImageName)
			}
			return version
		}
	}
	t.Fatalf("%s has no DaemonSet", manifest)
	return ""
}

// sinceBoot is now, as the kernel counts the start of a process.
func sinceBoot(t *testing.T) time.Duration {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}

// pod returns the DaemonSet's pod, of which there is one beside those that end.
func (d *deployed) pod(t *testing.T) *corev1.Pod {
	t.Helper()
	pods, err := d.cluster.Client().CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + daemonSet})
	if err != nil {
		t.Fatal(err)
	}
	live := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	if len(live) != 1 || len(live[0].Status.ContainerStatuses) != 1 {
		t.Fatalf("the DaemonSet has %d pods that do not end, want one with one container: %v", len(live), live)
	}
	return &live[0]
}

// process returns the agent's process.
func (d *deployed) process(t *testing.T) procfs.Proc {
	t.Helper()
	id := strings.TrimPrefix(d.pod(t).Status.ContainerStatuses[0].ContainerID, "containerd://")
	for line := range strings.Lines(inside(t, d.kubelet, "ctr", "--namespace=k8s.io", "tasks", "list")) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != id {
			continue
		}
		pid, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		process, err := procfs.NewProc(pid)
		if err != nil {
			t.Fatal(err)
		}
		return process
	}
	t.Fatalf("containerd has no task %s", id)
	return procfs.Proc{}
}

// showLogs shows what the containers and the kubelet have said.
func (d *deployed) showLogs(t *testing.T) {
	t.Helper()
	logs, err := filepath.Glob(d.kubelet.HostPath("/var/log/pods/*/*/*.log"))
	if err != nil {
		t.Error(err)
	}
	for _, log := range logs {
		text, err := os.ReadFile(log)
		t.Logf("%s: %v\n%s", strings.TrimPrefix(log, d.kubelet.HostPath("/")), err, text)
	}
	t.Log(d.kubelet.Tail(40))
}
