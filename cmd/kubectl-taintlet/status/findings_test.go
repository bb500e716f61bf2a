package status

import (
	"cmp"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
)

var now = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

// healthy are two Nodes with agents, and an installation without a fault.
func healthy(t *testing.T) facts {
	t.Helper()
	text, err := os.ReadFile("testdata/healthy.json")
	if err != nil {
		t.Fatal(err)
	}
	i := &installation.Installation{}
	if err := json.Unmarshal(text, i); err != nil {
		t.Fatal(err)
	}
	return facts{
		installation: i, now: now, version: "v0.1.0",
		nodes: []Node{{Name: "n1", LastSign: new(now.Add(-2 * time.Minute))}, {Name: "n2", LastSign: new(now.Add(-time.Minute))}},
	}
}

// An installation without a fault has no Finding.
func TestHealthyInstallation(t *testing.T) {
	f := healthy(t)
	if found := find(f); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	f.installation = nil
	if found := find(f); len(found) > 0 {
		t.Errorf("without an installation: %+v", found)
	}
}

// event is one about a Node, a pod or the DaemonSet, so long ago.
func event(about, reason, message string, before time.Duration) *corev1.Event {
	e := &corev1.Event{Reason: reason, Message: message, LastTimestamp: metav1.NewTime(now.Add(-before))}
	kind := map[string]string{"FailedCreate": "DaemonSet", "Unhealthy": "Pod"}[reason]
	e.InvolvedObject.Kind, e.InvolvedObject.Name = cmp.Or(kind, "Node"), about
	return e
}

// fault is something that is wrong, and what is said of it. The command is a pattern.
type fault struct {
	code                Code
	node, text, command string
	do                  func(*world)
}

// world is what a fault is made in: two Nodes with agents, of which the pod is that of Node n2.
type world struct {
	*facts
	i   *installation.Installation
	pod *corev1.Pod
}

func notReady(pod *corev1.Pod, since time.Duration) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == "Ready" {
			c.Status, c.LastTransitionTime = "False", metav1.NewTime(now.Add(-since))
		}
	}
}

