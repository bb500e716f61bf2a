package deploy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/check"
	shown "github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// breakage is one thing that is broken, and the line that says so.
type breakage struct {
	line, text string
	state      shown.Severity
	do         func(*scene)
	undo       func(*scene) // nil: applying the manifest again mends it
}

func kubectl(args ...string) func(*scene) {
	return func(s *scene) { s.c.RunKubectl(s.t, args...) }
}

func removed(kind, name string) func(*scene) {
	return kubectl("--namespace", bed.Namespace, "delete", kind, name)
}

// patched merges a patch into an object of the chart.
func patched(kind, patch string) func(*scene) {
	return kubectl("--namespace", bed.Namespace, "patch", kind, "taintlet", "--type=merge", "--patch", patch)
}

// status patches the status of the Node that has no agent.
func status(manager, patch string) func(*scene) {
	return func(s *scene) {
		s.t.Helper()
		_, err := s.c.Client().CoreV1().Nodes().Patch(s.t.Context(), bare, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, "status")
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// wrote writes a condition of taintlet's with a heartbeat of that age, counted from when
// it is called: a test of minutes has many of them.
func wrote(manager, kind, is, reason string, age time.Duration) func(*scene) {
	return func(s *scene) {
		s.t.Helper()
		at := time.Now().Add(-age).UTC().Format(time.RFC3339)
		status(manager, fmt.Sprintf(`{"status": {"conditions": [{"type": %q, "status": %q, "reason": %q, "message": "test", "lastHeartbeatTime": %q, "lastTransitionTime": %[4]q}]}}`, kind, is, reason, at))(s)
	}
}

const noConditions = `{"status": {"conditions": [{"type": "HostMemoryPressure", "$patch": "delete"}, {"type": "HostDiskPressure", "$patch": "delete"}, {"type": "HostPIDPressure", "$patch": "delete"}]}}`

func breakages() []breakage {
	clean := status("test", noConditions)
	return []breakage{
		{line: "granted", state: check.Failed, text: `may not watch nodes$`,
			do: kubectl("patch", "clusterrole", "taintlet", "--type=json", "--patch", `[{"op": "replace", "path": "/rules/0/verbs", "value": ["get", "list", "patch"]}]`)},
		{line: "bounded", state: check.Warning, text: `get secrets, list secrets`,
			do:   kubectl("create", "clusterrolebinding", "too-much", "--clusterrole=cluster-admin", "--serviceaccount=taintlet-system:taintlet"),
			undo: kubectl("delete", "clusterrolebinding", "too-much")},
		{line: "policies-refuse", state: check.Failed, text: `taintlet-nodes is not in force: .* is accepted`, do: removed("validatingadmissionpolicybinding", "taintlet-nodes")},
		{line: "policies-refuse", state: check.Failed, text: `is refused by something else`, do: removed("clusterrolebinding", "taintlet")},
		{line: "policies", state: check.Failed, text: `^the admission policy taintlet-events is not in force: it has no binding$`, do: removed("validatingadmissionpolicybinding", "taintlet-events")},
		{line: "policies-refuse", state: check.Failed, text: `^the policy taintlet-events is not in force: [^;]* is accepted$`, do: removed("validatingadmissionpolicybinding", "taintlet-events")},
		{line: "policies-refuse", state: check.Failed, text: `^the policy taintlet-leases is not in force: [^;]* is accepted$`, do: removed("validatingadmissionpolicybinding", "taintlet-leases")},
		{line: "policies", state: check.Failed, text: `the admission policy taintlet-keep is missing`, do: removed("mutatingadmissionpolicy", "taintlet-keep")},
		{line: "keep-effect", state: check.Warning, text: `not installed`, do: kubectl("delete", "mutatingadmissionpolicy,mutatingadmissionpolicybinding", "taintlet-keep")},
		{line: "keep-effect", state: check.Failed, text: keepsNothing, do: removed("mutatingadmissionpolicybinding", "taintlet-keep")},
		{line: "keep-effect", state: check.Failed, text: keepsNothing, do: keepFails},
		{line: "keep-effect", state: check.Warning, text: `^the policy taintlet-keep works now, and agents do not use it yet: the policy taintlet-keep fails: .* Noticed on bare$`, do: noticed, undo: unnoticed},
		{line: "images", state: check.Warning, text: `of 2 versions: 1 of other:1, 2 of taintlet/taintlet:`, do: otherImage("other:1"), undo: otherImage("")},
		{line: "policy-rules", state: check.Failed, text: `taintlet-nodes refuses taints of the configuration: .*example.com/disk`,
			do: configured(`rules:\n- {condition: DiskPressure, level: Degraded, taint: {key: example.com/disk, effect: NoSchedule}}\n`)},
		{line: "policy-rules", state: check.Failed, text: `taintlet-nodes refuses taints of the configuration: .*example.com/pool`,
			do: configured(`overrides:\n- nodeSelector: {kubernetes.io/hostname: bare}\n  rules: [{condition: DiskPressure, level: Degraded, taint: {key: example.com/pool, effect: NoSchedule}}]\n`)},
		{line: "policies-unchanged", state: check.Warning, text: `^the admission policy taintlet-nodes was changed by kubectl-patch`,
			do: kubectl("patch", "validatingadmissionpolicy", "taintlet-nodes", "--type=merge", "--patch", `{"spec": {"failurePolicy": "Ignore"}}`)},
		{line: "configuration", state: check.Failed, text: `is invalid, so running agents keep .*memory.availablePercent: Invalid value: 500`, do: configured(`memory: {availablePercent: 500}\n`)},
		{line: "configuration", state: check.Failed, text: `the ConfigMap taintlet-system/taintlet has no config.yaml`, do: removed("configmap", "taintlet")},
		{line: "configuration", state: check.Failed, text: `^quiet: test$`, do: all(configured(`heartbeat: 4m\n`), told("ConfigurationRefused")), undo: all(forgotten, reapplied)},
		{line: "in-force", state: check.Warning, text: `^2 of 2 agents use configuration [0-9a-f]{12}, newest is [0-9a-f]{12}$`, do: configured(`heartbeat: 4m\n`)},
		{line: "rules", state: check.Warning, text: `^no rule sets a taint for DiskPressure: `, do: configured(`rules:\n- {condition: DiskPressure, level: Degraded, taint: {effect: None}}\n`)},
		{line: "overrides", state: check.Warning, text: `^overrides apply to no Node: overrides\[1\] {example.com/pool=gone}$`,
			do: configured(`overrides:\n- nodeSelector: {kubernetes.io/hostname: bare}\n- nodeSelector: {example.com/pool: gone}\n`)},
		{line: "disks", state: check.Warning, text: `^no path of disk.paths is known to be on the disk of the container runtime, the kubelet$`, do: configured(`disk: {paths: [/data]}\n`)},
		{line: "disks", state: check.Warning, text: `of the kubelet in overrides\[0\] {kubernetes.io/hostname=bare}$`,
			do: configured(`overrides:\n- nodeSelector: {kubernetes.io/hostname: bare}\n  disk: {paths: [/]}\n`)},
		{line: "daemonsets", state: check.Warning, text: `^DaemonSets lack a toleration for taintlet.dev/memory-pressure, .*taintlet.dev/network-unavailable: default/web$`,
			do: all(daemonSet, configured(`keys: Own\n`)), undo: all(kubectl("--namespace=default", "delete", "daemonset", "web"), reapplied)},
		{line: "autoscalers", state: check.Warning, text: `^cluster-autoscaler counts Nodes with node.kubernetes.io/disk-pressure as unready; `,
			do:   kubectl("--namespace=kube-system", "create", "configmap", "cluster-autoscaler-status"),
			undo: kubectl("--namespace=kube-system", "delete", "configmap", "cluster-autoscaler-status")},
		{line: "autoscalers", state: check.Warning, text: `^Karpenter treats example.com/disk:PreferNoSchedule of DiskPressure as a hard taint: `,
			do:   all(nodePools, configured(`rules:\n- {condition: DiskPressure, level: Degraded, taint: {key: example.com/disk, effect: PreferNoSchedule}}\n`)),
			undo: all(kubectl("delete", "crd", "nodepools.karpenter.sh"), reapplied)},
		{line: "autoscalers", state: check.Warning, text: `^Karpenter treats taintlet.dev/disk-pressure-early:PreferNoSchedule of DiskPressure as a hard taint: `,
			do:   all(nodePools, configured(`disk: {earlyPercent: 30}\n`)),
			undo: all(kubectl("delete", "crd", "nodepools.karpenter.sh"), reapplied)},
		{line: "slots", state: check.Failed, text: `^1 of 1 eviction slots are missing in namespace taintlet-system, .*: the Leases taintlet-evict-0$`, do: removed("lease", "taintlet-evict-0")},
		{line: "restarts", state: check.Warning, text: `^bare: the agent ended .* out of memory \(OOMKilled\) and runs again: 3 restarts$`, do: killed(0), undo: killed(2 * time.Hour)},
		{line: "one-each", state: check.Failed, text: `^bare: 2 agents' pods are on this Node, and one writes it: default/second, taintlet-system/taintlet-`, do: agentOfAnother, undo: kubectl("--namespace=default", "delete", "pod", "second", "--grace-period=0", "--force")},
		{line: "daemonset", state: check.Failed, text: `^bare: the pod taintlet-\S+ is not ready`, do: readiness("False"), undo: readiness("True")},
		{line: "daemonset", state: check.Failed, text: `there is no DaemonSet of taintlet in namespace taintlet-system`, do: kubectl("--namespace", bed.Namespace, "delete", "daemonset", "taintlet", "--cascade=orphan")},
		{line: "daemonset", state: check.Warning, text: `^0 of 3 agents are of the DaemonSet's newest version`, do: patched("daemonset", `{"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}`), undo: patched("daemonset", `{"spec": {"template": {"metadata": {"annotations": null}}}}`)},
		{line: "service", state: check.Failed, text: `is missing in namespace`, do: removed("service", "taintlet")},
		{line: "service", state: check.Failed, text: `lists 0 agents, and 3 are ready`, do: patched("service", `{"spec": {"selector": {"other": "pods"}}}`), undo: patched("service", `{"spec": {"selector": {"other": null}}}`)},
		{line: "dns-pods", state: check.Warning, text: `^no ready DNS pods are found by kube-system/k8s-app=kube-dns`,
			do:   kubectl("--namespace=kube-system", "label", "endpointslice", dnsSlice, "k8s-app-"),
			undo: kubectl("--namespace=kube-system", "label", "endpointslice", dnsSlice, "k8s-app=kube-dns")},
		{line: "host-network", state: check.Failed, text: `lack hostNetwork: they do not see the routes`, do: patched("daemonset", `{"spec": {"template": {"spec": {"hostNetwork": false}}}}`)},
		{line: "host-pid", state: check.Failed, text: `lack hostPID: they do not see the limits`, do: patched("daemonset", `{"spec": {"template": {"spec": {"hostPID": false}}}}`)},
		{line: "kernel", state: check.Warning, text: `kernels are too old for PSI: bare \(4.19.0-27-amd64\)`,
			do:   status("test", `{"status": {"nodeInfo": {"kernelVersion": "4.19.0-27-amd64"}}}`),
			undo: status("test", `{"status": {"nodeInfo": {"kernelVersion": "6.12.0"}}}`)},
		{line: "signs", state: check.Failed, text: `^bare: the agent is silent; the agent last wrote the Node (60 min|1 h) ago$`,
			do: wrote("test", "HostDiskPressure", "False", "SpaceSufficient", time.Hour), undo: clean},
		{line: "unknown", state: check.Warning, text: `bare \(HostDiskPressure: StatfsFailed\)`,
			do: wrote("test", "HostDiskPressure", "Unknown", "StatfsFailed", 0), undo: clean},
		{line: "clock", state: check.Warning, text: `^bare: the host's clock is (1 h|60 min|5[0-9] min) ahead of the API server's`,
			do: wrote("taintlet", "HostDiskPressure", "False", "SpaceSufficient", -time.Hour), undo: clean},
		{line: "taints", state: check.Warning, text: `^quiet: all conditions are paused, because "nonsense" in`, do: kubectl("annotate", "node", quiet, "taintlet.dev/paused=nonsense"), undo: kubectl("annotate", "node", quiet, "taintlet.dev/paused-")},
		{line: "kubelet", state: check.Warning, text: `bare \(PIDPressure\)`, do: func(s *scene) {
			wrote("test", "HostPIDPressure", "False", "PIDsSufficient", 0)(s)
			kubeletSays(corev1.ConditionTrue)(s)
		}, undo: func(s *scene) { kubeletSays(corev1.ConditionFalse)(s); clean(s) }},
	}
}

// keepsNothing is what is said of a policy that fails.
const keepsNothing = `^the policy taintlet-keep fails: it lets the node-lifecycle-controller remove node.kubernetes.io/memory-pressure:NoSchedule, as a dry run on Node bare shows; `

// keepFails breaks the policy by a slip of the pen.
func keepFails(s *scene) {
	s.t.Helper()
	if err := s.c.BreakKeep(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// noticed writes what an agent writes that has noticed that.
func noticed(s *scene) {
	wrote("test", "HostDiskPressure", "False", "SpaceSufficient", 0)(s)
	kubectl("annotate", "node", bare, `taintlet.dev/record={"version": 1, "revision": 1, "keep": {"lost": "`+memoryKey+`:NoSchedule", "version": "1"}}`)(s)
}

func unnoticed(s *scene) {
	kubectl("annotate", "node", bare, "taintlet.dev/record-")(s)
	status("test", noConditions)(s)
}

// all does one thing after the other.
func all(things ...func(*scene)) func(*scene) {
	return func(s *scene) {
		for _, do := range things {
			do(s)
		}
	}
}

func reapplied(s *scene) { bed.Apply(s.t.Context(), s.t, s.c, s.manifest) }

// daemonSet makes a DaemonSet without tolerations, which no Node runs.
func daemonSet(s *scene) {
	bed.Apply(s.t.Context(), s.t, s.c, `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: web, namespace: default}, spec: {selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {nodeSelector: {no: node}, containers: [{name: web, image: web}]}}}}`)
}

// nodePools installs the kind of Karpenter, and one of it.
func nodePools(s *scene) {
	bed.Apply(s.t.Context(), s.t, s.c, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: nodepools.karpenter.sh},
		spec: {group: karpenter.sh, scope: Cluster, names: {kind: NodePool, plural: nodepools}, versions: [{name: v1, served: true, storage: true,
		schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`)
	s.c.RunKubectl(s.t, "wait", "--for=condition=Established", "crd/nodepools.karpenter.sh")
	bed.Apply(s.t.Context(), s.t, s.c, `{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: default}, spec: {template: {spec: {taints: []}}}}`)
}

// configured gives the agents' ConfigMap a configuration with one slot, and these lines.
func configured(lines string) func(*scene) {
	text := strings.ReplaceAll(bed.ConfigHeader+"eviction: {slots: 1}\n", "\n", `\n`) + lines
	return patched("configmap", `{"data": {"config.yaml": "`+text+`"}}`)
}

// told makes an Event as an agent writes it about the Node quiet.
func told(reason string) func(*scene) {
	return func(s *scene) {
		s.t.Helper()
		at := metav1.Now()
		event := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "quiet.told"}, Reason: reason, Type: corev1.EventTypeWarning, Message: "test",
			InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: quiet}, Source: corev1.EventSource{Component: "taintlet"}, FirstTimestamp: at, LastTimestamp: at,
		}
		if _, err := s.c.Client().CoreV1().Events("default").Create(s.t.Context(), event, metav1.CreateOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

func forgotten(s *scene) {
	kubectl("--namespace=default", "delete", "event", "quiet.told")(s)
}

// killed says of the agent on the Node bare that it ran out of memory then.
func killed(age time.Duration) func(*scene) {
	return func(s *scene) {
		s.t.Helper()
		pod := bed.PodOn(s.t, s.c, bare)
		patch := fmt.Sprintf(`{"status": {"containerStatuses": [{"name": "taintlet", "ready": true, "restartCount": 3, "image": "a", "imageID": "a",
			"state": {"running": {}}, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": %q}}}]}}`, time.Now().Add(-age).UTC().Format(time.RFC3339))
		if _, err := s.c.Client().CoreV1().Pods(pod.Namespace).Patch(s.t.Context(), pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
			s.t.Fatal(err)
		}
	}
}

// agentOfAnother is an agent of another installation on the Node bare.
func agentOfAnother(s *scene) {
	s.podWithPort("second", bare, `"containers": [{"name": "taintlet", "image": "a"}]`)
	kubectl("--namespace=default", "label", "pod", "second", "app.kubernetes.io/name=taintlet")(s)
}

func kubeletSays(status corev1.ConditionStatus) func(*scene) {
	return func(s *scene) {
		s.t.Helper()
		if err := s.nodes[bare].SetCondition(s.t.Context(), corev1.NodePIDPressure, status); err != nil {
			s.t.Fatal(err)
		}
	}
}

// otherImage gives one agent's pod another image; none: that of the others.
func otherImage(image string) func(*scene) {
	return func(s *scene) {
		if image == "" {
			image = bed.PodOn(s.t, s.c, held).Spec.Containers[0].Image
		}
		s.c.RunKubectl(s.t, "--namespace", bed.Namespace, "set", "image", "pod/"+bed.PodOn(s.t, s.c, bare).Name, "taintlet="+image)
	}
}

// readiness makes one agent's pod ready or not.
func readiness(status string) func(*scene) {
	return func(s *scene) {
		pod := bed.PodOn(s.t, s.c, bare)
		_, err := s.c.Client().CoreV1().Pods(pod.Namespace).Patch(s.t.Context(), pod.Name, types.StrategicMergePatchType, ready(pod.Status.PodIP, status), metav1.PatchOptions{}, "status")
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// An installation without a fault has no line that is not green. Each fault turns its
// line red, and once it is mended all is green again.
func TestEveryLineOfAnInstallation(t *testing.T) {
	s := install(t)
	text := s.allGreen(false)
	seen := map[string]bool{}
	if s.keeps {
		golden(t, "installed.txt", text)
	} else {
		cluster.Golden(t, "installed-stand-ins.txt", strings.ReplaceAll(text, release(), "v1.35.4"))
		seen["keep-effect"] = true // there is nothing to break
	}
	for _, b := range breakages() {
		if !s.keeps && strings.HasPrefix(b.line, "keep-") {
			continue
		}
		b.do(s)
		s.becomes(s.c.Admin(), false, b.line, b.state, b.text)
		seen[b.line] = true
		if b.undo != nil {
			b.undo(s)
		} else {
			bed.Apply(t.Context(), t, s.c, s.manifest)
		}
		s.allGreen(false)
	}
	if s.keeps {
		s.broken()
	}
	s.otherRelease()
	s.elsewhere()
	seen["program"], seen["installed"] = true, true
	s.waits()
	for line, b := range behindAProxy() {
		s.becomes(b.config(s), false, line, check.Failed, b.text)
		seen[line] = true
	}
	if s.keeps {
		s.viewer()
	}
	lines, _, err := run(t.Context(), s.c.Admin(), false)
	if err != nil {
		t.Fatal(err)
	}
	for name := range lines {
		if !seen[name] {
			t.Errorf("the line %s was never seen red", name)
		}
	}
}

// broken breaks two things at once and compares all that is printed.
func (s *scene) broken() {
	s.t.Helper()
	removed("service", "taintlet")(s)
	keepFails(s)
	s.becomes(s.c.Admin(), false, "service", check.Failed, "missing")
	s.becomes(s.c.Admin(), false, "keep-effect", check.Failed, keepsNothing)
	text, isWell := s.print(false)
	if isWell {
		s.t.Error("all is well")
	}
	golden(s.t, "broken.txt", text)
	for args, want := range map[string]int{"": 3, "--pre": 0, "-o=json": 3, "--namespace=elsewhere": 3, "-o=yaml": 3, "-o=xml": 2, "a b": 2, "--kubeconfig=/nonexistent": 1} {
		command := exec.CommandContext(s.t.Context(), s.plugin, append([]string{"check", "--kubeconfig=" + cluster.Kubeconfig(s.t, s.c.Admin())}, strings.Fields(args)...)...) //nolint:gosec // our own binary
		out, _ := command.CombinedOutput()
		if code := command.ProcessState.ExitCode(); code != want {
			s.t.Errorf("kubectl taintlet check %s: exit code %d, not %d\n%s", args, code, want, out)
		}
	}
	bed.Apply(s.t.Context(), s.t, s.c, s.manifest)
	s.allGreen(false)
}

// otherRelease checks with the program of another release.
func (s *scene) otherRelease() {
	s.t.Helper()
	var out strings.Builder
	isWell, err := check.Run(s.t.Context(), check.Options{Config: s.c.Admin(), Out: &out, Namespace: bed.Namespace, Version: "v0.2.0"})
	if want := "‼ the agents are of version 0.1.0 and this program is of version 0.2.0\n"; err != nil || !isWell || !strings.Contains(out.String(), want) {
		s.t.Errorf("%v, lacks %q:\n%s", err, want, out.String())
	}
}

// elsewhere checks the wrong namespace, and is told the right one.
func (s *scene) elsewhere() {
	s.t.Helper()
	var out strings.Builder
	isWell, err := check.Run(s.t.Context(), check.Options{Config: s.c.Admin(), Out: &out, Namespace: "elsewhere", Version: ownRelease})
	if want := "× taintlet is not installed in namespace elsewhere; it is in taintlet-system; "; err != nil || isWell || !strings.Contains(out.String(), want) {
		s.t.Errorf("%v, lacks %q:\n%s", err, want, out.String())
	}
}

// waits checks until a roll-out is over.
func (s *scene) waits() {
	s.t.Helper()
	readiness("False")(s)
	s.becomes(s.c.Admin(), false, "daemonset", check.Failed, `^bare: the pod`)
	ctx, cancel := context.WithTimeout(s.t.Context(), bed.Patience)
	defer cancel()
	var out strings.Builder
	told := &firstLine{wrote: func() { readiness("True")(s) }}
	isWell, err := check.Run(ctx, check.Options{Config: s.c.Admin(), Out: &out, Err: told, Namespace: bed.Namespace, Version: ownRelease, Wait: true})
	if err != nil || !isWell || !strings.HasPrefix(told.text, "waiting: bare: the pod taintlet-") || !strings.Contains(out.String(), "√ all 3 agents are ready\n") {
		s.t.Errorf("%v, %t, told %q:\n%s", err, isWell, told.text, out.String())
	}
}

// firstLine calls wrote once, with the first text.
type firstLine struct {
	text  string
	wrote func()
}

func (f *firstLine) Write(text []byte) (int, error) {
	if f.text == "" {
		f.text = string(text)
		f.wrote()
	}
	return len(text), nil
}

// viewer checks what somebody is told who may look at things and no more: what cannot
// be checked is not called good, nor bad.
func (s *scene) viewer() {
	s.t.Helper()
	s.c.RunKubectl(s.t, "create", "clusterrole", "viewer", "--verb=get,list",
		"--resource=nodes,pods,services,daemonsets.apps,endpointslices,leases,mutatingadmissionpolicies,mutatingadmissionpolicybindings")
	s.c.RunKubectl(s.t, "create", "clusterrolebinding", "viewer", "--clusterrole=viewer", "--user=viewer")
	config, err := s.c.Config("viewer")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, line := range []string{"granted", "bounded", "configuration", "policies-unchanged", "policies-refuse", "keep-effect"} {
		s.becomes(config, false, line, check.Skipped, `you(r account)? (may|is|are) not`)
	}
	lines, isWell, err := run(s.t.Context(), config, false)
	if err != nil || !isWell {
		s.t.Errorf("a viewer is told that all is not well: %v %v", err, lines)
	}
}

// proxied is a line that no API server that can be had turns red: its answers are
// changed on their way.
type proxied struct {
	text   string
	config func(*scene) *rest.Config
}

func behindAProxy() map[string]proxied {
	return map[string]proxied{
		"version": {`Kubernetes is v1.29.9, older than 1.30`, changed("/version", fmt.Sprintf(`"minor":"%s"`, strings.Split(release(), ".")[1]), `"minor":"29"`, release(), `v1.29.9`)},
		"nodes":   {`the Nodes cannot be listed: .*forbidden`, nobody},
	}
}

// changed replaces texts in the API server's answers at paths that end so.
func changed(path string, replacements ...string) func(*scene) *rest.Config {
	return func(s *scene) *rest.Config {
		config := s.c.Admin()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				response, err := next.RoundTrip(r)
				if err != nil || !strings.HasSuffix(r.URL.Path, path) {
					return response, err
				}
				body, err := io.ReadAll(response.Body)
				body = []byte(strings.NewReplacer(replacements...).Replace(strings.ReplaceAll(string(body), `": "`, `":"`)))
				response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
				return response, err
			})
		})
		return config
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// nobody has no rights.
func nobody(s *scene) *rest.Config {
	config, err := s.c.Config("nobody")
	if err != nil {
		s.t.Fatal(err)
	}
	return config
}

// Before an installation: each line green, and seen red.
func TestEveryLineBeforeAnInstallation(t *testing.T) {
	s := install(t)
	if text := s.allGreen(true); s.keeps {
		golden(t, "before.txt", text)
	}
	s.c.RunKubectl(t, "create", "clusterrole", "some", "--verb=get,create", "--resource=clusterroles,roles")
	s.c.RunKubectl(t, "create", "clusterrolebinding", "some", "--clusterrole=some", "--user=somebody")
	somebody, err := s.c.Config("somebody")
	if err != nil {
		t.Fatal(err)
	}
	s.c.RunKubectl(t, "create", "clusterrole", "most", "--verb=get,list,watch,create,update,patch", "--resource=nodes,nodes/status,pods,events,endpointslices.discovery.k8s.io,leases.coordination.k8s.io,clusterroles.rbac.authorization.k8s.io,mutatingadmissionpolicies.admissionregistration.k8s.io,validatingadmissionpolicies.admissionregistration.k8s.io,validatingadmissionpolicybindings.admissionregistration.k8s.io,configmaps,daemonsets.apps")
	s.c.RunKubectl(t, "create", "clusterrolebinding", "most", "--clusterrole=most", "--user=lacks-one")
	s.c.RunKubectl(t, "create", "clusterrole", "lists", "--verb=list", "--resource=mutatingadmissionpolicybindings.admissionregistration.k8s.io")
	s.c.RunKubectl(t, "create", "clusterrolebinding", "lists", "--clusterrole=lists", "--user=lacks-one")
	lacksOne, err := s.c.Config("lacks-one")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, b := range []struct {
		line, text string
		state      shown.Severity
		config     *rest.Config
		do, undo   func(*scene)
	}{
		{line: "version", text: `older than`, state: check.Failed, config: behindAProxy()["version"].config(s)},
		{line: "nodes", text: `cannot be listed`, state: check.Failed, config: nobody(s)},
		{line: "validating", text: `not served`, state: check.Failed, config: changed("/apis/admissionregistration.k8s.io/v1", `"validatingadmissionpolicies"`, `"others"`)(s)},
		{line: "mutating", text: `not served: the well-known taints cannot be kept`, state: check.Warning, config: changed("/apis/admissionregistration.k8s.io/v1", `"mutatingadmissionpolicies"`, `"others"`)(s)},
		{line: "creatable", text: `you may not create namespaces, create resourcequotas in taintlet-system.* and \d+ more; .*attempting to grant RBAC permissions not currently held`, state: check.Failed, config: somebody},
		{line: "creatable", text: `ClusterRole taintlet: .* not currently held:\W+\{[^{]*"mutatingadmissionpolicybindings"[^{]*$`, state: check.Failed, config: lacksOne},
		{line: "namespace", text: `refuses the agents' pods: .*violates PodSecurity`, state: check.Failed, config: s.c.Admin(),
			do:   kubectl("label", "namespace", bed.Namespace, "--overwrite", "pod-security.kubernetes.io/enforce=baseline"),
			undo: kubectl("label", "namespace", bed.Namespace, "--overwrite", "pod-security.kubernetes.io/enforce=privileged")},
		{line: "kernel", text: `too old for PSI`, state: check.Warning, config: s.c.Admin(),
			do:   status("test", `{"status": {"nodeInfo": {"kernelVersion": "4.19.0-27-amd64"}}}`),
			undo: status("test", `{"status": {"nodeInfo": {"kernelVersion": "6.12.0"}}}`)},
		{line: "port", text: `^pods declare port 4808 of their hosts: default/exporter \(bare\), default/sidecar \(quiet\)$`, state: check.Failed, config: s.c.Admin(),
			do: func(s *scene) {
				// The first declares it as the CSI livenessprobe does, the second by hostPort;
				// the third by another protocol, and the last has ended.
				s.podWithPort("exporter", bare, `"hostNetwork": true, "containers": [{"name": "a", "image": "a", "ports": [{"containerPort": 4808}]}]`)
				s.podWithPort("sidecar", quiet, `"initContainers": [{"name": "b", "image": "b", "restartPolicy": "Always", "ports": [{"containerPort": 80, "hostPort": 4808}]}], "containers": [{"name": "a", "image": "a"}]`)
				s.podWithPort("dns", held, `"containers": [{"name": "a", "image": "a", "ports": [{"containerPort": 53, "hostPort": 4808, "protocol": "UDP"}]}]`)
				s.podWithPort("job", held, `"containers": [{"name": "a", "image": "a", "ports": [{"containerPort": 53, "hostPort": 4808}]}]`)
				kubectl("--namespace=default", "patch", "pod", "job", "--subresource=status", "--type=merge", "--patch", `{"status": {"phase": "Succeeded"}}`)(s)
			}, undo: kubectl("--namespace=default", "delete", "pod", "exporter", "sidecar", "dns", "job", "--grace-period=0", "--force")},
		{line: "port", text: `^whether the port .* not allowed .*forbidden`, state: check.Skipped, config: somebody},
	} {
		if b.do != nil {
			b.do(s)
		}
		s.becomes(b.config, true, b.line, b.state, b.text)
		seen[b.line] = true
		if b.undo != nil {
			b.undo(s)
		}
	}
	lines, _, err := run(t.Context(), s.c.Admin(), true)
	if err != nil {
		t.Fatal(err)
	}
	for name := range lines {
		if !seen[name] {
			t.Errorf("the line %s was never seen red", name)
		}
	}
}

// podWithPort makes a pod on a Node.
func (s *scene) podWithPort(name, node, spec string) {
	s.t.Helper()
	pod := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "namespace": "default"}, "spec": {"nodeName": %q, "tolerations": [{"operator": "Exists"}], %s}}`, name, node, spec)
	if _, err := s.c.Client().CoreV1().RESTClient().Post().AbsPath("/api/v1/namespaces/default/pods").Body([]byte(pod)).SetHeader("Content-Type", "application/json").DoRaw(s.t.Context()); err != nil {
		s.t.Fatalf("%s: %v", name, err)
	}
}

// release is the control plane's version, such as v1.37.2.
func release() string {
	version, err := cluster.KubernetesVersion()
	if err != nil {
		panic(err) // it was started before
	}
	return version
}

// golden compares a text with a file that docs/status.md quotes.
func golden(t *testing.T, name, got string) {
	t.Helper()
	cluster.Golden(t, name, strings.ReplaceAll(got, release(), "v1.37.2")) // whatever the tests run on
}
