package status

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/fixtures"
)

var update = flag.Bool("update", false, "write the golden files")

// testsOwn is the hash of a configuration of that test, which is none of the installation's.
var testsOwn = regexp.MustCompile(`"config":"[0-9a-f]+",`)

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
		if record, has := node.Annotations[taints.RecordAnnotation]; has {
			node.Annotations[taints.RecordAnnotation] = testsOwn.ReplaceAllString(record, "")
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
		noHeaders    bool
	}{
		"all":         {nodes: all},
		"all-wide":    {nodes: all, output: OutputWide},
		"all-json":    {nodes: all, output: "json"},
		"all-yaml":    {nodes: all, output: "yaml"},
		"well":        {nodes: healthy},
		"well-asked":  {nodes: []string{"well"}, asked: []string{"well"}},
		"name":        {nodes: all, output: OutputName},
		"no-headers":  {nodes: []string{"bad-memory", "bad-pid"}, noHeaders: true},
		"no-agent":    {nodes: []string{"no-agent"}, asked: []string{"no-agent"}},
		"bad-memory":  {nodes: []string{"bad-memory"}},
		"bad-disk":    {nodes: []string{"bad-disk"}},
		"bad-pid":     {nodes: []string{"bad-pid"}},
		"bad-network": {nodes: []string{"bad-network"}},
		"clearing":    {nodes: []string{"clearing"}},
		"contested":   {nodes: []string{"contested"}},
		"paused":      {nodes: []string{"paused"}},
		"braked":      {nodes: []string{"braked"}},
		"silent":      {nodes: []string{"silent", "no-agent"}, later: 20 * time.Minute},
		"silent-bad":  {nodes: []string{"bad-memory"}, later: 20 * time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fleet := NewFleet(Options{Nodes: test.asked})
			for _, name := range test.nodes {
				fleet.Add(nodes[name])
			}
			var out strings.Builder
			report := fleet.Report(now.Add(test.later))
			if err := (Options{Out: &out, Output: test.output, NoHeaders: test.noHeaders}).print(report); err != nil {
				t.Fatal(err)
			}
			if isWell := strings.HasPrefix(name, "well"); fleet.IsWell(report) != isWell {
				t.Errorf("IsWell = %v", !isWell)
			}
			fixtures.CompareGolden(t, *update, filepath.Join("testdata", name+".txt"), out.String())
		})
	}
}

// A template of JSONPath reads the JSON.
func TestJSONPath(t *testing.T) {
	fleet, now := incident(t)
	var out strings.Builder
	for _, template := range []string{`{.summary.states.Tainted} {.findings[?(@.severity=="Failure")].code}`, `{range .nodes[?(@.state=="Down")]}{.name}{end}`} {
		if err := (Options{Out: &out, Output: "jsonpath=" + template}).print(fleet.Report(now)); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "5 AgentNotReady\nsilent\n" {
		t.Errorf("%q", out.String())
	}
	if err := (Options{Out: &out, Output: "jsonpath=" + "{.nodes"}).print(fleet.Report(now)); err == nil {
		t.Error("a template that does not end is accepted")
	}
}

// On a screen a table has messages below its rows, or becomes blocks; nothing but commands
// is wider than the screen.
func TestScreens(t *testing.T) {
	fleet, now := incident(t)
	for _, columns := range []int{60, 80, 130, 180, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			lines := fleet.Report(now).Lines(Format{Columns: columns})
			fixtures.CompareGolden(t, *update, filepath.Join("testdata", fmt.Sprintf("screen-%d.txt", columns)), strings.Join(lines, "\n")+"\n")
			for _, line := range lines {
				if utf8.RuneCountInString(line) > columns && !strings.HasPrefix(line, "    kubectl") {
					t.Errorf("more than %d columns: %s", columns, line)
				}
			}
		})
	}
}

