package kubelet_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

const (
	// fullPercent of the disk leave less than the 10 % that the agent asks for.
	fullPercent = 95
	mebibyte    = 1 << 20
)

// TestDeployed is the agent as it is shipped: the image, deploy/taintlet.yaml
// and deploy/keep.yaml, on a real kubelet, from installing to uninstalling.
func TestDeployed(t *testing.T) {
	d := deploy(t)
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"ready within two seconds", d.isReadySoon},
		{"the host's numbers are seen", d.seesTheHost},
		{"the token is good for its own Node only", d.tokenIsNarrow},
		{"a full disk", d.diskFills},
		{"little memory, and a broken ConfigMap", d.memoryRunsLow},
		{"the process is small", d.isSmall},
		{"a deleted pod is replaced", d.podIsReplaced},
		{"the documentation's commands", d.runsTheDocumentation},
		{"no node is stale", d.findsNoStaleNode},
		{"uninstalled", d.isUninstalled},
		{"nothing was refused", d.nothingWasRefused},
	} {
		if !t.Run(step.name, step.run) {
			return // the next one goes on from here
		}
	}
}

// runsTheDocumentation runs the commands for operators, on the Node that is
// there. Those of deploy/README.md are run by test/deploy.
func (d *deployed) runsTheDocumentation(t *testing.T) {
	// Each end of a pause takes a token.
	d.cluster.WaitAgentEvent(t, nodeName, "ConfigurationReloaded", d.configure(t, quick, func(settings map[string]any) {
		settings["heartbeat"], settings["writeBudget"] = "1m", map[string]any{"interval": "1s"}
	}))
	k := bed.NewConsole(t, d.cluster)
	for _, page := range []string{"docs/events.md", "docs/living-with-kubernetes.md", "docs/troubleshooting.md"} {
		for _, script := range bed.Scripts(t, page) {
			script = strings.ReplaceAll(script, "NODE", nodeName)
			t.Logf("$ %s%s", script, k.Run(script))
		}
	}
	if annotations := d.cluster.GetNode(t, nodeName).Annotations; annotations[taints.PausedAnnotation] != "" {
		t.Errorf("the documentation leaves the Node paused: %v", annotations)
	}
}

func (d *deployed) isReadySoon(t *testing.T) {
	answered, ready := d.answered-d.started(t), d.ready-d.started(t)
	t.Logf("from the start of the process to ok of /readyz: %s; to the DaemonSet's being ready, by a kubelet that has just started: %s", answered, ready)
	if answered > 2*time.Second {
		t.Errorf("ready after %s, want 2 s at most", answered)
	}
	if count := d.pod(t).Status.ContainerStatuses[0].RestartCount; count != 0 {
		t.Errorf("the container was restarted %d times", count)
	}
}

// started is when the agent's process was started, since boot.
func (d *deployed) started(t *testing.T) time.Duration {
	t.Helper()
	stat, err := d.process(t).Stat()
	if err != nil {
		t.Fatal(err)
	}
	const ticks = 100 // a second, for user space (USER_HZ)
	return time.Duration(stat.Starttime) * time.Second / ticks
}

