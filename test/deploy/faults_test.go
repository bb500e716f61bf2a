package deploy

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/check"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// seenWithin is how soon a fault is in kubectl taintlet status.
const seenWithin = 30 * time.Second

// five is a fleet of five agents as the chart installs them, with eviction on.
type five struct {
	t        *testing.T
	c        *cluster.Cluster
	manifest string
	folder   string
	program  string // the agent
	plugin   string // kubectl-taintlet
	admin    string // the administrator's kubeconfig
	hosts    []*bed.Kubelet
	byHand   *bed.Agent // a second agent of a Node
}

// evicting are values with a rule for level Critical, and one that is the default.
func evicting() map[string]any {
	rule := func(condition, level, key, effect string) map[string]any {
		return map[string]any{"condition": condition, "level": level, "taint": map[string]any{"key": key, "effect": effect}}
	}
	return map[string]any{
		"evict": map[string]any{"slots": 2},
		"config": map[string]any{"rules": []any{
			rule("MemoryPressure", "Critical", corev1.TaintNodeMemoryPressure, "NoExecute"),
			rule("DiskPressure", "Degraded", corev1.TaintNodeDiskPressure, "NoSchedule"),
		}},
	}
}

func newFive(t *testing.T) *five {
	t.Helper()
	cluster.SkipUnlessRequired(t)
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	f := &five{t: t, folder: t.TempDir()}
	var err error
	if f.program, err = process.BuildAgent(t.Context(), f.folder, process.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	if f.plugin, err = process.BuildPlugin(t.Context(), f.folder, process.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	f.c = cluster.New(t, cluster.Options{})
	f.admin = cluster.Kubeconfig(t, f.c.Admin())
	f.hosts, f.manifest = bed.InstallFleet(t, f.c, evicting(), 5, f.program)
	return f
}

// kubectl runs kubectl as the administrator.
func (f *five) kubectl(args ...string) { f.c.RunKubectl(f.t, args...) }

// newPod has the Node's pod replaced by one that runs the program, and waits until that is
// ready.
func (f *five) newPod(k *bed.Kubelet, program string) {
	f.t.Helper()
	k.UseProgram(program)
	old := bed.PodOn(f.t, f.c, k.Node)
	f.kubectl("--namespace", namespace, "delete", "pod", "--wait=false", old.Name)
	cluster.Eventually(f.t, "another pod on "+k.Node, func() error {
		if pod := bed.PodOn(f.t, f.c, k.Node); pod.UID == old.UID || !isReady(pod) {
			return fmt.Errorf("there is %s", pod.Name)
		}
		return nil
	})
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// writeAgain has the agent write its conditions: it does so when they are gone, and
// otherwise within five minutes.
func (f *five) writeAgain(k *bed.Kubelet) {
	f.t.Helper()
	var gone []string
	for _, kind := range []string{"HostMemoryPressure", "HostDiskPressure", "HostPIDPressure", "HostNetworkUnavailable"} {
		gone = append(gone, fmt.Sprintf(`{"type": %q, "$patch": "delete"}`, kind))
	}
	patch := `{"status": {"conditions": [` + strings.Join(gone, ",") + `]}}`
	if err := bed.PatchNode(f.t.Context(), f.c.Client(), k.Node, types.StrategicMergePatchType, patch, "status"); err != nil {
		f.t.Fatal(err)
	}
}

// reapply puts back what the chart installs.
func (f *five) reapply() { bed.Apply(f.t.Context(), f.t, f.c, f.manifest) }

// configure replaces a text of the ConfigMap.
func (f *five) configure(old, new string) {
	f.t.Helper()
	maps := f.c.Client().CoreV1().ConfigMaps(namespace)
	found, err := maps.Get(f.t.Context(), account, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	changed := regexp.MustCompile(old).ReplaceAllString(found.Data["config.yaml"], new)
	if changed == found.Data["config.yaml"] {
		f.t.Fatalf("no %q in\n%s", old, changed)
	}
	found.Data["config.yaml"] = changed
	if _, err := maps.Update(f.t.Context(), found, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		f.t.Fatal(err)
	}
}

// fault is one that an operator has to see.
type fault struct {
	name     string
	do, undo func(*five) // undo nil: what the chart installs is put back
	// kinds are what status calls it, one of which is enough. node is the Node that it
	// names; empty: none.
	kinds []string
	node  string
	// check matches a line of the check that is not green, with its name before it.
	check string
}

func faults() []fault {
	on := func(number int, do func(*five, *bed.Kubelet)) func(*five) {
		return func(f *five) { do(f, f.hosts[number-1]) }
	}
	anew := func(f *five, k *bed.Kubelet) { f.newPod(k, f.program) }
	return []fault{
		{name: "DaemonSet deleted", kinds: []string{"DaemonSetMissing"}, check: `^daemonset: `,
			do: func(f *five) { f.kubectl("--namespace", namespace, "delete", "daemonset", account) }},
		{name: "agent stopped", kinds: []string{"AgentNotReady"}, node: "worker-1", check: `^daemonset: .*worker-1`,
			do:   on(1, func(f *five, k *bed.Kubelet) { k.Signal(f.t, syscall.SIGSTOP) }),
			undo: on(1, func(f *five, k *bed.Kubelet) { k.Signal(f.t, syscall.SIGCONT) })},
		{name: "agent killed", kinds: []string{"AgentNotReady", "AgentNotStarted"}, node: "worker-2", check: `^daemonset: .*worker-2`,
			do: on(2, func(_ *five, k *bed.Kubelet) { k.Kill("Error") }), undo: on(2, anew)},
		{name: "agent out of memory", kinds: []string{"AgentOutOfMemory"}, node: "worker-3", check: `^(daemonset|restarts): .*worker-3.*OOMKilled`,
			do: on(3, func(_ *five, k *bed.Kubelet) { k.Kill("OOMKilled") }), undo: on(3, anew)},
		{name: "agents refused by the API server", kinds: []string{"PermissionMissing"}, check: `^granted: `,
			do: func(f *five) { f.kubectl("delete", "clusterrolebinding", account) }},
		{name: "configuration refused", kinds: []string{"ConfigurationRefused"}, node: "worker-5", check: `^configuration: `,
			do:   func(f *five) { f.configure(`(?m)^rules:`, "memory: {availablePercent: 200}\nrules:") },
			undo: func(f *five) { f.configure("memory: {availablePercent: 200}\nrules:", "rules:") }},
		{name: "condition without a rule", kinds: []string{"ConditionWithoutRule"}, check: `^rules: .*DiskPressure`,
			do: func(f *five) {
				f.configure(`(- condition: DiskPressure\n\s+level: Degraded\n\s+taint:\n\s+effect: )NoSchedule\n\s+key: \S+`, "${1}None")
			}},
		{name: "policy missing", kinds: []string{"PolicyMissing"}, check: `^policies: .*taintlet-events`,
			do: func(f *five) { f.kubectl("delete", "validatingadmissionpolicy", "taintlet-events") }},
		{name: "policy not in force", kinds: []string{"PolicyNotInForce"}, check: `^policies-refuse: .*taintlet-nodes`,
			do: func(f *five) { f.kubectl("delete", "validatingadmissionpolicybinding", "taintlet-nodes") }},
		{name: "keeping policy not in force", kinds: []string{"PolicyNotInForce"}, check: `^keep-\w+: `,
			do: func(f *five) { f.kubectl("delete", "mutatingadmissionpolicybinding", "taintlet-keep") }},
		{name: "policy changed by hand", kinds: []string{"PolicyChanged"}, check: `^policies-unchanged: .*taintlet-leases`,
			do: func(f *five) {
				f.kubectl("patch", "validatingadmissionpolicy", "taintlet-leases", "--type=json", "--patch", `[{"op": "replace", "path": "/spec/validations/0/expression", "value": "true"}]`)
			}, undo: func(f *five) { // nobody may be left who has changed it
				f.kubectl("delete", "validatingadmissionpolicy", "taintlet-leases")
				f.reapply()
			}},
		{name: "clock a day off", kinds: []string{"ClockSkew"}, node: "worker-4", check: `^clock: .*worker-4`,
			do: on(4, func(f *five, k *bed.Kubelet) {
				f.newPod(k, f.dayAhead())
				f.writeAgain(k)
			}), undo: on(4, func(f *five, k *bed.Kubelet) {
				anew(f, k)
				f.writeAgain(k)
			})},
		{name: "two agents on one Node", kinds: []string{"AgentNotReady"}, node: "worker-5", check: `^daemonset: .*worker-5`,
			do: on(5, func(f *five, k *bed.Kubelet) {
				f.byHand = bed.StartAgentCommand(f.t, k.Command(f.program, "by-hand", "127.0.0.1:0"))
				f.byHand.WaitLog("another agent, .* runs for this Node")
				f.kubectl("--namespace", namespace, "delete", "pod", "--wait=false", bed.PodOn(f.t, f.c, k.Node).Name)
				f.byHand.WaitLog("taintlet starts") // the new pod waits for it
			}), undo: on(5, func(f *five, k *bed.Kubelet) {
				f.byHand.Kill()
				anew(f, k)
			})},
		{name: "slot Leases deleted", kinds: []string{"SlotMissing"}, check: `^slots: `,
			do: func(f *five) {
				f.kubectl("--namespace", namespace, "delete", "lease", "taintlet-evict-0", "taintlet-evict-1")
			}},
	}
}

// dayAhead builds an agent whose wall clock is a day ahead of this machine's, where it
// stamps what it writes.
func (f *five) dayAhead() string {
	f.t.Helper()
	folder := f.t.TempDir()
	overlay, err := process.Overlay("../..", folder, process.Swap{
		File: "taints/apiserver/client.go", Old: ", time.Now())", New: ", time.Now().Add(24*time.Hour))",
	})
	if err != nil {
		f.t.Fatal(err)
	}
	program, err := process.BuildAgent(f.t.Context(), folder, process.BuildOptions{Overlay: overlay})
	if err != nil {
		f.t.Fatal(err)
	}
	return program
}

// problem is what status says of something that is wrong.
type problem struct{ Code, Node, Text string }

// ask runs kubectl taintlet and returns what it prints.
func (f *five) ask(args ...string) (string, error) {
	command := exec.CommandContext(f.t.Context(), f.plugin, append(args, "--kubeconfig="+f.admin)...) //nolint:gosec // our own binary
	var said strings.Builder
	command.Stderr = &said
	out, err := command.Output()
	if code := command.ProcessState.ExitCode(); code != 0 && code != notWell {
		return "", fmt.Errorf("kubectl taintlet %s: %w\n%s%s", strings.Join(args, " "), err, out, &said)
	}
	return string(out), nil
}

// notWell is the exit code of verbs that found something wrong.
const notWell = 3

// problems are what status shows, in both forms.
func (f *five) problems() ([]problem, error) {
	data, err := f.ask("status", "-o=json")
	if err != nil {
		return nil, err
	}
	var report struct{ Findings []problem }
	if err := yaml.Unmarshal([]byte(data), &report); err != nil || len(report.Findings) == 0 {
		return nil, err
	}
	text, err := f.ask("status")
	if err != nil {
		return nil, err
	}
	shown := slices.DeleteFunc(report.Findings, func(p problem) bool { return !strings.Contains(text, p.Text[:min(len(p.Text), 20)]) })
	return shown, nil
}

// complaints are the lines of the check that are not green, each after its name.
func (f *five) complaints() ([]string, error) {
	data, err := f.ask("check", "-o=json")
	if err != nil {
		return nil, err
	}
	var report check.Report
	if err := json.Unmarshal([]byte(data), &report); err != nil {
		return nil, err
	}
	var all []string
	for _, line := range report.Lines {
		if line.Severity == check.Failed || line.Severity == check.Warning {
			all = append(all, line.Name+": "+line.Text)
		}
	}
	return all, nil
}

// waitWell waits until neither status nor check complains.
func (f *five) waitWell() {
	f.t.Helper()
	cluster.Eventually(f.t, "a fleet without a fault", func() error {
		all, err := f.problems()
		if err != nil || len(all) > 0 {
			return fmt.Errorf("status: %v %w", all, err)
		}
		lines, err := f.complaints()
		if err != nil || len(lines) > 0 {
			return fmt.Errorf("check: %q %w", lines, err)
		}
		return nil
	})
}

// wantShown waits until status shows the fault, not longer than seenWithin.
func (f *five) wantShown(fault fault) {
	f.t.Helper()
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		all, err := f.problems()
		if err != nil {
			f.t.Fatal(err)
		}
		at := slices.IndexFunc(all, func(p problem) bool { return slices.Contains(fault.kinds, p.Code) && p.Node == fault.node })
		if at >= 0 {
			f.t.Logf("after %.1f s status says: %s", time.Since(began).Seconds(), all[at].Text)
			return
		}
		if time.Since(began) > seenWithin {
			f.t.Errorf("after %s status shows no %v, but %+v", seenWithin, fault.kinds, all)
			return
		}
	}
}

// wantChecked waits until the check has a line about the fault.
func (f *five) wantChecked(fault fault) {
	f.t.Helper()
	pattern := regexp.MustCompile(fault.check)
	cluster.Eventually(f.t, "a line of the check", func() error {
		lines, err := f.complaints()
		if err != nil {
			return err
		}
		if at := slices.IndexFunc(lines, pattern.MatchString); at >= 0 {
			f.t.Logf("check says: %s", lines[at])
			return nil
		}
		return fmt.Errorf("none matches %s: %q", pattern, lines)
	})
}

// Each fault of an installation is in kubectl taintlet status within 30 s, and in kubectl
// taintlet check. Once it is mended, both are content again.
func TestEveryFaultIsSeen(t *testing.T) {
	f := newFive(t)
	f.waitWell()
	for _, fault := range faults() {
		t.Run(fault.name, func(t *testing.T) {
			outer := f.t
			f.t = t
			defer func() { f.t = outer }()
			fault.do(f)
			f.wantShown(fault)
			f.wantChecked(fault)
			if fault.undo != nil {
				fault.undo(f)
			} else {
				f.reapply()
			}
			f.waitWell()
		})
	}
}
