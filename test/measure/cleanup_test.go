package measure

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/bed"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// touched makes Nodes into ones that an agent has tainted, with the record and
// the conditions that a real one wrote on the template, and with taints,
// annotations and conditions of others in between.
func touched(template *corev1.Node, nodes []*corev1.Node) []*corev1.Node {
	added := metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, node := range nodes {
		node.Labels = map[string]string{"example.com/of": "others"}
		node.Annotations = map[string]string{"example.com/of": "others", taints.HeldAnnotation: corev1.TaintNodeMemoryPressure}
		node.Annotations[taints.RecordAnnotation] = template.Annotations[taints.RecordAnnotation]
		node.Spec.Taints = []corev1.Taint{
			{Key: "dedicated", Value: "group", Effect: corev1.TaintEffectNoExecute},
			{Key: standIn, Effect: corev1.TaintEffectNoSchedule},
			{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &added}, // the controller's
			{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoExecute},
			{Key: "dedicated", Value: "other", Effect: corev1.TaintEffectPreferNoSchedule, TimeAdded: &added},
		}
		node.Status.Conditions = append([]corev1.NodeCondition{
			{Type: "Ready", Status: corev1.ConditionTrue, Reason: "Test"},
			{Type: "HostIsHaunted", Status: corev1.ConditionFalse, Reason: "Test"},
		}, template.Status.Conditions...)
	}
	return nodes
}

// isOurs says which taints of a touched Node are taintlet's.
func isOurs(taint corev1.Taint) bool {
	return taint.Key == corev1.TaintNodeMemoryPressure || taint.Key == standIn
}

func isTouched(node *corev1.Node) bool {
	return decide.IsTouched(apiserver.NodeOf(node), config.Default().Policy()) || slices.ContainsFunc(node.Spec.Taints, isOurs)
}

// others is what on a Node is not ours.
func others(node *corev1.Node) *corev1.Node {
	left := node.DeepCopy()
	left.Spec.Taints = slices.DeleteFunc(left.Spec.Taints, isOurs)
	maps.DeleteFunc(left.Annotations, func(key, _ string) bool {
		return key == taints.RecordAnnotation || key == taints.HeldAnnotation
	})
	left.Status.Conditions = slices.DeleteFunc(left.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return slices.Contains(ourConditions(), string(condition.Type))
	})
	left.ResourceVersion, left.ManagedFields, left.Generation = "", nil, 0
	return left
}

// ourConditions are the types of all Node conditions that an agent writes.
func ourConditions() []string {
	types := []string{decide.RepairType}
	for _, name := range config.Default().Names() {
		types = append(types, decide.ConditionType(name))
	}
	return types
}

// nodesNow reads all Nodes: a view may be a little behind.
func nodesNow(t *testing.T, c *cluster.Cluster) []corev1.Node {
	t.Helper()
	nodes, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return nodes.Items
}

func othersNow(t *testing.T, c *cluster.Cluster) map[string]*corev1.Node {
	t.Helper()
	all := map[string]*corev1.Node{}
	for _, node := range nodesNow(t, c) {
		all[node.Name] = others(&node)
	}
	return all
}

// isLeft checks which Nodes have something of ours.
func isLeft(t *testing.T, c *cluster.Cluster, want ...string) {
	t.Helper()
	var left []string
	for _, node := range nodesNow(t, c) {
		if isTouched(&node) {
			left = append(left, node.Name)
		}
	}
	if !slices.Equal(left, want) {
		t.Errorf("something of ours is on %d nodes, %v; want %v", len(left), left[:min(len(left), 10)], want)
	}
}

func sameOthers(t *testing.T, before, after map[string]*corev1.Node) {
	t.Helper()
	if len(before) != len(after) {
		t.Errorf("%d nodes became %d", len(before), len(after))
	}
	for name, node := range before {
		if !equality.Semantic.DeepEqual(node, after[name]) {
			t.Errorf("what others put on node %s was\n%+v\nand is\n%+v", name, node, after[name])
		}
	}
}

// cleaner runs the real program, each time as a user of its own.
type cleaner struct {
	t       *testing.T
	c       *cluster.Cluster
	program string
	runs    int
}