// agentFaults are those of agents.
func agentFaults() []fault {
	const logs = `^kubectl --namespace=taintlet-system logs --tail=20 taintlet-bbbbb$`
	const previous = `^kubectl --namespace=taintlet-system logs --tail=20 --previous taintlet-bbbbb$`
	return []fault{
		{DaemonSetMissing, "", `no DaemonSet of taintlet in namespace taintlet-system, so no agent runs; the last sign of an agent was 1 min ago`, `^helm --namespace=taintlet-system get manifest mine \| kubectl --namespace=taintlet-system apply`,
			func(w *world) { w.i.DaemonSets, w.i.Pods = nil, nil }},
		{NotInstalled, "", `^taintlet is not installed in namespace taintlet-system; the last sign of an agent was 1 min ago$`, `^kubectl taintlet check --pre --namespace=taintlet-system$`,
			func(w *world) {
				*w.i = installation.Installation{Namespace: w.i.Namespace, MayNot: []string{"patch nodes"}}
				w.nodes[1].isSilent = true
			}},
		{DaemonSetMissing, "", `; it is in monitoring;`, `^kubectl taintlet status --namespace=monitoring$`,
			func(w *world) {
				w.i.DaemonSets, w.i.Pods, w.i.Others = nil, nil, w.i.Pods
				w.i.Others[0].Namespace = "monitoring"
			}},
		{DaemonSetMissing, "", `its pods are not replaced`, `^helm `,
			func(w *world) { w.i.DaemonSets = nil }},
		{DaemonSetSelectsNoNode, "", `selects no Node`, `describe daemonset taintlet$`,
			func(w *world) { w.i.DaemonSets[0].Status.DesiredNumberScheduled = 0 }},
		{AgentMissing, "n2", `no agent's pod is on this Node; the agent last wrote the Node 1 min ago`, `describe daemonset taintlet$`,
			func(w *world) { w.i.Pods = w.i.Pods[:1] }},
		{AgentNotReady, "n2", `is not ready`, logs, // which explains why it is silent
			func(w *world) {
				notReady(w.pod, time.Hour)
				w.nodes[1].isSilent = true
			}},
		{AgentMissing, "", `1 of 3 Nodes have no agent's pod`, `describe daemonset taintlet$`,
			func(w *world) { w.i.DaemonSets[0].Status.DesiredNumberScheduled = 3 }},
		{AgentMissing, "", `1 of 3 Nodes have no agent's pod: Error creating: pods "taintlet-" is forbidden: violates PodSecurity "baseline:latest"$`, `describe daemonset taintlet$`,
			func(w *world) {
				w.i.DaemonSets[0].Status.DesiredNumberScheduled = 3
				w.i.Events = append(w.i.Events, event("taintlet", "FailedCreate", `Error creating: pods "taintlet-" is forbidden: violates PodSecurity "baseline:latest"`, time.Minute))
			}},
		{AgentNotStarted, "n2", `^the pod taintlet-bbbbb, made 2 d ago, has not started: 0/2 nodes are available: Insufficient memory`, `describe pod taintlet-bbbbb$`,
			func(w *world) {
				w.pod.Status.ContainerStatuses = nil
				w.pod.Status.Conditions = []corev1.PodCondition{{Type: "PodScheduled", Status: "False", Message: "0/2 nodes are available: Insufficient memory"}}
			}},
		{AgentNotStarted, "n2", `^the pod taintlet-bbbbb, made 2 d ago, has not started$`, `describe pod`,
			func(w *world) {
				notReady(w.pod, time.Minute)
				w.pod.Status.ContainerStatuses = nil
			}},
		{AgentNotStarted, "n2", `is waiting: ImagePullBackOff: Back-off pulling image; 0 restarts`, `describe pod`,
			func(w *world) { waits(w.pod, "ImagePullBackOff", "Back-off pulling image") }},
		{AgentNotStarted, "n2", `is waiting: CrashLoopBackOff: back-off 5m0s; it ended 9 s ago with exit code 2; 7 restarts; the agent last wrote`, previous,
			func(w *world) {
				waits(w.pod, "CrashLoopBackOff", "back-off 5m0s")
				ends(w.pod, corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 2}, 7)
			}},
		{AgentOutOfMemory, "n2", `it ended 9 s ago out of memory \(OOMKilled\)`, previous,
			func(w *world) {
				waits(w.pod, "CrashLoopBackOff", "")
				ends(w.pod, corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}, 3)
			}},
		{AgentOutOfMemory, "n2", `the agent ended 9 s ago out of memory \(OOMKilled\) and runs again: 1 restart`, previous,
			func(w *world) { ends(w.pod, corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}, 1) }},
		{AgentRestarted, "n2", `the agent ended 9 s ago with exit code 137 and runs again: 2 restarts`, previous,
			func(w *world) { ends(w.pod, corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 137}, 2) }},
		{AgentNotReady, "n2", `is not ready for 12 s: Readiness probe failed: context deadline exceeded; the agent last wrote the Node 1 min ago`, logs,
			func(w *world) {
				notReady(w.pod, 12*time.Second)
				failed := event("taintlet-bbbbb", "Unhealthy", "Readiness probe failed: context deadline exceeded", time.Second)
				w.i.Events = append(w.i.Events, failed)
			}},
		{AgentSilent, "n2", `the agent is silent; the agent last wrote`, logs, func(w *world) { w.nodes[1].isSilent = true }},
		{SeveralAgents, "n1", `2 agents' pods are on this Node, and one writes it: /taintlet-aaaaa, monitoring/taintlet-ccccc`, `^kubectl get pods --all-namespaces --field-selector=spec.nodeName=n1 --selector=app.kubernetes.io/name=taintlet$`,
			func(w *world) {
				second := w.pod.DeepCopy()
				second.Name, second.Namespace, second.Spec.NodeName = "taintlet-ccccc", "monitoring", "n1"
				w.i.Others = append(w.i.Others, second)
			}},
	}
}

