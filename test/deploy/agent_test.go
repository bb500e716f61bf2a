package deploy

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// patience is how long an event is waited for: far above what a busy machine needs.
const patience = 2 * time.Minute

const (
	wellKnown = corev1.TaintNodePIDPressure
	standIn   = "taintlet.dev/pid-pressure"
)

// settings make the agent find PIDs scarce, or not, on any host, and be quick
// about it. No other condition has a rule: what else happens to this
// host does not matter here.
func settings(sick bool) map[string]any {
	used := 100.0
	if sick {
		used = 0.001 // of the host's limit
	}
	return map[string]any{"config": map[string]any{
		"heartbeat":   "1m",
		"writeBudget": map[string]any{"interval": "1s"},
		"disk":        map[string]any{"paths": []string{"/"}, "writeProbe": map[string]any{"directory": ""}},
		"pid": map[string]any{
			"usedPercent": used,
			"debounce":    map[string]any{"clearFactor": 1, "clearAfter": "1s", "maxClearAfter": "1s"},
		},
		"rules": []any{map[string]any{
			"condition": "PIDPressure", "level": "Degraded", "taint": map[string]any{"key": wellKnown, "effect": "NoSchedule"},
		}},
	}}
}

// program is the agent's binary and what it is told.
type program struct {
	t    *testing.T
	dir  string
	path string
	args []string
	env  []string // beside this process's
	// node and kubeconfig are in args too.
	node, kubeconfig string
}