func newCleaner(t *testing.T, c *cluster.Cluster) *cleaner {
	t.Helper()
	program, err := process.BuildAgent(t.Context(), t.TempDir(), process.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &cleaner{t: t, c: c, program: program}
}

// run is one run of the program.
type run struct {
	t       *testing.T
	user    string
	process *process.Process
	output  process.Lines
}

func (c *cleaner) start(what string) *run {
	c.t.Helper()
	c.runs++
	r := &run{t: c.t, user: fmt.Sprint("cleaner-", c.runs)}
	grantRolesOf(c.t, c.c, r.user, bed.Render(c.t, "--set", "cleanup.stale=true,cleanup.afterUninstall=false", "--show-only", "templates/cleanup.yaml"))
	identity, err := c.c.Config(r.user)
	if err != nil {
		c.t.Fatal(err)
	}
	command := exec.Command(c.program, "cleanup", what, "--kubeconfig="+cluster.Kubeconfig(c.t, identity)) //nolint:gosec // our own binary
	command.Stdout, command.Stderr = &r.output, &r.output
	if r.process, err = process.Start("the cleanup", command, ""); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { r.process.Kill() }) //nolint:errcheck // it has ended, unless the test failed
	return r
}

// end waits for the run to end, checks the exit code and returns what it said.
func (r *run) end(code int) string {
	r.t.Helper()
	var exit *exec.ExitError
	if err := r.process.Wait(); err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	if got := r.process.ExitCode(); got != code {
		r.t.Errorf("exit code %d, want %d; it said\n%s", got, code, tail(r.output.String()))
	}
	return r.output.String()
}

func (c *cleaner) run(what string, code int) string {
	c.t.Helper()
	return c.start(what).end(code)
}

func tail(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

func says(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("it does not say %q:\n%s", text, tail(out))
		}
	}
}

// tainted starts an agent whose host is in such trouble that it evicts, and
// returns its Node as it then is.
func tainted(t *testing.T, c *cluster.Cluster, v *view, name string) (*hollow, *corev1.Node) {
	t.Helper()
	createSlots(t, c, 1)
	createNodes(t, c, []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: name}}})
	alive := startHollow(t, agents(t, c), name, evictingConfig(1, time.Minute))
	alive.says(probes.Critical)
	v.until(t, "NoExecute and our conditions", 1, func(node *corev1.Node) bool {
		return evicts(node) && len(node.Status.Conditions) == len(ourConditions())
	})
	return alive, c.GetNode(t, name)
}

// A thousand Nodes with foreign taints in between are cleaned up at 20 requests
// a second; a run that was interrupted is gone on with by the next; an agent
// that is still alive is named.
func TestCleanupOfAThousandNodes(t *testing.T) {
	t.Parallel()
	const many = 1000
	c := startAPIServer(t)
	v, clean := newView(t, c), newCleaner(t, c)
	nodes := nodesNamed(many)
	alive, template := tainted(t, c, v, nodes[many/2].Name)
	createNodes(t, c, touched(template, slices.Delete(nodes, many/2, many/2+1)))
	before := othersNow(t, c)

	begin := time.Now()
	first := clean.start("all")
	v.until(t, "nothing of ours", many/4, func(node *corev1.Node) bool { return !isTouched(node) })
	if err := first.process.Stop(patience); err != nil {
		t.Fatal(err)
	}
	first.end(1)
	sameOthers(t, before, othersNow(t, c))

	says(t, clean.run("all", 1), "node "+alive.node+": an agent still writes it")
	isLeft(t, c, alive.node)
	alive.kill()
	says(t, clean.run("all", 0), fmt.Sprintf("1 of %d nodes cleaned up", many))
	isLeft(t, c)
	sameOthers(t, before, othersNow(t, c))
	t.Logf("%d nodes in %s", many, time.Since(begin).Round(time.Second))
	for user, requests := range byUser(readAudit(t, c)) {
		if strings.HasPrefix(user, "cleaner-") {
			t.Logf("%s: %d requests", user, len(requests))
			isNoFasterThan(t, 20, requests)
		}
	}
}

func byUser(requests []cluster.Request) map[string][]time.Time {
	times := map[string][]time.Time{}
	for _, r := range requests {
		times[r.User.Username] = append(times[r.User.Username], r.RequestReceivedTimestamp)
	}
	return times
}

// isNoFasterThan checks a rate that allows a second's requests at once, over
// every span of ten seconds or more. A busy API server may take up a request
// up to a second later than it came.
func isNoFasterThan(t *testing.T, rate int, times []time.Time) {
	t.Helper()
	const span, late = 10 * time.Second, time.Second
	for i := range times {
		for j := i; j < len(times); j++ {
			took := max(span, times[j].Sub(times[i])) + late
			if most := rate + int(float64(rate)*took.Seconds()); j-i+1 > most {
				t.Fatalf("%d requests within %s", j-i+1, times[j].Sub(times[i]))
			}
		}
	}
}

