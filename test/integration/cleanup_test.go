package integration

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// notLookedUp is said to an account that may not list pods, such as the agents'.
const notLookedUp = "could not check whether agents still run: your account may not list pods in namespace taintlet-system\n"

// The agent was killed on a tainted Node. Afterwards the Node is as it was
// before taintlet came, also between the taints, labels and annotations of
// others.
func TestCleanupLeavesTheNodeAsItWas(t *testing.T) {
	t.Parallel()
	c := keeping.require(t)
	node, host := c.Register(t, "cleaned"), fixtures.NewHost(t)
	c.RunKubectl(t, "label", "node", node.Name, "example.com/rack=7")
	c.RunKubectl(t, "annotate", "node", node.Name, "example.com/owner=somebody", "taintlet.dev/paused=false")
	c.SetTaints(t, node.Name, dedicated)
	// The controller adds labels to a new Node, in its own time.
	waitNode(t, c, node.Name, func(node *corev1.Node) bool { return node.Labels["beta.kubernetes.io/os"] != "" })
	before := c.GetNode(t, node.Name)
	// Nothing of taintlet's is there yet.
	code, out := cleanup(t, c, node.Name)
	if want := notLookedUp + "node cleaned: nothing to remove\nnode cleaned: annotation taintlet.dev/paused stays, because an operator set it\n1 of 1 nodes cleaned up\n"; code != 0 || out != want {
		t.Errorf("cleanup of an untouched Node: exit code %d\n%swant\n%s", code, out, want)
	}

	a := startAgent(t, c, node.Name, host, quick)
	host.Memory(2)
	waitNode(t, c, node.Name, tainted(memoryKey))
	waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue))
	a.Kill()
	c.RunKubectl(t, "taint", "node", node.Name, "example.com/later=yes:NoExecute")
	was := c.GetNode(t, node.Name)
	foreign := taintsOf(was, memoryKey)
	dryCode, dryRun := cleanup(t, c, node.Name, "--dry-run")
	// The controllers and the kubelet go on writing the Node.
	now := c.GetNode(t, node.Name)
	if dryCode != 0 || !reflect.DeepEqual(now.Spec.Taints, was.Spec.Taints) || !reflect.DeepEqual(now.Annotations, was.Annotations) || len(now.Status.Conditions) != len(was.Status.Conditions) {
		t.Errorf("exit code %d; a dry run made\n%+v\nof\n%+v", dryCode, now, was)
	}
	code, out = cleanup(t, c, node.Name)
	said, isSummed := strings.CutSuffix(dryRun, "dry run: 1 of 1 nodes would be cleaned up\n")
	if told := notLookedUp + strings.ReplaceAll(said, "would remove", "removed") + "1 of 1 nodes cleaned up\n"; told != out || !isSummed {
		t.Errorf("the dry run says\n%sthe cleanup\n%s", dryRun, out)
	}
	after := c.GetNode(t, node.Name)
	for _, line := range []string{
		"taint " + memoryKey + ":NoSchedule", "annotation taintlet.dev/record", "annotation taintlet.dev/held",
		"condition HostMemoryPressure", "condition HostDiskPressure", "condition HostPIDPressure", "condition HostNetworkUnavailable",
		"condition HostRepairNeeded",
	} {
		if !strings.Contains(out, "node cleaned: removed "+line+"\n") {
			t.Errorf("output does not say that %s was removed", line)
		}
	}
	if code != 0 || strings.Count(out, "\n") != 11 { // those, that paused stays, that nobody looked for agents, and the sum
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
	if got, want := string(marshal(t, []any{after.Labels, after.Annotations, conditionTypes(after)})),
		string(marshal(t, []any{before.Labels, before.Annotations, conditionTypes(before)})); got != want {
		t.Errorf("labels, annotations and conditions are\n%s\nwere\n%s", got, want)
	}
	if got := taintsOf(after); !slices.Equal(got, foreign) || len(foreign) != 2 {
		t.Errorf("taints are %v, those of others were %v", got, foreign)
	}

	code, out = cleanup(t, c, node.Name)
	if again := c.GetNode(t, node.Name); code != 0 || !strings.Contains(out, "nothing to remove") || again.ResourceVersion != after.ResourceVersion {
		t.Errorf("second cleanup: exit code %d, version %s after %s, output:\n%s", code, again.ResourceVersion, after.ResourceVersion, out)
	}
}