func waits(pod *corev1.Pod, reason, message string) {
	notReady(pod, time.Minute)
	pod.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
}

func ends(pod *corev1.Pod, ended corev1.ContainerStateTerminated, restarts int32) {
	ended.FinishedAt = metav1.NewTime(now.Add(-9 * time.Second))
	pod.Status.ContainerStatuses[0].LastTerminationState.Terminated, pod.Status.ContainerStatuses[0].RestartCount = &ended, restarts
}

// otherFaults are those of the rest of the installation, and of hosts.
func otherFaults() []fault {
	const configuration = "apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\n"
	configured := func(text string) func(*world) {
		return func(w *world) { w.i.Config = new(configuration + text) }
	}
	return []fault{
		{PermissionMissing, "", `taintlet-system/taintlet may not patch nodes, patch nodes/status`, `^helm `,
			func(w *world) { w.i.MayNot = []string{"patch nodes", "patch nodes/status"} }},
		{RecordUnreadable, "n2", `^annotation`, `^kubectl --namespace=default events --for=node/n2$`, func(w *world) { w.nodes[1].Problem = "annotation taintlet.dev/record: version 7 is not 1" }},
		{TaintContested, "n2", `^another program removed the taint of MemoryPressure; another taint of the condition is on the Node$`, `^kubectl --namespace=default events --for=node/n2$`,
			func(w *world) {
				w.nodes[1].Conditions = []Condition{{Name: "MemoryPressure", RemovedBy: "a", Taints: []Taint{{}}}}
			}},
		{TaintContested, "n2", `^another program removed the taint of DiskPressure; taintlet does not set it until the condition has been OK$`, `^kubectl --namespace=default events --for=node/n2$`,
			func(w *world) { w.nodes[1].Conditions = []Condition{{Name: "DiskPressure", RemovedBy: "a"}} }},
		{PauseMistyped, "n2", `^all conditions are paused, because "Memorypressure" in the annotation taintlet.dev/paused is not one of them$`, `^kubectl annotate --overwrite node n2 taintlet.dev/paused=true$`,
			func(w *world) { w.nodes[1].mistypedPause = "Memorypressure" }},
		{KeepPolicyFails, "", `^the policy taintlet-keep fails: X\. Noticed on n1, n2$`, `^kubectl taintlet check$`,
			func(w *world) {
				w.nodes[0].keepFails, w.nodes[1].keepFails = "the policy taintlet-keep fails: X", "the policy taintlet-keep fails: X"
			}},
		{ClockSkew, "n2", `the host's clock is 24 h behind the API server's`, `^kubectl describe node n2$`,
			func(w *world) { w.nodes[1].ClockSkewSeconds = -24 * 3600 }},
		{ConfigurationMissing, "", `ConfigMap taintlet-system/taintlet has no config.yaml`, `^helm `,
			func(w *world) { w.i.Config = nil }},
		{ConfigurationInvalid, "", `memory.availablePercent: Invalid value: 500`, `^helm --namespace=taintlet-system get values mine$`,
			configured("memory: {availablePercent: 500}\n")},
		{ConfigurationInvalid, "", `do not start: memory.debounce.clearFactor: Invalid value: 0.5: must be 1 to 10 \(docs/configuration.md#memory\); memory.availablePercent: `, `^kubectl --namespace=taintlet-system edit configmap taintlet$`,
			func(w *world) {
				configured("memory: {availablePercent: 500, debounce: {clearFactor: 0.5}}\n")(w)
				w.i.Release = ""
			}},
		{ConfigurationRefused, "n2", `^configuration abc stays in force$`, `^kubectl --namespace=default events --for=node/n2$`,
			func(w *world) {
				w.i.Events = append(w.i.Events, event("n2", "ConfigurationRefused", "old", 3*time.Minute), event("n2", "ConfigurationRefused", "configuration abc stays in force", time.Minute))
			}},
		{ConfigurationNotInForce, "", `^1 of 2 agents use configuration 8198aaaaaaaa, newest is [0-9a-f]{12}$`, `^kubectl taintlet check --wait --namespace=taintlet-system$`,
			func(w *world) {
				w.nodes[0].Config, w.nodes[1].Config = config.HashOf([]byte(*w.i.Config)), "8198aaaaaaaa"
			}},
		{ConditionWithoutRule, "", `^no rule sets a taint for MemoryPressure, DiskPressure, PIDPressure, NetworkUnavailable: `, `^helm --namespace=taintlet-system get values mine$`,
			configured("rules: []\neviction: {slots: 1}\n")},
		{PolicyMissing, "", `admission policy taintlet-nodes is missing`, `^helm `,
			func(w *world) { delete(w.i.Policies, "taintlet-nodes") }},
		{PolicyMissing, "", `admission policy taintlet-keep is missing`, `^helm `,
			func(w *world) { delete(w.i.Policies, "taintlet-keep") }},
		{PolicyNotInForce, "", `taintlet-events is not in force: it has no binding`, `^helm `,
			func(w *world) { delete(w.i.Bindings, "taintlet-events") }},
		{PolicyNotInForce, "", `taintlet-nodes is not in force: its binding does not deny \(validationActions: \[Audit\]\)`, `^helm `,
			func(w *world) {
				w.i.Bindings["taintlet-nodes"].Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit}
			}},
		{PolicyNotInForce, "", `selects objects`, `^helm `,
			func(w *world) {
				w.i.Bindings["taintlet-nodes"].Spec.MatchResources = &admissionv1.MatchResources{ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
			}},
		{PolicyChanged, "", `^the admission policy taintlet-nodes was changed by kubectl-edit 5 min ago`, `^helm `,
			func(w *world) {
				w.i.Policies["taintlet-nodes"].ManagedFields = append(w.i.Policies["taintlet-nodes"].ManagedFields, edited("f:spec"))
			}},
		{SlotMissing, "", `1 of 2 eviction slots are missing in namespace taintlet-system, so fewer Nodes can evict: the Leases taintlet-evict-1$`, `^helm `,
			func(w *world) { w.i.Slots = w.i.Slots[:1] }},
		{VersionsDiffer, "", `agents are of 2 versions: 1 of taintlet/taintlet:0.1.0, 1 of taintlet/taintlet:0.2.0`, `rollout status`,
			func(w *world) { w.pod.Spec.Containers[0].Image = "taintlet/taintlet:0.2.0" }},
		{ProgramVersionDiffers, "", `the agents are of version 0.1.0 and this program is of version 0.2.0`, `version`,
			func(w *world) { w.version = "v0.2.0" }},
	}
}

