package hosts_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/hosts"
	"github.com/taintlet/taintlet/test/process"
)

var plugin = process.SharedProgram{Build: process.BuildPlugin}

const (
	// patience is how long anything is waited for. The machine is emulated, and slow.
	patience = 6 * time.Minute
	// settings are the chart's, but for clearing: thirteen incidents clear within an hour.
	settings = `apiVersion: taintlet.dev/v1alpha1
kind: TaintletConfiguration
debounce: {clearAfter: 10s, maxClearAfter: 10s}
writeBudget: {interval: 1s}
disk:
  paths: [/, /scratch]
  writeProbe: {directory: /scratch}
`
)

// releases are the machines.
func releases() []hosts.Release {
	return []hosts.Release{
		{Name: "bookworm"},
		{Name: "trixie"},
		// The kubelet needs a newer containerd than bullseye's.
		{Name: "bullseye", Userland: "bookworm", Arguments: "systemd.unified_cgroup_hierarchy=0"},
	}
}

// The settings of the machines are valid.
func TestSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.HostSchema().Load(file); err != nil {
		t.Error(err)
	}
}

// TestIncidents is taintlet as it is shipped, on machines with other kernels, systemd and
// control groups v2, while all kinds of trouble come and go.
func TestIncidents(t *testing.T) {
	cluster.SkipUnlessRequired(t)
	if !cluster.Required("hosts") {
		t.Skip("needs QEMU and mmdebstrap, with root: run `make hosts`, or set TAINTLET_REQUIRE=controlplane,hosts")
	}
	table := readTable(t)
	t.Cleanup(plugin.Remove)
	_ = plugin.Path(t) // it takes no time of the first incident
	for _, release := range releases() {
		t.Run(release.Name, func(t *testing.T) {
			h := start(t, release)
			kernel, err := h.Run(t.Context(), "uname -r")
			if err != nil {
				t.Fatal(err)
			}
			for _, incident := range incidents() {
				t.Run(incident.name, func(t *testing.T) {
					var r result
					defer func() { // also of a test that ends early
						r.right = !t.Failed()
						table.add(strings.TrimSpace(kernel), incident.name, r)
						table.write(t)
						if t.Failed() {
							rescue(t, h)
						}
					}()
					befall(t, h, incident, &r)
				})
			}
		})
	}
}