func newProgram(t *testing.T, c *cluster.Cluster, node string) *program {
	t.Helper()
	p := &program{t: t, dir: t.TempDir(), node: node, kubeconfig: cluster.Kubeconfig(t, bed.AgentOf(t, c, node))}
	t.Cleanup(func() {
		if text, err := os.ReadFile(p.file("log")); t.Failed() {
			t.Logf("log of the agent: %v\n%s", err, text)
		}
	})
	var err error
	if p.path, err = process.BuildAgent(t.Context(), p.dir, process.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	p.args = []string{"--kubeconfig=" + p.kubeconfig, "--config=" + p.file("config.yaml"), "--node-name=" + node, "--listen="}
	return p
}

func (p *program) file(name string) string { return filepath.Join(p.dir, name) }

// configure writes the file that the ConfigMap of the chart would bring.
func (p *program) configure(values any) {
	p.t.Helper()
	manifest := bed.Render(p.t, "-f", bed.ValuesFile(p.t, values), "--show-only", "templates/configmap.yaml")
	config := &corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict([]byte(manifest), config); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.file("config.yaml"), []byte(config.Data["config.yaml"]), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// start runs the agent until the function it returns is called.
func (p *program) start() (stop func()) {
	p.t.Helper()
	command := exec.Command(p.path, p.args...) //nolint:gosec // our own binary
	command.Env = append(os.Environ(), p.env...)
	agent, err := process.Start("the agent", command, p.file("log"))
	if err != nil {
		p.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		if err := agent.Stop(patience); err != nil {
			p.t.Error(err)
		} else if code := agent.ExitCode(); code != 0 {
			p.t.Errorf("the agent ended with exit code %d", code)
		}
	})
	p.t.Cleanup(stop)
	return stop
}

// cleanup runs taintlet cleanup node with that kubeconfig.
func (p *program) cleanup(kubeconfig string) {
	p.t.Helper()
	args := []string{"cleanup", "node", p.node, "--kubeconfig=" + kubeconfig, "--config=" + p.file("config.yaml")}
	out, err := exec.CommandContext(p.t.Context(), p.path, args...).CombinedOutput() //nolint:gosec // our own binary
	if err != nil {
		p.t.Errorf("cleanup node: %v\n%s", err, out)
	}
}

// An agent with the shipped permissions, under the shipped policies and with
// the token of its pod goes through all that it does, and not one of its
// requests is refused. What it asked for is what it is granted.
func TestTheAgentIsNeverRefused(t *testing.T) {
	cluster.SkipUnlessRequired(t)
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	c := shared.Require(t)
	const name = "agent"
	node := c.Register(t, name)
	createSlice(t, c, namespace, "taintlet", "metrics")
	createSlice(t, c, metav1.NamespaceSystem, "kube-dns", "dns-tcp")
	createSlice(t, c, metav1.NamespaceDefault, "kubernetes", "https")
	p := newProgram(t, c, name)
	p.args, p.env = append(p.args, "--listen=:0"), []string{"HOST_IP=192.0.2.1"}
	wait := func(what string, holds func(*corev1.Node) bool) {
		t.Helper()
		if _, err := c.WaitNode(t.Context(), name, holds); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	has := func(key string) func(*corev1.Node) bool { return cluster.HasTaint(key, corev1.TaintEffectNoSchedule) }
	status := func(status corev1.ConditionStatus) func(*corev1.Node) bool {
		return cluster.HasCondition("HostPIDPressure", status)
	}

	p.configure(settings(false))
	stop := p.start()
	wait("fine", status(corev1.ConditionFalse))
	stop()

	p.configure(settings(true))
	stop = p.start()
	wait("the stand-in", has(standIn))
	wait("the condition", status(corev1.ConditionTrue))
	c.Keep(t)
	wait("kept, once the policy is seen with a heartbeat", func(node *corev1.Node) bool { return has(wellKnown)(node) && !has(standIn)(node) })
	if err := node.Heartbeat(t.Context()); err != nil { // makes the controller check
		t.Fatal(err)
	}
	for times := range 2 {
		annotate(t, c, name, `"true"`)
		waitEvent(t, c, name, "TaintsPaused", times+1)
		annotate(t, c, name, "null")
		waitEvent(t, c, name, "TaintsResumed", times+1)
	}
	for range 2 {
		wait("set again", has(wellKnown))
		if err := bed.PatchNode(t.Context(), c.Client(), name, types.MergePatchType, `{"spec": {"taints": []}}`); err != nil {
			t.Fatal(err)
		}
	}
	wait("contested", func(node *corev1.Node) bool { return has(standIn)(node) && !has(wellKnown)(node) })
	stop()

	p.configure(settings(false))
	stop = p.start()
	wait("recovery", func(node *corev1.Node) bool { return len(node.Spec.Taints) == 0 && status(corev1.ConditionFalse)(node) })
	stop()
	p.cleanup(p.kubeconfig)
	after := c.GetNode(t, name)
	if cluster.Condition(after, "HostPIDPressure") != nil || after.Annotations[taints.RecordAnnotation] != "" {
		t.Errorf("left after the cleanup: %v %v", after.Annotations, after.Status.Conditions)
	}
	compareWithRBAC(t, c, requestsOf(t, c, name))
}

// The account that cleans up every hour removes everything from a Node that is not
// its own, under the policy that bounds it.
func TestHourlyCleanupIsNotRefused(t *testing.T) {
	cluster.SkipUnlessRequired(t)
	c := shared.Require(t)
	const name = "abandoned"
	c.Register(t, name)
	p := newProgram(t, c, name)
	p.configure(settings(true))
	stop := p.start()
	if _, err := c.WaitNode(t.Context(), name, func(node *corev1.Node) bool {
		return cluster.HasTaint(standIn, corev1.TaintEffectNoSchedule)(node) && cluster.Condition(node, "HostPIDPressure") != nil
	}); err != nil {
		t.Fatal(err)
	}
	stop()
	token := bed.TokenOf(t, c, namespace, account+"-cleanup-stale", nil)
	p.cleanup(cluster.Kubeconfig(t, c.WithToken(token)))
	after := c.GetNode(t, name)
	if len(after.Spec.Taints) > 0 || cluster.Condition(after, "HostPIDPressure") != nil || after.Annotations[taints.RecordAnnotation] != "" {
		t.Errorf("left after the cleanup: %v %v %v", after.Spec.Taints, after.Annotations, after.Status.Conditions)
	}
}

// createSlice makes an EndpointSlice of a Service with one endpoint, on a Node that
// nobody reaches.
func createSlice(t *testing.T, c *cluster.Cluster, namespace, service, port string) {
	t.Helper()
	number, node := int32(9), "unreachable"
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service, "k8s-app": service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &port, Port: &number}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.2"}, NodeName: &node}},
	}
	if _, err := c.Client().DiscoveryV1().EndpointSlices(namespace).Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// annotate pauses or resumes the agent as a person does.
func annotate(t *testing.T, c *cluster.Cluster, node, value string) {
	t.Helper()
	patch := `{"metadata": {"annotations": {"` + taints.PausedAnnotation + `": ` + value + `}}}`
	if err := bed.PatchNode(t.Context(), c.Client(), node, types.MergePatchType, patch); err != nil {
		t.Fatal(err)
	}
}

// waitEvent waits until the Node has an Event that happened at least that often.
func waitEvent(t *testing.T, c *cluster.Cluster, node, reason string, times int) {
	t.Helper()
	seen := map[types.UID]bool{}
	if _, err := c.WaitEvent(t.Context(), "Node", node, reason, func(e *corev1.Event) bool {
		seen[e.UID] = true
		return len(seen) >= times
	}); err != nil {
		t.Fatal(err)
	}
}

// permission is a verb on a resource, in a namespace or in none.
type permission struct{ verb, resource, namespace string }

// requestsOf reads from the audit log what the agent of a node asked for, and
// fails for each request that was refused.
func requestsOf(t *testing.T, c *cluster.Cluster, node string) map[permission]int {
	t.Helper()
	requests, err := c.Requests(user)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[permission]int{}
	for _, r := range requests {
		if !slices.Equal(r.User.Extra[bed.NodeNameExtra], []string{node}) || r.ObjectRef.Resource == "" {
			continue
		}
		if r.Resource() == "pods" {
			continue // of the cleanup, which looks for agents in vain
		}
		asked[permission{r.Verb, r.Resource(), r.ObjectRef.Namespace}]++
		if bed.IsRefusal(r.ResponseStatus.Code, r.Resource()) {
			t.Errorf("refused: %s %s: %d %s", r.Verb, r.RequestURI, r.ResponseStatus.Code, r.ResponseStatus.Message)
		}
	}
	return asked
}

// compareWithRBAC fails for what was granted and never asked for.
func compareWithRBAC(t *testing.T, c *cluster.Cluster, asked map[permission]int) {
	t.Helper()
	roles := c.Client().RbacV1()
	cluster, err := roles.ClusterRoles().Get(t.Context(), account, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := []rbacv1.Role{{Rules: cluster.Rules}}
	for _, in := range []struct{ namespace, name string }{
		{"default", account}, {namespace, account + "-peers"}, {metav1.NamespaceSystem, account + "-dns"},
	} {
		role, err := roles.Roles(in.namespace).Get(t.Context(), in.name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, *role)
	}
	granted := map[permission]int{}
	for _, role := range all {
		namespace := role.Namespace
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					granted[permission{verb, resource, namespace}] = 1
				}
			}
		}
	}
	// A watch that begins with what is there needs no list, from Kubernetes
	// 1.34 on; client-go lists where the API server does not know that.
	asked[permission{"list", "nodes", ""}]++
	order := func(a, b permission) int {
		return strings.Compare(a.resource+a.verb+a.namespace, b.resource+b.verb+b.namespace)
	}
	want, got := slices.SortedFunc(maps.Keys(granted), order), slices.SortedFunc(maps.Keys(asked), order)
	if !slices.Equal(want, got) {
		t.Errorf("granted %v\nasked   %v", want, got)
	}
	for _, p := range got {
		t.Logf("%d × %s %s %s", asked[p], p.verb, p.resource, p.namespace)
	}
}