// A taint of a rule of one's own can be told from a forged record only by the
// configuration that has the rule.
func TestCleanupOfACustomTaintNeedsItsConfiguration(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	node, host := c.Register(t, "cleaned-custom"), fixtures.NewHost(t)
	const key = "example.com/tired"
	a := startAgent(t, c, node.Name, host, quick+"rules:\n- {condition: MemoryPressure, level: Degraded, taint: {key: "+key+", effect: NoSchedule}}\n")
	host.Memory(2)
	waitNode(t, c, node.Name, tainted(key))
	waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue))
	a.Kill()

	for range 2 { // it says so again
		code, out := cleanup(t, c, node.Name)
		if code != 1 || !strings.Contains(out, "the record names ["+key+":NoSchedule], but no rule asks for them") || !strings.Contains(out, "use --config") {
			t.Errorf("exit code %d, output:\n%s", code, out)
		}
		now := c.GetNode(t, node.Name)
		if !tainted(key)(now) || !slices.Equal(recordOf(now).Owned, []string{key + ":NoSchedule"}) {
			t.Errorf("taints = %v, record = %+v", now.Spec.Taints, recordOf(now))
		}
	}
	code, out := cleanup(t, c, node.Name, "--config="+a.ConfigFile())
	if code != 0 || !strings.Contains(out, "removed taint "+key+":NoSchedule") || !strings.Contains(out, "removed annotation taintlet.dev/record") {
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
	nothingIsLeft(t, c, node.Name)
}

// The kubelet itself says MemoryPressure: the pair that was ours too is its
// controller's now. It stays, and goes when the kubelet is content.
func TestCleanupLeavesTheKubeletsTaint(t *testing.T) {
	t.Parallel()
	c := keeping.require(t)
	node, host := c.Register(t, "cleaned-kubelet"), fixtures.NewHost(t)
	a := startAgent(t, c, node.Name, host, quick)
	host.Memory(2)
	waitNode(t, c, node.Name, tainted(memoryKey))
	waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue))
	a.Kill()
	if err := node.SetCondition(t.Context(), corev1.NodeMemoryPressure, corev1.ConditionTrue); err != nil {
		t.Fatal(err)
	}
	versions := follow(t, c, node.Name)
	code, out := cleanup(t, c, node.Name)
	if code != 0 || strings.Contains(out, "removed taint") || !strings.Contains(out, "removed annotation taintlet.dev/held") {
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
	nothingIsLeft(t, c, node.Name)
	// Later versions are no concern of the cleanup's: when a write of the
	// controller met a conflict, it tries again without another check of the
	// condition (RemoveTaintOffNode in pkg/controller/controller_utils.go), removes
	// the taint and sets it again.
	released := versions.wait(0, func(node *corev1.Node) bool { return node.Annotations["taintlet.dev/held"] == "" })
	if !tainted(memoryKey)(versions.since(released)[0].Node) {
		t.Errorf("the cleanup removed the kubelet's taint; taints were\n%s", show(versions.since(0)))
	}
	waitNode(t, c, node.Name, tainted(memoryKey))
	if err := node.SetCondition(t.Context(), corev1.NodeMemoryPressure, corev1.ConditionFalse); err != nil {
		t.Fatal(err)
	}
	waitNode(t, c, node.Name, untainted(memoryKey))
}

// A record that cannot be read, or that a newer release wrote, proves nothing.
// A taint that may be taintlet's is left, so the cleanup has failed, and the
// record stays for somebody who can read it.
func TestCleanupWithARecordThatItCannotRead(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	node, host := c.Register(t, "cleaned-unread"), fixtures.NewHost(t)
	a := startAgent(t, c, node.Name, host, quick)
	host.Memory(2)
	good := waitNode(t, c, node.Name, tainted(memoryStandIn)).Annotations["taintlet.dev/record"]
	waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue))
	a.Kill()
	for name, record := range map[string]string{
		"damaged":           good[:len(good)/2],
		"a newer release's": strings.Replace(good, `"version":1`, `"version":2`, 1),
	} {
		annotateAsKubelet(t, c, node.Name, "taintlet.dev/record", record)
		code, out := cleanup(t, c, node.Name)
		now := c.GetNode(t, node.Name)
		if code != 1 || !tainted(memoryStandIn)(now) || now.Annotations["taintlet.dev/record"] != record {
			t.Errorf("%s: exit code %d, taints %v, record %q, output:\n%s", name, code, taintsOf(now), now.Annotations["taintlet.dev/record"], out)
		}
	}
	annotateAsKubelet(t, c, node.Name, "taintlet.dev/record", good)
	if code, out := cleanup(t, c, node.Name); code != 0 {
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
	nothingIsLeft(t, c, node.Name)
}