func start(t *testing.T, release hosts.Release) *hosts.Host {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // the disk may have to be built, after those of other machines
	defer cancel()
	h, err := hosts.Start(ctx, os.Stderr, release, "../../deploy", settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// result is a row of the table.
type result struct {
	words             string
	taintlet, kubelet time.Duration // from the start of the incident; 0: never
	right             bool
}

// befall lets an incident happen to a healthy Node, and returns when the Node is healthy again.
func befall(t *testing.T, h *hosts.Host, i incident, r *result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	wait(t, h, time.Now(), "the Node is healthy", isHealthy)
	restarts, before := restartsOf(t, h), run(t, h, changes+" | wc -l")
	began := time.Now()
	run(t, h, i.start)
	if i.do != nil {
		if err := i.do(ctx, h); err != nil {
			t.Fatal(err)
		}
	}
	if i.want.condition != "" {
		r.words, r.taintlet = judge(t, h, began, i.want)
	}
	r.kubelet = last(t, h, began, i)
	if i.want.taint != "" {
		toldByEventAndStatus(t, h, began, i.want)
		staysTainted(t, h, began.Add(r.taintlet), i.want.taint)
	}
	if i.kill != "" {
		if err := h.KillUnit(ctx, i.kill); err != nil {
			t.Fatal(err)
		}
	}
	if i.end != "" {
		end(t, h, i.end)
	}
	if i.undo != nil {
		if err := i.undo(ctx, h); err != nil {
			t.Fatal(err)
		}
	}
	ended := time.Now()
	healthy := wait(t, h, ended, "the Node is healthy again", isHealthy)
	if i.want.taint == "" {
		r.words = strings.TrimPrefix(r.words+"; ", "; ") + noTaint(t, h, began)
	}
	if text := run(t, h, crashes); strings.TrimSpace(text) != "" {
		t.Errorf("taintlet crashed: %s", text)
	}
	switch now := restartsOf(t, h); {
	case now == restarts && i.want.taint != "":
		toldByLog(t, h, before, i.want)
	case now != restarts && !i.restarts: // the kubelet removes old logs
		t.Errorf("taintlet's container was restarted %d times", now-restarts)
	}
	t.Logf("%s: taintlet %s, kubelet %s, healthy again %s after the end: %s", i.name, r.taintlet, r.kubelet, healthy.At.Sub(ended), r.words)
}

// judge waits for the taint, and for a condition with all that is wanted: the culprit may
// be known a moment later than the rest. It returns no time without a taint.
func judge(t *testing.T, h *hosts.Host, began time.Time, w want) (words string, after time.Duration) {
	t.Helper()
	if w.taint != "" {
		after = wait(t, h, began, "the Node has "+w.taint, hasTaint(w.taint)).At.Sub(began)
	}
	var said []string
	defer func() {
		if t.Failed() {
			t.Logf("%s said:\n%s", w.condition, strings.Join(said, "\n"))
		}
	}()
	told := wait(t, h, began, fmt.Sprintf("%s is bad for %v with %q", w.condition, w.reasons, w.words), func(node *corev1.Node) bool {
		condition := cluster.Condition(node, w.condition)
		if condition != nil && !slices.Contains(said, condition.Message) {
			said = append(said, condition.Message)
		}
		return condition != nil && (condition.Status == corev1.ConditionTrue) == (w.taint != "") && slices.Contains(w.reasons, condition.Reason) &&
			!slices.ContainsFunc(w.words, func(part string) bool { return !strings.Contains(condition.Message, part) })
	})
	condition := cluster.Condition(told.Node, w.condition)
	for _, part := range w.not {
		if strings.Contains(condition.Message, part) {
			t.Errorf("%q is in %s: %s", part, condition.Reason, condition.Message)
		}
	}
	if held := regexp.MustCompile(`(?:took|has)[a-z ]* (?:2\.[4-9]|[3-9]|\d\d)[\d.]* [GT]iB`).FindString(condition.Message); held != "" {
		t.Errorf("%q is more than the machine has: %s", held, condition.Message)
	}
	if w.within > 0 && after > w.within {
		t.Errorf("tainted after %s, want %s at most", after, w.within)
	}
	return condition.Reason + ": " + condition.Message, after
}

// toldByEventAndStatus fails the test if no Event since then tells of the taint, or if
// kubectl taintlet does not show what the condition says.
func toldByEventAndStatus(t *testing.T, h *hosts.Host, began time.Time, w want) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := waitEvent(ctx, h, began, w); err != nil {
		t.Error(err)
	}
	status, err := process.Output(ctx, t.TempDir(), nil, plugin.Path(t), "status", "--kubeconfig="+cluster.Kubeconfig(t, h.Cluster.Admin()))
	for _, part := range append([]string{strings.TrimPrefix(string(w.condition), "Host"), w.taint}, w.words...) {
		if !strings.Contains(status, part) {
			t.Errorf("%q is not in the status: %v\n%s", part, err, status)
		}
	}
}

// waitEvent returns when an Event since then tells of the taint.
func waitEvent(ctx context.Context, h *hosts.Host, since time.Time, w want) error {
	_, err := h.Cluster.WaitEvent(ctx, "Node", hosts.NodeName, string(w.condition)+"Degraded", func(event *corev1.Event) bool {
		return !event.LastTimestamp.Time.Before(since.Truncate(time.Second)) && strings.Contains(event.Message, w.taint)
	})
	return err
}

const (
	// changes prints the lines of the agent's log about levels, and crashes those that Go's runtime
	// wrote, which are not of the agent's form.
	changes = `cat $(ls -v /var/log/pods/taintlet-system*/*/*.log) | grep 'msg="condition changed"'` // 10.log comes after 9.log
	crashes = `cat /var/log/pods/taintlet-system*/*/*.log | grep -E ' F (panic|fatal error|runtime): ' || true`
)

// toldByLog fails the test if the log has no line about a level after the first ones.
func toldByLog(t *testing.T, h *hosts.Host, first string, w want) {
	t.Helper()
	lines := run(t, h, changes+" | tail -n +$(( "+strings.TrimSpace(first)+" + 1 ))")
	for line := range strings.Lines(lines) {
		if strings.Contains(line, " from=OK to=") && strings.Contains(line, "sets taint "+w.taint) {
			return
		}
	}
	t.Errorf("no line of the log tells of %s:\n%s", w.taint, lines)
}

// staysTainted fails the test if the Node has been without the taint since then.
func staysTainted(t *testing.T, h *hosts.Host, since time.Time, taint string) {
	t.Helper()
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if lost, err := h.Nodes.Wait(now, since, "the Node lacks "+taint, cluster.Not(hasTaint(taint))); err == nil {
		t.Errorf("the Node lost %s %s after the taint was set: %s", taint, lost.At.Sub(since), hosts.Brief(lost.Node))
	}
}

// last lets the incident go on, and returns how long after its start the kubelet's own
// condition told of it.
func last(t *testing.T, h *hosts.Host, began time.Time, i incident) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), i.lasts)
	defer cancel()
	told, err := h.Nodes.Wait(ctx, began, "the kubelet tells", func(node *corev1.Node) bool {
		condition := cluster.Condition(node, i.kubelet)
		return condition != nil && (condition.Status == corev1.ConditionTrue) != (i.kubelet == corev1.NodeReady)
	})
	if err != nil {
		return 0
	}
	return told.At.Sub(began)
}