// seesTheHost compares what the agent says on its Node, all conditions of which
// are good, with what this process, which is in no container, reads.
func (d *deployed) seesTheHost(t *testing.T) {
	node, err := d.cluster.WaitNode(t.Context(), nodeName, func(node *corev1.Node) bool {
		for _, kind := range []corev1.NodeConditionType{"HostMemoryPressure", "HostDiskPressure", "HostPIDPressure", "HostNetworkUnavailable"} {
			condition := cluster.Condition(node, kind)
			if condition == nil || condition.Status != corev1.ConditionFalse {
				return false
			}
			t.Logf("%s: %s", kind, condition.Message)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	message := cluster.Condition(node, "HostPIDPressure").Message
	match := regexp.MustCompile(`used \d+ of (\d+) tasks .* limit kernel\.(pid_max|threads-max),`).FindStringSubmatch(message)
	if match == nil {
		t.Fatalf("no limit in %q", message)
	}
	lower, setting := readSetting(t, "pid_max"), "pid_max"
	if threads := readSetting(t, "threads-max"); threads < lower {
		lower, setting = threads, "threads-max"
	}
	if match[1] != strconv.Itoa(lower) || match[2] != setting {
		t.Errorf("%q, want %d by %s", message, lower, setting)
	}
	// What is written lies in the pod's own emptyDir, and it has been written to.
	scratch := d.kubelet.HostPath(filepath.Join("/var/lib/kubelet/pods", string(d.pod(t).UID), "volumes/kubernetes.io~empty-dir/scratch"))
	cluster.Eventually(t, "a write into the emptyDir", func() error {
		var stat unix.Statx_t
		if err := unix.Statx(unix.AT_FDCWD, scratch, 0, unix.STATX_MTIME|unix.STATX_BTIME, &stat); err != nil {
			return err
		}
		if stat.Mtime == stat.Btime {
			return errors.New("nothing was ever in it")
		}
		return nil
	})
}

func readSetting(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/kernel/" + name)
	if err != nil {
		t.Fatal(err)
	}
	value, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// tokenIsNarrow tries, in dry runs, what a thief of the pod's own token could.
func (d *deployed) tokenIsNarrow(t *testing.T) {
	token, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/var/run/secrets/kubernetes.io/serviceaccount/token", d.process(t).PID))
	if err != nil {
		t.Fatal(err)
	}
	thief, err := kubernetes.NewForConfig(d.cluster.WithToken(string(token)))
	if err != nil {
		t.Fatal(err)
	}
	nodes := d.cluster.Client().CoreV1().Nodes()
	// The DaemonSet has no pod for a Node of this type.
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere", Labels: map[string]string{"type": "virtual-kubelet"}}}
	if _, err := nodes.Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer nodes.Delete(t.Context(), other.Name, metav1.DeleteOptions{}) //nolint:errcheck // the comparison in the end tells
	for _, try := range []struct {
		node, patch string
		denied      bool
	}{
		{nodeName, `{"metadata": {"annotations": {"taintlet.dev/held": "x"}}}`, false},
		{nodeName, `{"metadata": {"labels": {"example.com/x": "y"}}}`, true},
		{other.Name, `{"metadata": {"annotations": {"taintlet.dev/held": "x"}}}`, true},
	} {
		// The API server hears of a policy by a watch of its own.
		cluster.Eventually(t, "the right answer", func() error {
			_, err := thief.CoreV1().Nodes().Patch(t.Context(), try.node, types.MergePatchType, []byte(try.patch), metav1.PatchOptions{FieldManager: "taintlet", DryRun: []string{metav1.DryRunAll}})
			denied := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'taintlet-nodes'")
			if denied != try.denied || err != nil && !denied {
				return fmt.Errorf("%s of Node %s: denied %t, want %t: %v", try.patch, try.node, denied, try.denied, err) //nolint:errorlint // it may be nil
			}
			return nil
		})
	}
}

// diskFills fills the disk under the agent as the chart configures it. While the
// Node is tainted, the ConfigMap is edited: from then on the agent clears soon,
// where it would have waited for two minutes. It stays the same process.
func (d *deployed) diskFills(t *testing.T) {
	s, disk, before := follow(t, d.cluster), newDisk(t, d.kubelet), d.process(t).PID
	disk.takeSpace(fullPercent)
	s.until("taintlet holds the pair", held)
	s.stays = true
	s.untilControllerWorked()
	s.until("the condition is True", cluster.HasCondition("HostDiskPressure", corev1.ConditionTrue))
	t.Log(d.cluster.WaitAgentEvent(t, nodeName, "HostDiskPressureDegraded", " file system, "))

	began := time.Now()
	d.cluster.WaitAgentEvent(t, nodeName, "ConfigurationReloaded", d.configure(t, quick))
	t.Logf("the edited ConfigMap was in force after %s", time.Since(began).Round(time.Second))
	s.stays = false
	disk.giveSpace()
	s.until("the pair is gone", cluster.Not(tainted))
	s.until("the condition is False", cluster.HasCondition("HostDiskPressure", corev1.ConditionFalse))
	t.Log(d.cluster.WaitAgentEvent(t, nodeName, "HostDiskPressureOK", " file system, "))
	if after := d.process(t).PID; after != before {
		t.Errorf("process %d took the place of %d", after, before)
	}
}

// memoryRunsLow takes memory of the host's after the ConfigMap was broken: what
// counts is the one before.
func (d *deployed) memoryRunsLow(t *testing.T) {
	memory, err := process.ReadHostMemory()
	if err != nil {
		t.Fatal(err)
	}
	threshold := memory.Available / 4 * 3 // at most that much is taken, and others take and give some too
	d.cluster.WaitAgentEvent(t, nodeName, "ConfigurationReloaded", d.configure(t, quick, func(settings map[string]any) {
		settings["memory"] = map[string]any{
			"availableBytes": threshold, "stalledPercent": 0,
			"debounce": map[string]any{"clearFactor": 1, "clearAfter": "1s", "maxClearAfter": "1s"},
		}
	}))
	d.putConfig(t, "disk: no\n")
	t.Log(d.cluster.WaitAgentEvent(t, nodeName, "ConfigurationRefused", "stays in force"))

	release := d.takeMemory(t, threshold-256*mebibyte)
	lacksMemory := cluster.HasTaint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)
	wait := func(holds func(*corev1.Node) bool) {
		t.Helper()
		if _, err := d.cluster.WaitNode(t.Context(), nodeName, holds); err != nil {
			t.Fatal(err)
		}
	}
	wait(lacksMemory)
	wait(cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue))
	t.Log(d.cluster.WaitAgentEvent(t, nodeName, "HostMemoryPressureDegraded", "memory-pressure:NoSchedule"))
	release()
	wait(cluster.Not(lacksMemory))
	wait(cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
	t.Log(d.cluster.WaitAgentEvent(t, nodeName, "HostMemoryPressureOK", "removes taint"))
	d.cluster.WaitAgentEvent(t, nodeName, "ConfigurationReloaded", d.configure(t, quick, func(settings map[string]any) { settings["heartbeat"] = "1m" }))
}

// podIsReplaced deletes the pod while the Node is tainted.
func (d *deployed) podIsReplaced(t *testing.T) {
	s, disk := follow(t, d.cluster), newDisk(t, d.kubelet)
	disk.takeSpace(fullPercent)
	s.until("taintlet holds the pair", held)
	s.stays = true
	before := instance(t, s.last)
	if err := d.cluster.Client().CoreV1().Pods(namespace).Delete(t.Context(), d.pod(t).Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until("another instance is active", func(node *corev1.Node) bool { return instance(t, node) != before })
	after := instance(t, s.last)
	t.Logf("%s came after %s", after, before)
	pod := after[:strings.LastIndexByte(after, '-')] // an instance is called after its pod
	if _, err := d.cluster.WaitPod(t.Context(), namespace, pod, isReady); err != nil {
		t.Fatal(err)
	}
	t.Logf("from the start of the new process to its pod's being ready: %s", sinceBoot(t)-d.started(t))
	s.untilControllerWorked()
	s.stays = false
	disk.giveSpace()
	s.until("the pair is gone", cluster.Not(tainted))
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

func (d *deployed) isSmall(t *testing.T) {
	process, pod := d.process(t), d.pod(t)
	status, err := process.NewStatus()
	if err != nil {
		t.Fatal(err)
	}
	running := time.Since(pod.Status.ContainerStatuses[0].State.Running.StartedAt.Time).Round(time.Second)
	request := uint64(pod.Spec.Containers[0].Resources.Requests.Memory().Value()) //nolint:gosec // not negative
	t.Logf("VmRSS after %s: %d KiB, of it anonymous %d KiB; the most ever: %d KiB; requested: %d KiB",
		running, status.VmRSS>>10, status.RssAnon>>10, status.VmHWM>>10, request>>10)
	if status.VmRSS > request {
		t.Errorf("VmRSS is %d, more than the %d that the pod requests", status.VmRSS, request)
	}
	if count := pod.Status.ContainerStatuses[0].RestartCount; count != 0 {
		t.Errorf("the container was restarted %d times", count)
	}
}

// quick makes recovery quick enough to be waited for. It leaves the second of the
// two paths, which are on one disk here, so that both are seen to work in a pod.
func quick(settings map[string]any) {
	disk := settings["disk"].(map[string]any)
	disk["paths"] = []string{"/scratch"}
	disk["debounce"] = atOnce
}

// atOnce is as soon as a probe clears.
var atOnce = map[string]any{"clearAfter": "1s", "maxClearAfter": "1s"}

// configure edits the ConfigMap that the manifest brought, and returns how the
// agent calls what is in it.
func (d *deployed) configure(t *testing.T, edits ...func(map[string]any)) (hash string) {
	t.Helper()
	var settings map[string]any
	if err := yaml.Unmarshal([]byte(d.config), &settings); err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		edit(settings)
	}
	text, err := yaml.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	decoded, err := config.HostSchema().Load(file)
	if err != nil {
		t.Fatal(err)
	}
	d.putConfig(t, string(text))
	return decoded.Hash
}

func (d *deployed) putConfig(t *testing.T, text string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string]string{"config.yaml": text}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.cluster.Client().CoreV1().ConfigMaps(namespace).Patch(t.Context(), daemonSet, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// takeMemory leaves no more than that available on this host, as in the demo,
// until it is released.
func (d *deployed) takeMemory(t *testing.T, leave uint64) (release func()) {
	t.Helper()
	program, err := process.BuildProgram(t.Context(), "test/demo", t.TempDir(), process.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ballast, err := process.Start("the ballast", exec.Command(program, "take-memory", strconv.FormatUint(leave/mebibyte, 10)), "")
	if err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		if err := ballast.Kill(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(release)
	return release
}

// instance is who wrote the record.
func instance(t *testing.T, node *corev1.Node) string {
	t.Helper()
	var record struct{ Instance struct{ Name string } }
	if err := json.Unmarshal([]byte(node.Annotations[taints.RecordAnnotation]), &record); err != nil {
		t.Fatalf("%v: %s", err, brief(node))
	}
	return record.Instance.Name
}
