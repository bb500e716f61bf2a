package kubelet_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// How long all containers run before they are measured, how long they are measured, and how
// often: as often as metrics-server asks and Prometheus scrapes, by their defaults or charts.
const (
	containersWarmUp   = 3 * time.Minute
	containersMeasured = 5 * time.Minute
	containersEvery    = 15 * time.Second
)

// neighbour is a container beside taintlet's: another agent that many nodes have.
type neighbour struct {
	name   string
	module string // the folder of the nested module that knows its version
	source string
	args   []string
	mounts map[string]string // paths of the host, by their path in the container
	scrape string            // its page of metrics
}

// neighbours have the arguments and mounts of their own manifests.
func neighbours(t *testing.T) []neighbour {
	t.Helper()
	const module = "../neighbours/npd"
	source, err := process.ModuleFolder(t.Context(), module, "k8s.io/node-problem-detector")
	if err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(source, "config")
	return []neighbour{
		{
			name: "node-exporter", module: "../exporter", source: "github.com/prometheus/node_exporter",
			args:   []string{"--path.rootfs=/host/root", "--path.procfs=/host/proc", "--path.sysfs=/host/sys", "--web.listen-address=127.0.0.1:9100"},
			mounts: map[string]string{"/host/root": "/", "/host/proc": "/proc", "/host/sys": "/sys"},
			scrape: "http://127.0.0.1:9100/metrics",
		},
		{
			name: "node-problem-detector", module: module, source: "k8s.io/node-problem-detector/cmd/nodeproblemdetector",
			args:   []string{"--logtostderr", "--config.system-log-monitor=/config/kernel-monitor.json,/config/readonly-monitor.json"},
			mounts: map[string]string{"/config": settings, "/var/log": "/var/log", "/dev/kmsg": "/dev/kmsg"},
			scrape: "http://127.0.0.1:20257/metrics",
		},
	}
}

// What `kubectl top pods --containers` says of the agent, beside other agents on the same real
// kubelet: metrics-server passes on the working set that the kubelet's /metrics/resource has.
func TestWorkingSet(t *testing.T) {
	if !cluster.Required("neighbours") {
		t.Skip("builds node_exporter and node-problem-detector, and measures for minutes: set TAINTLET_REQUIRE=controlplane,kubelet,image,neighbours")
	}
	d := deploy(t)
	names := []string{daemonSet}
	pages := []string{"http://127.0.0.1:" + agentPort + "/metrics"}
	d.letWriteNodes(t)
	for _, n := range neighbours(t) {
		d.runNeighbour(t, n)
		names, pages = append(names, n.name), append(pages, n.scrape)
	}
	seen := d.watchContainers(t, names, pages)
	for _, name := range names {
		values := seen[name]
		slices.Sort(values)
		t.Logf("%s: working set %.1f MiB, median of %d from %.1f to %.1f", name, values[len(values)/2]/mebibyte, len(values), values[0]/mebibyte, values[len(values)-1]/mebibyte)
	}
	request := d.pod(t).Spec.Containers[0].Resources.Requests.Memory().AsApproximateFloat64()
	if most := slices.Max(seen[daemonSet]); most > request {
		t.Errorf("the agent's working set was up to %.1f MiB, and its manifest asks for %.1f", most/mebibyte, request/mebibyte)
	}
}

// letWriteNodes gives the pods of the default namespace the role for node-problem-detector that
// each API server has.
func (d *deployed) letWriteNodes(t *testing.T) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "node-problem-detector"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-problem-detector"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: "default"}},
	}
	if _, err := d.cluster.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// runNeighbour builds a neighbour, and waits until its container serves its metrics.
func (d *deployed) runNeighbour(t *testing.T, n neighbour) {
	t.Helper()
	program, err := process.BuildOther(t.Context(), n.module, n.source, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	image := "localhost/taintlet-test/" + n.name + ":1"
	if err := d.kubelet.ImportBinary(t.Context(), program, image); err != nil {
		t.Fatal(err)
	}
	pod := cluster.NewPod(n.name, nodeName, corev1.Toleration{Operator: corev1.TolerationOpExists})
	pod.Spec.HostNetwork, pod.Spec.HostPID = true, true
	pod.Spec.Containers[0] = corev1.Container{
		Name: n.name, Image: image, ImagePullPolicy: corev1.PullNever, Args: n.args,
		SecurityContext: &corev1.SecurityContext{Privileged: new(true)},
		Env:             []corev1.EnvVar{{Name: "NODE_NAME", Value: nodeName}},
	}
	for inside, outside := range n.mounts {
		volume := fmt.Sprint("host-", len(pod.Spec.Volumes))
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: outside}}})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: inside, ReadOnly: true})
	}
	d.cluster.CreatePod(t, pod)
	cluster.Eventually(t, "metrics of "+n.name, func() error {
		_, err := process.Get(t.Context(), http.DefaultClient, n.scrape)
		return err
	})
}

// watchContainers scrapes the pages, and reads the working sets of the containers in bytes when
// they have warmed up.
func (d *deployed) watchContainers(t *testing.T, names, pages []string) map[string][]float64 {
	t.Helper()
	seen := map[string][]float64{}
	for begin := time.Now(); time.Since(begin) < containersWarmUp+containersMeasured; {
		if err := process.Pause(t.Context(), containersEvery); err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			if _, err := process.Get(t.Context(), http.DefaultClient, page); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(begin) < containersWarmUp {
			continue
		}
		resources, err := d.kubelet.Get(t.Context(), "/metrics/resource")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			bytes := workingSet(string(resources), name)
			if bytes == 0 {
				t.Fatalf("the kubelet says nothing of the container %s:\n%s", name, resources)
			}
			seen[name] = append(seen[name], bytes)
		}
	}
	return seen
}

// workingSet is that of a container on the kubelet's page, in bytes; 0: there is none.
func workingSet(page, container string) float64 {
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, `container_memory_working_set_bytes{container="`+container+`"`) {
			continue
		}
		value, err := strconv.ParseFloat(strings.Fields(line)[1], 64) // a time stamp follows
		if err == nil {
			return value
		}
	}
	return 0
}
