// Package neighbours runs taintlet beside the real programs that read taints and conditions
// of Nodes, on a real control plane, and compares what they do with what they do when the
// kubelet asks for the same taint. The programs are built from nested modules in this folder.
package neighbours

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
	"github.com/taintlet/taintlet/test/process"
)

// Rules in JSON.
const (
	hardRule = `{"condition": "MemoryPressure", "level": "Degraded", "taint": {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}}`
	softRule = `{"condition": "MemoryPressure", "level": "Degraded", "taint": {"key": "node.kubernetes.io/memory-pressure", "effect": "PreferNoSchedule"}}`
)

// keeping has the chart with the policy that keeps taints, plain has it without, so that
// agents use stand-ins there.
var (
	keeping = bed.Installation{Keep: true}
	plain   bed.Installation
	// provisioned and provisionedPlain have Karpenter, which would start Nodes for pods of
	// other tests. Agents may set a soft taint of memory as well.
	provisioned      = bed.Installation{Keep: true, Values: []string{"--set-json", "config.rules=[" + hardRule + "," + softRule + "]"}}
	provisionedPlain bed.Installation
	agent            = process.SharedProgram{Build: process.BuildAgent}
)

func TestMain(m *testing.M) {
	code := m.Run()
	agent.Remove()
	if err := errors.Join(keeping.Shared.Stop(nil), plain.Shared.Stop(nil), provisioned.Shared.Stop(nil), provisionedPlain.Shared.Stop(nil), repaired.Shared.Stop(nil), detected.Shared.Stop(nil)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// requireNeighbours skips a test unless TAINTLET_REQUIRE lists neighbours: the first build of
// the programs takes minutes.
func requireNeighbours(t *testing.T) {
	t.Helper()
	if !cluster.Required("neighbours") {
		t.Skip("needs the real neighbours: run `make neighbours`, or set TAINTLET_REQUIRE=controlplane,neighbours (the first build takes some minutes)")
	}
}

// build returns the path of the program of a nested module, built once and kept in Go's
// cache. The flags are more of the go command.
func build(t *testing.T, module, name string, flags ...string) string {
	t.Helper()
	program, err := process.Output(t.Context(), module, nil, "go", append(append([]string{"tool"}, flags...), "-n", name)...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(program)
}

// example returns the example of docs/neighbours.md that begins with that text.
func example(t *testing.T, begin string) string {
	t.Helper()
	for block := range strings.SplitSeq(readFile(t, "../../docs/neighbours.md"), "```") {
		if text, isYAML := strings.CutPrefix(block, "yaml\n"); isYAML && strings.HasPrefix(text, begin) {
			return text
		}
	}
	t.Fatalf("docs/neighbours.md has no example that begins with %s", begin)
	return ""
}

// trouble is a condition of a host, and a way in which an agent finds it and its end.
type trouble struct {
	name      string
	kubelets  corev1.NodeConditionType // the condition for which Kubernetes sets the taint
	wellKnown string                   // the key of that taint
	standIn   string
	begin     func(*fixtures.Host)
	end       func(*fixtures.Host)
}

// troubles has the disk first: all hosts share one tmpfs, and an agent finds only what fills
// it after its start.
func troubles() []trouble {
	return []trouble{
		{"disk", corev1.NodeDiskPressure, corev1.TaintNodeDiskPressure, "taintlet.dev/disk-pressure", fill, empty},
		{"memory", corev1.NodeMemoryPressure, corev1.TaintNodeMemoryPressure, "taintlet.dev/memory-pressure", func(h *fixtures.Host) { h.Memory(2) }, func(h *fixtures.Host) { h.Memory(50) }},
		{"pid", corev1.NodePIDPressure, corev1.TaintNodePIDPressure, "taintlet.dev/pid-pressure", func(h *fixtures.Host) { h.Tasks(30000) }, func(h *fixtures.Host) { h.Tasks(100) }},
		{"network", corev1.NodeNetworkUnavailable, corev1.TaintNodeNetworkUnavailable, "taintlet.dev/network-unavailable", func(h *fixtures.Host) { h.Carrier(false) }, func(h *fixtures.Host) { h.Carrier(true) }},
	}
}

// startAgent starts an agent on a healthy host. It finds a lost carrier soon, and asks for a
// repair then.
func startAgent(t *testing.T, c *cluster.Cluster, node string) *fixtures.Host {
	t.Helper()
	host := startAgentWith(t, c, node, "network: {period: 1s}\nrepair: {after: 4s}")
	for _, condition := range []string{"HostMemoryPressure", "HostDiskPressure", "HostPIDPressure"} {
		waitNode(t, c, node, cluster.HasCondition(condition, corev1.ConditionFalse))
	}
	return host
}

// startAgentWith is startAgent with more of a configuration. It does not wait.
func startAgentWith(t *testing.T, c *cluster.Cluster, node, more string) *fixtures.Host {
	t.Helper()
	host := fixtures.NewHost(t)
	free, total := space(t, host)
	config := fixtures.ConfigFile(t, fmt.Sprintf("disk: {period: 500ms, availablePercent: %.4f, debounce: {clearFactor: 1.001, clearAfter: 2s}}\n%s", free/total*99.7, more))
	bed.StartAgent(t, agent.Path(t), append(host.Flags(), "--kubeconfig="+cluster.Kubeconfig(t, bed.AgentOf(t, c, node)), "--config="+config, "--node-name="+node, "--listen=127.0.0.1:0")...)
	return host
}

// space is what is free of the host's root file system, and its size.
func space(t testing.TB, h *fixtures.Host) (free, total float64) {
	t.Helper()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(h.Root, &fs); err != nil {
		t.Fatal(err)
	}
	return float64(fs.Bavail) * float64(fs.Bsize), float64(fs.Blocks) * float64(fs.Bsize)
}

// fill crosses the threshold of startAgent.
func fill(h *fixtures.Host) { h.Fill(1) }

func empty(h *fixtures.Host) {
	h.T.Helper()
	if err := os.Remove(filepath.Join(h.Root, "ballast")); err != nil {
		h.T.Fatal(err)
	}
}

func waitNode(t *testing.T, c *cluster.Cluster, name string, holds func(*corev1.Node) bool) *corev1.Node {
	t.Helper()
	node, err := c.WaitNode(t.Context(), name, holds)
	if err != nil {
		t.Fatal(err)
	}
	return node
}
