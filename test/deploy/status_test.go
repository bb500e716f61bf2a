package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	shown "github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// visibleWithin is how soon status has to show a fault.
const visibleWithin = 30 * time.Second

// statusFault is a fault of an installation, and the Problem by which status shows it.
type statusFault struct {
	kind     shown.Code
	node     string
	do, undo func(*scene) // no undo: applying the manifest again mends it
}

func statusFaults() []statusFault {
	const policies, bindings = "validatingadmissionpolicy", "validatingadmissionpolicybinding"
	patch := func(kind, name, patch string) func(*scene) {
		return kubectl("patch", kind, name, "--type=merge", "--patch", patch)
	}
	now := time.Now()
	return []statusFault{
		{kind: shown.DaemonSetMissing, do: kubectl("--namespace", bed.Namespace, "delete", "daemonset", "taintlet", "--cascade=orphan")},
		{kind: shown.AgentNotReady, node: bare, do: podStatus(`"conditions": [{"type": "Ready", "status": "False"}], "containerStatuses": [{"name": "taintlet", "image": "a", "imageID": "a", "ready": false, "restartCount": 0, "state": {"running": {}}}]`), undo: readiness("True")},
		{kind: shown.AgentNotStarted, node: bare, do: podStatus(`"conditions": [{"type": "Ready", "status": "False"}], "containerStatuses": [{"name": "taintlet", "image": "a", "imageID": "a", "ready": false, "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]`), undo: runsAgain},
		{kind: shown.AgentOutOfMemory, node: bare, do: podStatus(fmt.Sprintf(`"containerStatuses": [{"name": "taintlet", "image": "a", "imageID": "a", "ready": true, "restartCount": 1, "state": {"running": {}}, "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": %q}}}]`, now.UTC().Format(time.RFC3339))), undo: runsAgain},
		{kind: shown.AgentRestarted, node: bare, do: podStatus(fmt.Sprintf(`"containerStatuses": [{"name": "taintlet", "image": "a", "imageID": "a", "ready": true, "restartCount": 1, "state": {"running": {}}, "lastState": {"terminated": {"reason": "Error", "exitCode": 137, "finishedAt": %q}}}]`, now.UTC().Format(time.RFC3339))), undo: runsAgain},
		{kind: shown.SeveralAgents, node: quiet, do: func(s *scene) { bed.Apply(s.t.Context(), s.t, s.c, secondAgent) }, undo: kubectl("--namespace", bed.Namespace, "delete", "daemonset", "second")},
		{kind: shown.PermissionMissing, do: removed("clusterrolebinding", "taintlet")},
		{kind: shown.ConfigurationInvalid, do: patched("configmap", `{"data": {"config.yaml": "memory: {availablePercent: 500}"}}`)},
		{kind: shown.ConfigurationMissing, do: removed("configmap", "taintlet")},
		{kind: shown.ConditionWithoutRule, do: patched("configmap", `{"data": {"config.yaml": "apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\nrules: []\neviction: {slots: 1}\n"}}`)},
		{kind: shown.ConfigurationRefused, node: quiet, do: func(s *scene) {
			configured(`heartbeat: 4m\n`)(s)
			if err := os.WriteFile(s.agent.ConfigFile(), []byte(bed.ConfigHeader+"memory: {availablePercent: 500}"), 0o600); err != nil {
				s.t.Fatal(err)
			}
		}, undo: func(s *scene) {
			reapplied(s)
			s.agent.Reconfigure(quickly)
		}},
		{kind: shown.ConfigurationNotInForce, do: func(s *scene) { s.agent.Reconfigure(quickly + "heartbeat: 4m\n") }, undo: func(s *scene) { s.agent.Reconfigure(quickly) }},
		{kind: shown.PolicyMissing, do: removed(policies, "taintlet-events")},
		{kind: shown.PolicyNotInForce, do: removed(bindings, "taintlet-nodes")},
		{kind: shown.PolicyNotInForce, do: patch(bindings, "taintlet-leases", `{"spec": {"validationActions": ["Audit"]}}`), undo: func(s *scene) { anew(s, bindings, "taintlet-leases") }},
		{kind: shown.PolicyChanged, do: patch(policies, "taintlet-nodes", `{"spec": {"failurePolicy": "Ignore"}}`), undo: func(s *scene) { anew(s, policies, "taintlet-nodes") }},
		{kind: shown.SlotMissing, do: removed("lease", "taintlet-evict-0")},
		{kind: shown.VersionsDiffer, do: otherImage("other:1"), undo: otherImage("")},
		{kind: shown.ClockSkew, node: bare, do: wrote("taintlet", "HostDiskPressure", "False", "SpaceSufficient", -24*time.Hour), undo: status("test", noConditions)},
	}
}