func edited(field string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: "kubectl-edit", Time: new(metav1.NewTime(now.Add(-5 * time.Minute))), FieldsV1: metav1.NewFieldsV1(`{"` + field + `":{}}`)}
}

// allCodes are all Codes.
func allCodes() []Code {
	return []Code{
		NotInstalled, DaemonSetMissing, DaemonSetSelectsNoNode, PermissionMissing, ConfigurationMissing, ConfigurationInvalid, ConfigurationRefused, ConfigurationNotInForce,
		PolicyMissing, PolicyNotInForce, KeepPolicyFails, PolicyChanged, SlotMissing,
		AgentMissing, AgentNotStarted, AgentOutOfMemory, AgentNotReady, AgentSilent, SeveralAgents, RecordUnreadable,
		AgentRestarted, TaintContested, PauseMistyped, ClockSkew, ConditionWithoutRule, VersionsDiffer, ProgramVersionDiffers,
	}
}

// Each fault is one Finding, and no other one.
func TestEachFault(t *testing.T) {
	seen := map[Code]bool{}
	for _, fault := range append(agentFaults(), otherFaults()...) {
		f := healthy(t)
		fault.do(&world{&f, f.installation, f.installation.Pods[1]})
		found := find(f)
		if len(found) != 1 {
			t.Errorf("%s %q: %+v", fault.code, fault.text, found)
			continue
		}
		p := found[0]
		if p.Code != fault.code || p.Node != fault.node || !regexp.MustCompile(fault.text).MatchString(p.Text) || !regexp.MustCompile(fault.command).MatchString(p.Command) {
			t.Errorf("%s %q: %+v", fault.code, fault.text, p)
		}
		seen[fault.code] = true
	}
	for _, code := range allCodes() {
		if !seen[code] {
			t.Errorf("no fault makes %s", code)
		}
	}
}

