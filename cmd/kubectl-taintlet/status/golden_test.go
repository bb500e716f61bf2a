package status

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/fixtures"
)

var update = flag.Bool("update", false, "write the golden files")

// recorded are the Nodes that TestStatus of test/integration recorded: what real
// agents and a real control plane made of them.
func recorded(t testing.TB) map[string]*taints.Node {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	nodes := map[string]*taints.Node{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		node := &corev1.Node{}
		if err := yaml.UnmarshalStrict(text, node); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		nodes[node.Name] = apiserver.NodeOf(node)
	}
	return nodes
}

// recordedAt is just after the last of them was written.
func recordedAt(nodes map[string]*taints.Node) time.Time {
	var last time.Time
	for _, node := range nodes {
		if at := node.WrittenAt(); at.After(last) {
			last = at
		}
	}
	return last.Add(8 * time.Second)
}

// The golden files show what people see. docs/status.md quotes some of them.
func TestGolden(t *testing.T) {
	nodes := recorded(t)
	now := recordedAt(nodes)
	nodes["braked"] = braked(t, now)
	all := slices.Sorted(func(yield func(string) bool) {
		for name := range nodes {
			if !yield(name) {
				return
			}
		}
	})
	healthy := []string{"no-agent", "well"}
	tests := map[string]struct {
		nodes, asked []string
		output       string
		later        time.Duration
	}{
		"all":         {nodes: all},
		"all-wide":    {nodes: all, output: OutputWide},
		"all-json":    {nodes: all, output: OutputJSON},
		"all-yaml":    {nodes: all, output: OutputYAML},
		"well":        {nodes: healthy},
		"well-asked":  {nodes: healthy, asked: []string{"well"}},
		"no-agent":    {nodes: []string{"no-agent"}, asked: []string{"no-agent"}},
		"bad-memory":  {nodes: []string{"bad-memory"}},
		"bad-disk":    {nodes: []string{"bad-disk"}},
		"bad-pid":     {nodes: []string{"bad-pid"}},
		"bad-network": {nodes: []string{"bad-network"}},
		"clearing":    {nodes: []string{"clearing"}},
		"contested":   {nodes: []string{"contested"}},
		"withdrawn":   {nodes: []string{"withdrawn"}},
		"paused":      {nodes: []string{"paused"}},
		"braked":      {nodes: []string{"braked"}},
		"silent":      {nodes: []string{"silent", "no-agent"}, later: 20 * time.Minute},
		"silent-bad":  {nodes: []string{"bad-memory"}, later: 20 * time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fleet := NewFleet(test.asked, DefaultSilentAfter)
			for _, name := range test.nodes {
				fleet.Add(nodes[name])
			}
			var out strings.Builder
			report := fleet.Report(now.Add(test.later))
			if err := (Options{Out: &out, Output: test.output}).print(report); err != nil {
				t.Fatal(err)
			}
			if isWell := strings.HasPrefix(name, "well"); fleet.IsWell(report) != isWell {
				t.Errorf("IsWell = %v", !isWell)
			}
			fixtures.CompareGolden(t, *update, filepath.Join("testdata", name+".txt"), out.String())
		})
	}
}

// On a screen, which cuts its lines, each message has a line of its own.
func TestScreen(t *testing.T) {
	nodes := recorded(t)
	now := recordedAt(nodes)
	nodes["braked"] = braked(t, now)
	fleet := NewFleet(nil, DefaultSilentAfter)
	for _, node := range nodes {
		fleet.Add(node)
	}
	report := fleet.Report(now)
	fixtures.CompareGolden(t, *update, filepath.Join("testdata", "screen.txt"), strings.Join(report.Screen(false, 0), "\n")+"\n")
	if lines := report.Screen(false, 9); len(lines) != 3+2*4+1 {
		t.Errorf("9 rows are\n%s", strings.Join(lines, "\n"))
	}
}

// braked is a Node as the decider writes it while the fleet brake holds the taint of
// MemoryPressure back.
func braked(t *testing.T, now time.Time) *taints.Node {
	t.Helper()
	policy := config.Default().Policy()
	node := &taints.Node{Name: "braked", UID: "1"}
	state := decide.New(decide.Boot{ID: "boot", At: now.Add(-time.Hour)}, "agent", now.Add(-time.Hour))
	for i := range 5 {
		var all []probes.Observation
		for _, condition := range policy.Conditions {
			name := condition.Name
			o := probes.Observation{Condition: name, Level: probes.OK, Reason: "Fine", Message: "fine"}
			if name == probes.MemoryPressure {
				o = probes.Observation{Condition: name, Level: probes.Degraded, Severity: 60, Reason: "MemoryLow", Message: "available 328 MiB of 16 GiB (1.9 %), threshold 5 %"}
			}
			all = append(all, o)
		}
		at := now.Add(time.Duration(i-10) * time.Second)
		peers := decide.Peers{Known: 12, Rounds: 9, Shares: map[probes.Condition]decide.Share{probes.MemoryPressure: {Asked: 12, Bad: 8}}}
		var decision decide.Decision
		state, decision = decide.Step(policy, state, decide.Inputs{Observations: all, Node: decide.Read(node), Peers: peers, Refresh: true}, at)
		if decision.Change != nil {
			node = decision.Change.ApplyTo(node)
			for i := range node.Conditions {
				node.Conditions[i].LastHeartbeatTime = at
				node.Conditions[i].LastTransitionTime = at
			}
		}
	}
	return node
}