// A watch says of each table when it is from, on a screen and elsewhere.
func TestAWatchHasAClock(t *testing.T) {
	fleet, now := incident(t)
	report := fleet.Report(now)
	var out strings.Builder
	o := Options{Out: &out, Output: OutputTable, Watch: true}
	for range 2 {
		if err := o.print(report); err != nil {
			t.Fatal(err)
		}
	}
	clock := now.UTC().Format("2006-01-02 15:04:05 UTC")
	if strings.Count(out.String(), "\n"+clock+"\n10 agents") != 2 {
		t.Errorf("without a screen:\n%s", out.String())
	}
	out.Reset()
	o.Out = screenOf20{&out}
	if err := o.print(report); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"); len(lines) != 19 || lines[0] != "[clear]"+clock || !strings.HasSuffix(lines[18], " lines more") {
		t.Errorf("on a screen of 20 lines, %d lines:\n%s", len(lines), &out)
	}
}

// screenOf20 is a terminal of 20 lines.
type screenOf20 struct{ *strings.Builder }

func (screenOf20) Size() (columns, lines int) { return 100, 20 }

func (s screenOf20) Clear() error {
	s.WriteString("[clear]")
	return nil
}

// The output of docs/status.md: three agents, of which one hangs and one was out of memory.
func TestProblemsOfAFleet(t *testing.T) {
	all, now := incident(t)
	names := []string{"well", "silent", "bad-memory"}
	i := all.Installation
	i.Pods = slices.DeleteFunc(i.Pods, func(p *corev1.Pod) bool { return !slices.Contains(names, p.Spec.NodeName) })
	i.DaemonSets[0].Status.DesiredNumberScheduled, i.DaemonSets[0].Status.CurrentNumberScheduled, i.DaemonSets[0].Status.NumberReady = 3, 3, 2
	i.Pods[0].Status.ContainerStatuses[0].RestartCount = 1
	i.Pods[0].Status.ContainerStatuses[0].LastTerminationState.Terminated = outOfMemory(now)
	fleet := NewFleet(Options{})
	for _, name := range names {
		fleet.Add(recorded(t)[name])
	}
	fleet.SetInstallation(i)
	report := fleet.Report(now)
	if fleet.IsWell(report) {
		t.Error("all is well")
	}
	fixtures.CompareGolden(t, *update, filepath.Join("testdata", "problems.txt"), strings.Join(report.Lines(Format{Columns: 130}), "\n")+"\n")
}

// A fleet of healthy Nodes is not well while something of its installation has failed. A
// Warning is no failure, and whoever asks for a Node is answered about that Node.
func TestFailuresOfTheInstallation(t *testing.T) {
	nodes := recorded(t)
	now := recordedAt(nodes)
	for name, test := range map[string]struct {
		asked  []string
		spoil  func(*installation.Installation)
		isWell bool
	}{
		"nothing":                      {spoil: func(*installation.Installation) {}, isWell: true},
		"no DaemonSet":                 {spoil: func(i *installation.Installation) { i.DaemonSets = nil }},
		"no DaemonSet, Node asked for": {asked: []string{"well"}, spoil: func(i *installation.Installation) { i.DaemonSets = nil }, isWell: true},
		"an agent was out of memory": {spoil: func(i *installation.Installation) {
			i.Pods[0].Status.ContainerStatuses[0].LastTerminationState.Terminated = outOfMemory(now)
		}, isWell: true},
		"the Node's agent is not ready": {asked: []string{"well"}, spoil: func(i *installation.Installation) { i.Pods[0] = podOn("well", now.Add(-time.Hour), false) }},
	} {
		t.Run(name, func(t *testing.T) {
			i := installed(t, now)
			i.Pods = slices.DeleteFunc(i.Pods, func(p *corev1.Pod) bool { return p.Spec.NodeName != "well" })
			i.DaemonSets[0].Status.DesiredNumberScheduled, i.DaemonSets[0].Status.CurrentNumberScheduled, i.DaemonSets[0].Status.NumberReady = 1, 1, 1
			test.spoil(i)
			fleet := NewFleet(Options{Nodes: test.asked})
			fleet.Add(nodes["well"])
			fleet.SetInstallation(i)
			if report := fleet.Report(now); fleet.IsWell(report) != test.isWell {
				t.Errorf("IsWell = %v with %+v", !test.isWell, report.Findings)
			}
		})
	}
}