// Each Code is listed where people look it up.
func TestKindsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/status.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range allCodes() {
		if !strings.Contains(string(page), "`"+string(code)+"`") {
			t.Errorf("docs/status.md does not list %s", code)
		}
	}
}

// Of a part that could not be read nothing is said.
func TestUnreadPartsAreNotJudged(t *testing.T) {
	f := healthy(t)
	f.installation = &installation.Installation{Namespace: "taintlet-system"}
	for _, part := range []string{installation.PartDaemonSet, installation.PartPods, installation.PartConfig, installation.PartPolicies, installation.PartSlots, installation.PartEvents, installation.PartPermissions} {
		f.installation.Unread = append(f.installation.Unread, installation.Unread{Part: part, Why: "you are not allowed to"})
	}
	if found := find(f); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// What is over is no Finding: a refusal by an agent that uses the configuration of the ConfigMap, the end of an agent long ago, a write of the status by a controller, and a
// pod that is being replaced.
func TestWhatIsOver(t *testing.T) {
	f := healthy(t)
	i := f.installation
	i.Events = append(i.Events, event("n1", "ConfigurationRefused", "old", time.Minute))
	f.nodes[0].Config = config.HashOf([]byte(*i.Config))
	ends(i.Pods[0], corev1.ContainerStateTerminated{Reason: "OOMKilled"}, 1)
	i.Pods[0].Status.ContainerStatuses[0].LastTerminationState.Terminated.FinishedAt = metav1.NewTime(now.Add(-2 * time.Hour))
	i.Policies["taintlet-nodes"].ManagedFields = append(i.Policies["taintlet-nodes"].ManagedFields, edited("f:status"))
	leaving := i.Pods[1].DeepCopy()
	leaving.DeletionTimestamp = new(metav1.NewTime(now))
	i.Pods = append(i.Pods, leaving)
	if found := find(f); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// A name that no object can have makes no command: people copy commands into a shell.
func TestHostileNamesMakeNoCommand(t *testing.T) {
	f := healthy(t)
	f.nodes = []Node{{Name: "n3; rm -rf ~", Problem: "x"}}
	f.installation.Pods = nil
	for _, p := range find(f) {
		if strings.Contains(p.Command, "rm -rf") {
			t.Errorf("%+v", p)
		}
	}
}

// The versions of builds between releases are not compared.
func TestVersionsBetweenReleases(t *testing.T) {
	for _, version := range []string{"(devel)", "v0.2.1-0.20261122-abc", ""} {
		f := healthy(t)
		f.version = version
		if found := find(f); len(found) > 0 {
			t.Errorf("%s: %+v", version, found)
		}
	}
}

// What a silent agent noticed of the policy may be over.
func TestASilentAgentsPolicyIsNoProblem(t *testing.T) {
	silent := Node{Name: "n1", keepFails: "the policy taintlet-keep fails: X", isSilent: true}
	if found := find(facts{nodes: []Node{silent}, now: now}); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}
