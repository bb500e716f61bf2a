package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
	"github.com/taintlet/taintlet/test/process"
)

// recordEnv asks for the Nodes of TestStatus to be written to the testdata of
// package status, whose golden files show them.
const recordEnv = "TAINTLET_RECORD_NODES"

// What real agents and a real control plane make of Nodes, as kubectl taintlet status shows
// it: each condition bad, paused, contested, given up, silent, well, without agent.
func TestStatus(t *testing.T) {
	t.Parallel()
	cluster.SkipUnlessRequired(t)
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	c := newCluster(t, cluster.Options{})
	grantAgents(t.Context(), t, c)
	if err := c.InstallKeep(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Register(t, "no-agent")
	agents, hosts, configs := map[string]*bed.Agent{}, map[string]*fixtures.Host{}, map[string]string{}
	for _, name := range []string{"bad-disk", "bad-memory", "bad-network", "bad-pid", "clearing", "contested", "paused", "silent", "well"} {
		c.Register(t, name)
		configs[name] = quick
		if name == "bad-disk" {
			configs[name] = diskAlmostFull(t)
		}
		hosts[name] = fixtures.NewHost(t)
		clearAfter := "2m" // the default: the pages of docs/ quote these Nodes
		if name == "clearing" {
			clearAfter = "30m" // it must not clear while the table is read
		}
		agents[name] = startAgent(t, c, name, hosts[name], strings.ReplaceAll(configs[name], "clearAfter: 2s", "clearAfter: "+clearAfter))
	}
	for name := range agents {
		waitNode(t, c, name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
	}
	if isWell, text := statusOf(t, c, nil); !isWell || !strings.HasPrefix(text, "9 agents, 9 healthy; 1 node without an agent\n") {
		t.Errorf("well: %v\n%s", isWell, text)
	}

	hosts["bad-memory"].Memory(2)
	hosts["bad-pid"].Tasks(30000)
	hosts["bad-network"].Carrier(false)
	fill(hosts["bad-disk"])
	c.RunKubectl(t, "annotate", "node", "paused", "taintlet.dev/paused=true")
	c.WaitAgentEvent(t, "paused", "TaintsPaused", "")
	hosts["paused"].Memory(2)
	contest(t, c, hosts["contested"], "contested")
	agents["silent"].Kill()
	hosts["clearing"].Memory(2)
	waitNode(t, c, "clearing", tainted(memoryKey))
	hosts["clearing"].Memory(50)
	waitNode(t, c, "clearing", func(node *corev1.Node) bool {
		c := cluster.Condition(node, "HostMemoryPressure") // it is written after the record
		return strings.Contains(node.Annotations["taintlet.dev/record"], `"clearsAt"`) && strings.Contains(c.Message, "clears at")
	})
	waitNode(t, c, "bad-memory", tainted(memoryKey))
	waitNode(t, c, "bad-pid", tainted(corev1.TaintNodePIDPressure))
	waitNode(t, c, "bad-network", tainted(corev1.TaintNodeNetworkUnavailable))
	waitNode(t, c, "bad-disk", tainted(corev1.TaintNodeDiskPressure))
	for name, kind := range map[string]corev1.NodeConditionType{"bad-memory": "HostMemoryPressure", "bad-pid": "HostPIDPressure", "bad-network": "HostNetworkUnavailable", "bad-disk": "HostDiskPressure", "paused": "HostMemoryPressure"} {
		waitNode(t, c, name, cluster.HasCondition(kind, corev1.ConditionTrue))
	}
	recordNodes(t, c, agents)
	for name := range agents {
		cluster.Golden(t, "describe-"+name+".txt", c.Describe(t, name))
	}

	isWell, text := statusOf(t, c, nil)
	if isWell || !strings.HasPrefix(text, "9 agents, 2 healthy, 5 tainted, 2 degraded without a taint; 1 node without an agent; 1 node paused\n") {
		t.Errorf("well: %v\n%s", isWell, text)
	}
	for _, want := range []string{
		`bad-memory +MemoryPressure +Degraded .* node.kubernetes.io/memory-pressure:NoSchedule \(kept\) .* available `,
		`bad-pid +PIDPressure +Degraded .* node.kubernetes.io/pid-pressure:NoSchedule \(kept\) .* used 30000 of `,
		`bad-network +NetworkUnavailable +Degraded .* node.kubernetes.io/network-unavailable:NoSchedule \(kept\) `,
		`bad-disk +DiskPressure +Degraded .* node.kubernetes.io/disk-pressure:NoSchedule \(kept\) `,
		`clearing +MemoryPressure +Degraded .* in \d+ min .* clears at (?:\d{4}-\d\d-\d\d )?\d\d:\d\d UTC if it stays `,
		`paused +MemoryPressure +Degraded +\d+ (?:s|min) +- .* Paused .* no taint while the annotation taintlet.dev/paused is on the Node`,
		`contested +MemoryPressure +Degraded +\d+ (?:s|min) +- .* Contested +kubectl-taint .* no taint until the condition has been OK`,
	} {
		matches(t, text, want)
	}
	kubeconfig := "--kubeconfig=" + cluster.Kubeconfig(t, c.Admin())
	for args, want := range map[string]int{
		"":                                 3,
		"well":                             0,
		"bad-pid -o=json":                  3,
		"no-agent":                         3,
		"missing":                          1,
		"--wait --timeout=1s":              3,
		"well --wait --timeout=1m -owide":  0,
		"well missing --wait --timeout=1s": 1,
		"--silent-after=1ms well":          3,
		"--silent-after=1h well":           0,
		"--watch --wait":                   2,
		"Not_A_Node":                       2,
		"--kubeconfig=/nonexistent":        1,
	} {
		if code, out := askedCode(t, append([]string{"status", kubeconfig, "--namespace="}, strings.Fields(args)...)...); code != want {
			t.Errorf("kubectl taintlet status %s: exit code %d, not %d\n%s", args, code, want, out)
		}
	}
	if strings.Contains(text, "\nwell ") || strings.Contains(text, "\nsilent ") {
		t.Errorf("a Node that is well is shown:\n%s", text)
	}
	for name, a := range agents {
		if name != "clearing" {
			a.Reconfigure(configs[name])
		}
	}
	waitsUntilWell(t, c, agents, hosts)
}

// waitsUntilWell checks what --wait and --watch do while Nodes recover.
func waitsUntilWell(t *testing.T, c *cluster.Cluster, agents map[string]*bed.Agent, hosts map[string]*fixtures.Host) {
	t.Helper()
	short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var out strings.Builder
	isWell, err := status.Run(short, status.Options{Config: c.Admin(), Out: &out, Err: os.Stderr, Wait: true})
	if isWell || err != nil || !strings.Contains(out.String(), " tainted, 2 degraded") {
		t.Errorf("waited in vain: %v %v\n%s", isWell, err, &out)
	}
	ctx, stop := context.WithTimeout(t.Context(), bed.Patience)
	defer stop()
	screens, began := &lastScreen{50, make(chan string, 1000)}, time.Now()
	watched := make(chan error, 1)
	go func() {
		_, err := status.Run(ctx, status.Options{Config: c.Admin(), Out: screens, Err: os.Stderr, Output: status.OutputTable, Watch: true})
		watched <- err
	}()
	var first string
	select {
	case first = <-screens.changed:
	case <-ctx.Done():
		t.Fatal("nothing was drawn")
	}
	matches(t, first, `(?m)^9 agents, 2 healthy`) // below the time
	agents["clearing"].Reconfigure(quick)
	hosts["bad-memory"].Memory(50)
	hosts["bad-pid"].Tasks(100)
	hosts["bad-network"].Carrier(true)
	empty(hosts["bad-disk"])
	hosts["paused"].Memory(50)
	hosts["contested"].Memory(50)
	out.Reset()
	isWell, err = status.Run(ctx, status.Options{Config: c.Admin(), Out: &out, Err: os.Stderr, Wait: true})
	if !isWell || err != nil || !strings.Contains(out.String(), "9 agents, 9 healthy") {
		t.Errorf("waited: %v %v\n%s", isWell, err, &out)
	}
	for last := first; !strings.Contains(last, "9 agents, 9 healthy"); {
		select {
		case last = <-screens.changed:
		case <-ctx.Done():
			t.Fatalf("the last screen was\n%s", last)
		}
	}
	stop()
	if err := <-watched; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); len(screens.changed) > int(took.Seconds())+1 { // one a second
		t.Errorf("%d screens in %s", len(screens.changed), took)
	}
}

func matches(t *testing.T, text, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(text) {
		t.Errorf("nothing matches %q in\n%s", pattern, text)
	}
}

// lastScreen is a terminal that passes on what is drawn.
type lastScreen struct {
	lines   int
	changed chan string
}

func (s *lastScreen) Size() (columns, lines int) { return 130, s.lines }

func (s *lastScreen) Clear() error { return nil }

func (s *lastScreen) Write(text []byte) (int, error) {
	s.changed <- strings.Trim(string(text), "\n")
	return len(text), nil
}

// contest makes memory bad and removes its taint twice.
func contest(t *testing.T, c *cluster.Cluster, host *fixtures.Host, node string) {
	t.Helper()
	c.SetTaints(t, node, dedicated) // as long as a taint is left, the API server knows who wrote the list
	host.Memory(2)
	versions := follow(t, c, node)
	from := 0
	for range 2 {
		from = versions.wait(from, tainted(memoryKey))
		c.RunKubectl(t, "taint", "node", node, memoryKey+":NoSchedule-")
		from = versions.wait(from, untainted(memoryKey))
	}
	c.WaitAgentEvent(t, node, "TaintContested", "kubectl-taint")
	versions.wait(from, func(node *corev1.Node) bool { // the Event comes before the record, the condition after it
		return strings.Contains(node.Annotations["taintlet.dev/record"], `"stage":1`) && saying("someone removed the taint twice")(node)
	})
}

// statusOf is what kubectl taintlet status shows.
func statusOf(t *testing.T, c *cluster.Cluster, nodes []string) (isWell bool, text string) {
	t.Helper()
	var out strings.Builder
	isWell, err := status.Run(t.Context(), status.Options{Config: c.Admin(), Out: &out, Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("kubectl taintlet status %s\n%s", strings.Join(nodes, " "), &out)
	return isWell, out.String()
}

// recordNodes writes the Nodes for the golden files, where that is asked for.
func recordNodes(t *testing.T, c *cluster.Cluster, agents map[string]*bed.Agent) {
	t.Helper()
	if os.Getenv(recordEnv) == "" {
		return
	}
	names := []string{"no-agent"}
	for name := range agents {
		names = append(names, name)
	}
	for _, name := range names {
		node := c.GetNode(t, name)
		node.UID, node.Status.Images = "", nil
		text, err := yaml.Marshal(node)
		err = errors.Join(err, os.WriteFile(filepath.Join("../../cmd/kubectl-taintlet/status/testdata", name+".yaml"), text, 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The API server has a thousand Nodes; status reads them all, page by page, and as
// JSON says of each that has no agent that it has none.
func TestStatusOfAThousandNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Options{WithoutControllerManager: true, WithoutScheduler: true})
	const count = 1000
	createNodes(t, c, count)
	began := time.Now()
	var out strings.Builder
	isWell, err := status.Run(t.Context(), status.Options{Config: c.Admin(), Out: &out, Output: "json"})
	took := time.Since(began)
	if err != nil || isWell {
		t.Fatal(isWell, err)
	}
	var report status.Report
	if err := json.Unmarshal([]byte(out.String()), &report); err != nil {
		t.Fatal(err)
	}
	if report.Summary.Nodes != count || report.Summary.States[status.Tainted] != count/10 || len(report.Nodes) != count/10 {
		t.Errorf("%+v, %d nodes shown", report.Summary, len(report.Nodes))
	}
	t.Logf("%d Nodes took %s", count, took)
	command := exec.CommandContext(t.Context(), plugin.Path(t), "status", "--namespace=", "--kubeconfig="+cluster.Kubeconfig(t, c.Admin())) //nolint:gosec // our own binary
	var text strings.Builder
	command.Stdout, command.Stderr = &text, &text
	memory, _ := process.RunMeasured(t.Context(), command)
	if code := command.ProcessState.ExitCode(); code != 3 || !strings.HasPrefix(text.String(), "1000 agents, 900 healthy, 100 tainted\n") {
		t.Errorf("exit code %d: %.200s", code, text.String())
	}
	t.Logf("the process had %d MiB", memory>>10)
	pages := 0
	requests, err := c.Requests("admin") // on Kubernetes 1.34 another client lists them by pages as well
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		if r.Verb == "list" && r.Resource() == "nodes" && strings.Contains(r.RequestURI, "limit=500") {
			pages++
		}
	}
	if pages != 2*count/500 {
		t.Errorf("%d pages of 500", pages)
	}
}

// createNodes makes Nodes as agents leave them; each tenth is tainted.
func createNodes(t *testing.T, c *cluster.Cluster, count int) {
	t.Helper()
	fixtures := map[bool]*corev1.Node{}
	for isBad, name := range map[bool]string{true: "bad-memory", false: "well"} {
		text, err := os.ReadFile(filepath.Join("../../cmd/kubectl-taintlet/status/testdata", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		node := &corev1.Node{}
		if err := yaml.UnmarshalStrict(text, node); err != nil {
			t.Fatal(err)
		}
		node.ResourceVersion, node.ManagedFields = "", nil
		for i := range node.Status.Conditions {
			node.Status.Conditions[i].LastHeartbeatTime.Time = time.Now()
		}
		fixtures[isBad] = node
	}
	work := make(chan int)
	failed := make(chan error, 8)
	for range cap(failed) {
		go func() {
			var err error
			for i := range work {
				node := fixtures[i%10 == 0].DeepCopy()
				node.Name = fmt.Sprintf("node-%04d", i)
				node.Labels[corev1.LabelHostname] = node.Name
				_, failure := c.Client().CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
				err = errors.Join(err, failure)
			}
			failed <- err
		}()
	}
	for i := range count {
		work <- i
	}
	close(work)
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
}

// status --watch tells of Nodes that come and go, and goes on after the API server was
// away, with what happened meanwhile.
func TestStatusWatches(t *testing.T) {
	t.Parallel()
	c := newCluster(t, cluster.Options{WithoutControllerManager: true, WithoutScheduler: true})
	createNodes(t, c, 20)
	g := cluster.NewGate(t, strings.TrimPrefix(c.URL(), "https://"))
	g.Open()
	config := c.Admin()
	config.Host = "https://" + g.Address
	ctx, stop := context.WithTimeout(t.Context(), 2*bed.Patience)
	defer stop()
	screens := &lastScreen{7, make(chan string, 1000)}
	trouble := make(chan string, 100)
	ended := make(chan error, 1)
	go func() {
		_, err := status.Run(ctx, status.Options{Config: config, Out: screens, Err: lines(trouble), Output: status.OutputTable, Watch: true})
		ended <- err
	}()
	wait := func(first string) (screen string) {
		t.Helper()
		for {
			select {
			case screen = <-screens.changed:
				_, rest, _ := strings.Cut(screen, "\n") // below the time
				if line, _, _ := strings.Cut(rest, "\n"); line == first {
					return rest
				}
			case <-ctx.Done():
				t.Fatalf("no screen says %q; the last one was\n%s", first, screen)
			}
		}
	}
	nodes := c.Client().CoreV1().Nodes()
	remove := func(name string) {
		t.Helper()
		if err := nodes.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	screen := wait("20 agents, 18 healthy, 2 tainted")
	if lines := strings.Split(screen, "\n"); len(lines) != 5 || !strings.HasPrefix(lines[3], "node-0000 ") || lines[4] != "… and 3 lines more" {
		t.Errorf("seven lines show\n%s", screen)
	}
	remove("node-0000")
	wait("19 agents, 18 healthy, 1 tainted")
	g.Refuse()
	select {
	case <-trouble:
	case <-ctx.Done():
		t.Fatal("nobody is told that the API server is away")
	}
	remove("node-0001")
	remove("node-0010")
	node := c.GetNode(t, "node-0002")
	node.ObjectMeta = metav1.ObjectMeta{Name: "node-new"}
	if _, err := nodes.Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	g.Open()
	wait("18 agents, 18 healthy")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if len(trouble) > 10 {
		t.Errorf("trouble is told %d times", len(trouble))
	}
}

// lines passes on what is written.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