// Nodes that have had no agent for more than a day are cleaned up, others are
// not; when they are too many, nothing is changed at all.
func TestCleanupOfStaleNodes(t *testing.T) {
	t.Parallel()
	c := startAPIServer(t)
	v, clean := newView(t, c), newCleaner(t, c)
	alive, template := tainted(t, c, v, "alive")
	said := func(name string, ago time.Duration) *corev1.Node {
		return lastSaid(t, touched(template, []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: name}}})[0], ago)
	}
	// Five Nodes: one is allowed at a time, although it is more than 5 %.
	createNodes(t, c, []*corev1.Node{said("old-1", 25*time.Hour), said("new-1", 23*time.Hour), said("new-2", -time.Hour), withNothing("empty")})
	before := othersNow(t, c)
	says(t, clean.run("stale", 0), "node old-1: removed taint "+corev1.TaintNodeMemoryPressure+":NoExecute", "1 of 5 nodes cleaned up")
	isLeft(t, c, "alive", "new-1", "new-2")
	sameOthers(t, before, othersNow(t, c))

	// Two of seven are too many, and two of 39; of 40 Nodes they are 5 %.
	createNodes(t, c, []*corev1.Node{said("old-2", 25*time.Hour), said("old-3", 1000*time.Hour)})
	refused(t, c, clean)
	var more []*corev1.Node
	for i := range 39 - 7 {
		more = append(more, withNothing(fmt.Sprint("empty-", i)))
	}
	createNodes(t, c, more)
	refused(t, c, clean)
	createNodes(t, c, []*corev1.Node{undated(said("undated", 0)), said("wrong-clock", -1000*time.Hour)})
	before = othersNow(t, c)
	says(t, clean.run("stale", 0), "2 of 41 nodes cleaned up", "node undated: cannot read when an agent last wrote it; nothing is removed", "node wrong-clock: cannot read when an agent last wrote it")
	isLeft(t, c, "alive", "new-1", "new-2", "undated", "wrong-clock")
	sameOthers(t, before, othersNow(t, c))
	alive.kill()
}

// refused checks that a run says that there are too many, and only reads. The
// audit log tells its requests from those of the agent that is alive.
func refused(t *testing.T, c *cluster.Cluster, clean *cleaner) {
	t.Helper()
	r := clean.start("stale")
	says(t, r.end(1), fmt.Sprintf("2 of %d nodes have had no agent for 24h0m0s, more than the 1 that may be cleaned up at a time", len(nodesNow(t, c))), "Nothing was changed")
	asked := 0
	for _, request := range readAudit(t, c) {
		if request.User.Username != r.user {
			continue
		}
		asked++
		if request.Verb != "list" && request.Verb != "get" {
			t.Errorf("a run that was refused asked for %s %s %s", request.Verb, request.ObjectRef.Resource, request.ObjectRef.Name)
		}
	}
	if asked == 0 {
		t.Error("the audit log has no request of the run")
	}
}

func withNothing(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// lastSaid sets the times of the newest heartbeat, and of a decision long
// before it.
func lastSaid(t *testing.T, node *corev1.Node, ago time.Duration) *corev1.Node {
	t.Helper()
	now := time.Now()
	record := node.Annotations[taints.RecordAnnotation]
	_, rest, _ := strings.Cut(record, `"time":"`)
	decided, _, found := strings.Cut(rest, `"`)
	if !found {
		t.Fatalf("the record has no time: %s", record)
	}
	node.Annotations[taints.RecordAnnotation] = strings.Replace(record, decided, now.Add(-2000*time.Hour).UTC().Format(time.RFC3339), 1)
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(now.Add(-ago))
	}
	return node
}

// undated takes away what would tell when an agent last wrote the Node.
func undated(node *corev1.Node) *corev1.Node {
	node.Annotations[taints.RecordAnnotation] = "{"
	node.Status.Conditions = nil
	return node
}

// An agent that is alive is named, however few Nodes there are and so however
// soon the cleanup is done.
func TestCleanupNamesTheAgentOfTheOnlyNode(t *testing.T) {
	t.Parallel()
	c := startAPIServer(t)
	v, clean := newView(t, c), newCleaner(t, c)
	alive, _ := tainted(t, c, v, "only")
	says(t, clean.run("all", 1), "node "+alive.node+": an agent still writes it")
	v.until(t, "something of ours", 1, isTouched) // again, or still
}

// A cleanup that takes longer than the API server remembers what it was asked
// (5 min, here seconds) goes on to the Nodes that it has not yet read.
func TestCleanupOutlastsItsList(t *testing.T) {
	t.Parallel()
	const page = 500 // one request of the cleanup
	c := startAPIServer(t, "--etcd-compaction-interval=3s")
	v, clean := newView(t, c), newCleaner(t, c)
	alive, template := tainted(t, c, v, "a-node")
	alive.kill()
	nodes := nodesNamed(page + 100)
	touched(template, nodes[:150]) // take 15 s
	touched(template, nodes[page+50:])
	createNodes(t, c, nodes)
	clean.run("all", 0)
	isLeft(t, c)
}