// podStatus patches the status of the pod on the Node bare, as its kubelet does.
func podStatus(fields string) func(*scene) {
	return func(s *scene) {
		s.t.Helper()
		pod := bed.PodOn(s.t, s.c, bare)
		_, err := s.c.Client().CoreV1().Pods(pod.Namespace).Patch(s.t.Context(), pod.Name, types.StrategicMergePatchType, []byte(`{"status": {`+fields+`}}`), metav1.PatchOptions{}, "status")
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// runsAgain makes the pod on the Node bare as it was.
func runsAgain(s *scene) {
	podStatus(`"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": null`)(s)
}

// anew makes an object anew: who wrote it by hand is forgotten.
func anew(s *scene, kind, name string) {
	s.t.Helper()
	s.c.RunKubectl(s.t, "delete", kind, name)
	bed.Apply(s.t.Context(), s.t, s.c, s.manifest)
}

// secondAgent is another DaemonSet of agents, on the Node quiet.
const secondAgent = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: second, namespace: taintlet-system}, spec: {
  selector: {matchLabels: {second: "true"}}, template: {metadata: {labels: {second: "true", app.kubernetes.io/name: taintlet}},
  spec: {nodeSelector: {kubernetes.io/hostname: quiet}, tolerations: [{operator: Exists}], containers: [{name: taintlet, image: none}]}}}}`

// status shows each fault of an installation within 30 s, and nothing of it once it is
// mended. The command of a Finding shows its Events.
func TestStatusShowsEachFault(t *testing.T) {
	s := install(t)
	s.noProblem()
	for _, f := range statusFaults() {
		f.do(s)
		begin := time.Now()
		found := s.problem(f.kind, f.node)
		took := time.Since(begin)
		if took > visibleWithin {
			t.Errorf("%s was visible after %s", f.kind, took)
		}
		t.Logf("%s after %s: %s\n    %s", f.kind, took.Round(time.Millisecond), found.Text, found.Command)
		if f.undo != nil {
			f.undo(s)
		} else {
			bed.Apply(t.Context(), t, s.c, s.manifest)
		}
		s.noProblem()
	}
	s.asked()
	s.onCall()
	s.c.RunKubectl(t, "--namespace", bed.Namespace, "delete", "daemonset", "taintlet")
	cluster.Eventually(t, "no agent is healthy", func() error {
		report, isWell := s.fleet(s.c.Admin())
		if isWell || report.Summary.States[shown.Healthy] > 0 || report.Summary.States[shown.Down] != 2 {
			return fmt.Errorf("%+v", report.Summary)
		}
		return nil
	})
	s.problem(shown.DaemonSetMissing, "")
	s.unprivileged()
}

// fleet is what status finds.
func (s *scene) fleet(config *rest.Config) (report shown.Report, isWell bool) {
	s.t.Helper()
	var out bytes.Buffer
	isWell, err := shown.Run(s.t.Context(), shown.Options{
		Config: config, Out: &out, Err: os.Stderr, Output: "json", Namespace: bed.Namespace,
	})
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &report)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return report, isWell
}

// problem waits until status shows a Finding.
func (s *scene) problem(kind shown.Code, node string) (found shown.Finding) {
	s.t.Helper()
	cluster.Eventually(s.t, fmt.Sprintf("%s %s", kind, node), func() error {
		report, isWell := s.fleet(s.c.Admin())
		at := slices.IndexFunc(report.Findings, func(p shown.Finding) bool { return p.Code == kind && p.Node == node })
		if at < 0 {
			return fmt.Errorf("the problems are %+v", report.Findings)
		}
		found = report.Findings[at]
		if isWell && found.Severity == shown.Failure {
			return fmt.Errorf("all is well in spite of %+v", found)
		}
		if found.Command == "" {
			return fmt.Errorf("no command: %+v", found)
		}
		return nil
	})
	return found
}

// noProblem waits until status shows no Finding.
func (s *scene) noProblem() {
	s.t.Helper()
	cluster.Eventually(s.t, "no problem", func() error {
		report, _ := s.fleet(s.c.Admin())
		if len(report.Findings) > 0 || len(report.Unread) > 0 {
			return fmt.Errorf("%+v, %+v", report.Findings, report.Unread)
		}
		return nil
	})
}

// ask runs a verb of the plugin.
func (s *scene) ask(args ...string) (out string, code int) {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), s.plugin, append(args, "--kubeconfig="+cluster.Kubeconfig(s.t, s.c.Admin()))...) //nolint:gosec // our own binary
	text, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return string(text), command.ProcessState.ExitCode()
}

// asked asks for Nodes by the plugin, and for Events by the command that status names.
func (s *scene) asked() {
	s.t.Helper()
	for args, want := range map[string]string{
		"status hold": `there is no Node "hold"`, "status --wait quite": `there is no Node "quite"`,
		"status -l kubernetes.io/hostname=held -o name": "node/held\n",
		"status --as=nobody":                            "cannot list resource", "status " + held: "other conditions  ",
	} {
		out, _ := s.ask(strings.Fields(args)...)
		if !strings.Contains(out, want) {
			s.t.Errorf("%s: no %q in\n%s", args, want, out)
		}
	}
	for node, isTold := range map[string]bool{quiet: true, bare: false} {
		command := strings.Fields(shown.EventsOf(node))
		if out := s.c.RunKubectl(s.t, command[1:]...); strings.Contains(out, "ConfigurationRefused") != isTold {
			s.t.Errorf("%s prints\n%s", command, out)
		}
	}
}

// onCall is somebody with the role of the chart for that: status can read all but what the
// agents are allowed to do.
func (s *scene) onCall() {
	s.t.Helper()
	s.c.RunKubectl(s.t, "create", "clusterrolebinding", "oncall", "--clusterrole=taintlet-oncall", "--user=oncall")
	config, err := s.c.Config("oncall")
	if err != nil {
		s.t.Fatal(err)
	}
	cluster.Eventually(s.t, "all but the permissions", func() error {
		var out bytes.Buffer
		_, err := shown.Run(s.t.Context(), shown.Options{Config: config, Out: &out, Err: os.Stderr, Namespace: bed.Namespace})
		if want := "\nnot read: permissions of the agents (you are not allowed to)\n"; err == nil && !strings.Contains(out.String(), want) {
			err = fmt.Errorf("lacks %q:\n%s", want, out.String())
		}
		return err
	})
}

// unprivileged is somebody who may read Nodes and nothing else: status says so, and judges
// nothing by what it could not read.
func (s *scene) unprivileged() {
	s.t.Helper()
	s.c.RunKubectl(s.t, "create", "clusterrole", "looks-at-nodes", "--verb=get,list", "--resource=nodes")
	s.c.RunKubectl(s.t, "create", "clusterrolebinding", "looks-at-nodes", "--clusterrole=looks-at-nodes", "--user=looker")
	config, err := s.c.Config("looker")
	if err != nil {
		s.t.Fatal(err)
	}
	var report shown.Report
	cluster.Eventually(s.t, "the Nodes", func() error {
		_, err := shown.Run(s.t.Context(), shown.Options{Config: config, Out: io.Discard, Err: os.Stderr, Namespace: bed.Namespace})
		return err
	})
	report, _ = s.fleet(config)
	if len(report.Findings) > 0 || report.Summary.States[shown.Down] > 0 || len(report.Unread) < 6 {
		s.t.Errorf("%+v, %+v, %+v", report.Findings, report.Summary, report.Unread)
	}
}
