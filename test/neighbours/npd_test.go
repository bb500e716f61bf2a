package neighbours

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// Conditions and rules in JSON, as the chart and a file of the agent have them.
const (
	detectedTypes = `[{"type": "KernelDeadlock"%[1]s}, {"type": "NTPProblem"%[1]s}]`
	detectedRules = `[{"condition": "KernelDeadlock", "level": "Degraded", "taint": {"key": "example.com/kernel-deadlock", "effect": "NoSchedule"}},
		{"condition": "NTPProblem", "level": "Degraded", "reasons": ["NTPIsDown"], "taint": {"key": "example.com/ntp", "effect": "PreferNoSchedule"}}]`
)

// detected has a chart that knows conditions of node-problem-detector.
var detected = bed.Installation{Values: []string{
	"--set-json", "config.conditions=" + fmt.Sprintf(detectedTypes, ""), "--set-json", "config.rules=" + detectedRules,
}}

// plugin is a monitor of node-problem-detector as its config/custom-plugin-monitor.json, which
// asks each second whether a file is there.
const plugin = `{"plugin": "custom", "pluginConfig": {"invoke_interval": "1s", "timeout": "1s", "max_output_length": 80, "concurrency": 1},
 "source": "ntp-custom-plugin-monitor",
 "conditions": [{"type": "NTPProblem", "reason": "NTPIsUp", "message": "ntp service is up"}],
 "rules": [{"type": "permanent", "condition": "NTPProblem", "reason": "NTPIsDown", "path": %q, "timeout": "1s"}]}`

// problemDetector is the real node-problem-detector, with its own configuration for the
// kernel's log.
type problemDetector struct {
	t                   *testing.T
	command             []string
	kernelLog, ntpFails string // files
}

func newProblemDetector(t *testing.T, c *cluster.Cluster, node string) *problemDetector {
	t.Helper()
	program := build(t, "npd", "nodeproblemdetector")
	module, err := process.ModuleFolder(t.Context(), "npd", "k8s.io/node-problem-detector")
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := os.ReadFile(filepath.Join(module, "config/kernel-monitor-filelog.json"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	d := &problemDetector{t: t, kernelLog: at("kern.log"), ntpFails: at("ntp-fails")}
	for name, text := range map[string]string{
		"kern.log": "", "kernel.json": strings.Replace(string(shipped), "/var/log/kern.log", d.kernelLog, 1),
		"check.sh": "#!/bin/sh\nif [ -e " + d.ntpFails + " ]; then echo ntp is not running; exit 1; fi\necho ntp is running\n",
		"ntp.json": fmt.Sprintf(plugin, at("check.sh")),
	} {
		if err := os.WriteFile(at(name), []byte(text), 0o700); err != nil { //nolint:gosec // one is a program
			t.Fatal(err)
		}
	}
	admin := c.Admin()
	d.command = []string{
		program, "--apiserver-override=" + admin.Host + "?inClusterConfig=false&auth=" + cluster.Kubeconfig(t, admin), "--hostname-override=" + node,
		"--config.system-log-monitor=" + at("kernel.json"), "--config.custom-plugin-monitor=" + at("ntp.json"),
		"--k8s-exporter-heartbeat-period=2s", "--port=0", "--prometheus-port=0",
	}
	return d
}

func (d *problemDetector) start() *process.Process {
	d.t.Helper()
	command := exec.Command(d.command[0], d.command[1:]...) //nolint:gosec // it lives until it is ended
	return bed.StartProgram(d.t, "node-problem-detector", command, &process.Lines{})
}

// kernelSays writes a line of the kernel's log.
func (d *problemDetector) kernelSays(message string) {
	d.t.Helper()
	line := time.Now().Format("Jan _2 15:04:05") + " host kernel: [12.345678] " + message + "\n"
	file, err := os.OpenFile(d.kernelLog, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // written below
	if _, err := file.WriteString(line); err != nil {
		d.t.Fatal(err)
	}
}

// The real node-problem-detector detects, taintlet taints. When it is killed while its
// conditions are bad and good, nothing is set and nothing is cleared.
func TestNodeProblemDetector(t *testing.T) {
	requireNeighbours(t)
	c := detected.Require(t)
	node := c.Register(t, "detected").Name
	d := newProblemDetector(t, c, node)
	detector := d.start()
	startAgentWith(t, c, node, "conditions: "+fmt.Sprintf(detectedTypes, `, "period": "1s", "staleAfter": "1m", "debounce": {"clearAfter": "2s"}`)+"\nrules: "+detectedRules)
	shows := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) func(*corev1.Node) bool {
		return func(node *corev1.Node) bool {
			shown := cluster.Condition(node, kind)
			return shown != nil && shown.Status == status && shown.Reason == reason
		}
	}
	deadlock := cluster.HasTaint("example.com/kernel-deadlock", corev1.TaintEffectNoSchedule)
	ntp := cluster.HasTaint("example.com/ntp", corev1.TaintEffectPreferNoSchedule)
	waitNode(t, c, node, shows("HostKernelDeadlock", corev1.ConditionFalse, "KernelHasNoDeadlock"))
	waitNode(t, c, node, shows("HostNTPProblem", corev1.ConditionFalse, "NTPIsUp"))

	if err := os.WriteFile(d.ntpFails, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	waitNode(t, c, node, ntp)
	if err := os.Remove(d.ntpFails); err != nil {
		t.Fatal(err)
	}
	waitNode(t, c, node, cluster.Not(ntp))

	d.kernelSays("task docker:7 blocked for more than 300 seconds.")
	waitNode(t, c, node, deadlock)
	if err := detector.Kill(); err != nil {
		t.Fatal(err)
	}
	stale := waitNode(t, c, node, func(n *corev1.Node) bool {
		return shows("HostNTPProblem", corev1.ConditionUnknown, "ConditionStale")(n) && strings.HasPrefix(cluster.Condition(n, "HostKernelDeadlock").Message, "KernelDeadlock has not been updated for 1m0s")
	})
	if !deadlock(stale) || ntp(stale) {
		t.Errorf("taints while the reporter is gone: %v", stale.Spec.Taints)
	}

	if err := os.Truncate(d.kernelLog, 0); err != nil { // or it would read again what is not older than 5 min
		t.Fatal(err)
	}
	d.start()
	waitNode(t, c, node, cluster.Not(deadlock))
}