// A cleanup that cannot look for agents notices one by what it writes again: a condition
// that somebody removed comes back at once.
func TestCleanupBesideAnAgentFails(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	node, host := c.Register(t, "cleaned-beside"), fixtures.NewHost(t)
	startAgent(t, c, node.Name, host, quick)
	waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
	if code, out := cleanup(t, c, node.Name); code != 1 || !strings.Contains(out, "node cleaned-beside: an agent still writes it; stop the agent first") {
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
	waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
}

func TestCleanupOfAMissingNode(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	if code, out := cleanup(t, c, "no-such-node"); code != 1 || !strings.HasSuffix(out, "taintlet: node no-such-node does not exist\n") {
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
}

// Whoever cleans up without a permission is told which one is missing.
func TestCleanupNamesTheMissingPermission(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	node, host := c.Register(t, "cleaned-forbidden"), fixtures.NewHost(t)
	a := startAgent(t, c, node.Name, host, quick)
	host.Memory(2)
	waitNode(t, c, node.Name, tainted(memoryStandIn))
	waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue))
	a.Kill()
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"patch"}},
	}
	for i, want := range []string{"the permission to get nodes is missing", "the permission to patch nodes is missing", "the permission to patch nodes/status is missing"} {
		user := []string{"nobody", "reader-of-nodes", "writer-of-nodes"}[i]
		if err := c.Grant(t.Context(), user, user, rules[:i]...); err != nil {
			t.Fatal(err)
		}
		for _, rule := range rules[:i] {
			waitAllowed(t, c, user, rule.Verbs[0], rule.Resources[0])
		}
		as, err := c.Config(user)
		if err != nil {
			t.Fatal(err)
		}
		if code, out := cleanupAs(t, as, node.Name); code != 1 || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, output:\n%s", user, code, out)
		}
		now := c.GetNode(t, node.Name)
		if i < 2 && (!tainted(memoryStandIn)(now) || recordOf(now).Revision == 0) {
			t.Errorf("%s: taints = %v, record = %+v", user, now.Spec.Taints, recordOf(now))
		}
	}
	if code, out := cleanup(t, c, node.Name); code != 0 { // the rest
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
	nothingIsLeft(t, c, node.Name)
}

func TestCleanupFlags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"of something else": {[]string{"cleanup", "everything"}, `cleanup "everything": must be one of node, stale, all`},
		"of nothing":        {[]string{"cleanup"}, "specify what to clean up: node, stale or all"},
		"all of a Node":     {[]string{"cleanup", "all", "worker"}, `unexpected argument "worker" after cleanup all`},
		"the agent's flag":  {[]string{"cleanup", "node", "--listen="}, "unknown flag: --listen"},
		"of no Node":        {[]string{"cleanup", "node", "Not_A_Node"}, `node "Not_A_Node"`},
		"bad configuration": {[]string{"cleanup", "node", "--config=/nonexistent.yaml"}, "/nonexistent.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			if code, out := exitCode(t, c.args...); code != 2 || !strings.Contains(out, c.want) {
				t.Errorf("exit code %d, output:\n%s", code, out)
			}
		})
	}
}

// cleanup runs taintlet cleanup node to its end, with the permissions of the
// agent.
func cleanup(t *testing.T, c *cluster.Cluster, node string, more ...string) (int, string) {
	t.Helper()
	return cleanupAs(t, identity(t, c, node), node, more...)
}

func cleanupAs(t *testing.T, as *rest.Config, node string, more ...string) (int, string) {
	t.Helper()
	return exitCode(t, append([]string{"cleanup", "node", node, "--kubeconfig=" + cluster.Kubeconfig(t, as)}, more...)...)
}

// waitAllowed waits until the API server, which hears of a new role by a watch
// of its own, lets the user do it.
func waitAllowed(t *testing.T, c *cluster.Cluster, user, verb, resource string) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: resource},
	}}
	cluster.Eventually(t, "a permission", func() error {
		answer, err := c.Client().AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !answer.Status.Allowed {
			return fmt.Errorf("%s may not %s %s", user, verb, resource)
		}
		return nil
	})
}

// nothingIsLeft checks that the Node has nothing of taintlet's, other than
// perhaps a taint that it shares with the controller.
func nothingIsLeft(t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	node := c.GetNode(t, name)
	left := append(conditionTypes(node), taintsOf(node, memoryKey)...)
	for key := range node.Annotations {
		left = append(left, key)
	}
	for _, what := range left {
		if strings.HasPrefix(what, "Host") || strings.Contains(what, "taintlet.dev/") || strings.HasPrefix(what, "example.com/") {
			t.Errorf("%s is left", what)
		}
	}
}

func conditionTypes(node *corev1.Node) []string {
	var types []string
	for _, condition := range node.Status.Conditions {
		types = append(types, string(condition.Type))
	}
	slices.Sort(types)
	return types
}