// noTaint fails the test if a taint of taintlet's has come since then, or comes soon: also of
// what is over.
func noTaint(t *testing.T, h *hosts.Host, began time.Time) (words string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	found, err := h.Nodes.Wait(ctx, began, "a taint of taintlet's", hasOurs)
	if err != nil {
		return "no taint, which is right"
	}
	t.Errorf("a taint of taintlet's, %s after the start: %s", found.At.Sub(began), hosts.Brief(found.Node))
	ours := slices.IndexFunc(found.Node.Spec.Taints, func(taint corev1.Taint) bool { return isOurs(found.Node, taint) })
	return fmt.Sprintf("%s came %.0f s after the start", found.Node.Spec.Taints[ours].Key, found.At.Sub(began).Seconds())
}

func run(t *testing.T, h *hosts.Host, script string) (output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	output, err := h.Run(ctx, script)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return output
}

// end is run, again where the machine could start no program for half a minute.
func end(t *testing.T, h *hosts.Host, script string) {
	t.Helper()
	cluster.Eventually(t, "the end of the incident", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err := h.Run(ctx, script)
		return err
	})
}

// restartsOf is how often taintlet's container was restarted.
func restartsOf(t *testing.T, h *hosts.Host) int32 {
	t.Helper()
	pod, err := h.Pod(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if containers := len(pod.Status.ContainerStatuses); containers != 1 {
		t.Fatalf("the pod has %d containers, want 1", containers)
	}
	return pod.Status.ContainerStatuses[0].RestartCount
}

func wait(t *testing.T, h *hosts.Host, since time.Time, what string, holds func(*corev1.Node) bool) hosts.Version {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	version, err := h.Nodes.Wait(ctx, since, what, holds)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// rescue shows what the agent said, and where in the kernel it waits, and reboots the machine, so that the next incident
// finds a healthy Node.
func rescue(t *testing.T, h *hosts.Host) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	_ = h.SetCable(true)
	logs, err := h.Run(ctx, "tail -n 30 /var/log/pods/taintlet-system*/*/*.log; grep -s . /proc/$(pidof taintlet)/task/*/stack; journalctl --no-pager -n 40 -p warning; journalctl --no-pager -n 20 -u containerd; "+mendDisk+"; rm -f /var/lib/kubelet/ballast")
	t.Logf("the agent's log: %v\n%s", err, logs)
	if err := reboot(ctx, h); err != nil {
		t.Logf("reboot: %v", err)
	}
}

func hasTaint(key string) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool {
		return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == key })
	}
}

func hasOurs(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return isOurs(node, taint) })
}

// isOurs says whether taintlet's record names the taint.
func isOurs(node *corev1.Node, taint corev1.Taint) bool {
	return strings.Contains(node.Annotations[taints.RecordAnnotation], taint.Key)
}

// isHealthy says whether kubelet and taintlet find nothing wrong, and nothing of an earlier
// incident is left.
func isHealthy(node *corev1.Node) bool {
	ours := 0
	for _, condition := range node.Status.Conditions {
		switch {
		case condition.Type == corev1.NodeReady:
			if condition.Status != corev1.ConditionTrue {
				return false
			}
		case condition.Status != corev1.ConditionFalse:
			return false
		}
		if strings.HasPrefix(string(condition.Type), "Host") {
			ours++
		}
	}
	return ours >= 4 && len(node.Spec.Taints) == 0
}