// incident is the Fleet of all recorded Nodes, on some of which the agents are in trouble.
func incident(t *testing.T) (*Fleet, time.Time) {
	t.Helper()
	nodes := recorded(t)
	now := recordedAt(nodes)
	nodes["braked"] = braked(t, now)
	fleet := NewFleet(Options{})
	for _, node := range nodes {
		fleet.Add(node)
	}
	fleet.SetInstallation(installed(t, now))
	return fleet, now
}

// installed is an installation as the API server has it. The agents of all recorded Nodes are
// ready but two.
func installed(t *testing.T, now time.Time) *installation.Installation {
	t.Helper()
	i := &installation.Installation{}
	text, err := os.ReadFile("testdata/installation.json")
	if err == nil {
		err = json.Unmarshal(text, i)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name := range recorded(t) {
		i.Pods = append(i.Pods, podOn(name, now.Add(-3*time.Hour), true))
	}
	i.Pods = append(i.Pods, podOn("braked", now.Add(-3*time.Hour), true))
	slices.SortFunc(i.Pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Spec.NodeName, b.Spec.NodeName) })
	for index, pod := range i.Pods {
		switch pod.Spec.NodeName {
		case "silent":
			i.Pods[index] = podOn("silent", now.Add(-14*time.Second), false)
		case "contested":
			pod.Status.ContainerStatuses[0].RestartCount = 1
			pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = outOfMemory(now)
		}
	}
	return i
}

// podOn is the agent's pod on a Node.
func podOn(node string, since time.Time, isReady bool) *corev1.Pod {
	status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[isReady]
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "taintlet-" + node},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: installation.Account, Image: "taintlet/taintlet:0.1.0"}}},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(since)}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: installation.Account}},
		},
	}
}

// outOfMemory is the end of a container 40 seconds ago.
func outOfMemory(now time.Time) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137, FinishedAt: metav1.NewTime(now.Add(-40 * time.Second))}
}

// braked is a Node as the decider writes it while the fleet brake holds the taint of
// MemoryPressure back.
func braked(t *testing.T, now time.Time) *taints.Node {
	t.Helper()
	policy := config.Default().Policy()
	node := &taints.Node{Name: "braked", UID: "1"}
	state := decide.New(decide.Boot{ID: "boot", At: now.Add(-time.Hour)}, "agent")
	for i := range 5 {
		var all []probes.Observation
		for _, condition := range policy.Conditions {
			name := condition.Name
			o := probes.Observation{Condition: name, Level: probes.OK, Reason: "Fine", Message: "fine"}
			if name == probes.MemoryPressure {
				o = probes.Observation{Condition: name, Level: probes.Degraded, Severity: 60, Reason: "MemoryLow", Message: "available 328 MiB of 16 GiB (2.0 %), threshold 5 %"}
			}
			all = append(all, o)
		}
		at := now.Add(time.Duration(i-10) * time.Second)
		peers := decide.Peers{Known: 12, Rounds: 9, Shares: map[probes.Condition]decide.Share{probes.MemoryPressure: {Asked: 12, Bad: 8}}}
		var decision decide.Decision
		state, decision = decide.Step(policy, state, decide.Inputs{Observations: all, Node: decide.Read(node), Peers: peers, Refresh: true}, at)
		if decision.Desired != nil {
			node = decision.Desired.ApplyTo(node)
			for i := range node.Conditions {
				node.Conditions[i].LastHeartbeatTime = at
				node.Conditions[i].LastTransitionTime = at
			}
		}
	}
	return node
}
