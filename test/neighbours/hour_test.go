package neighbours

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// longEnv makes the flapping of TestAnHourOfTrouble last for an hour of the agent's clock, and
// not for ten minutes.
const longEnv = "TAINTLET_LONG_NEIGHBOURS"

// fleet is how many Nodes each reporter has.
const fleet = 12

// pace is how many times as fast as by default the agents of an hour decide. The kubelet of
// flap has the same pace.
const pace = 60

// quick has the default configuration at that pace, as far as it reads the time.
const quick = `
memory: {period: 250ms, debounce: {clearAfter: 2s, maxClearAfter: 1m, criticalAfter: 1s}}
pid: {period: 250ms, debounce: {clearAfter: 2s, maxClearAfter: 1m, criticalAfter: 1s}}
network: {period: 1s, debounce: {clearAfter: 2s, maxClearAfter: 1m, criticalAfter: 1s}}
writeBudget: {interval: 40s}
repair: {after: 10s}
`

// cost is what an hour of trouble made the neighbours do.
type cost struct {
	once     int // pods evicted from Nodes that had each condition once
	flapping int // pods evicted from the Node that flapped
	half     int // pods evicted from the half of the fleet
	started  int // Nodes that Karpenter started for these pods, and for that of the Node that is cut off
	deleted  int // Nodes that Karpenter deleted, without the one that is not Ready
}

// reporter is who reports a fault, and the taint that Nodes then have.
type reporter struct {
	name   string
	key    func(trouble) string
	effect corev1.TaintEffect
	// more is of the configuration of the agents. Without it kubelets report the fault.
	more     string
	troubles []trouble
}

func reporters(keep bool) []reporter {
	known, all := func(of trouble) string { return of.wellKnown }, troubles()
	if !keep {
		return []reporter{{"stand-in", func(of trouble) string { return of.standIn }, corev1.TaintEffectNoSchedule, quick, all}}
	}
	return []reporter{
		{"kubelet", known, corev1.TaintEffectNoSchedule, "", all},
		{"kept", known, corev1.TaintEffectNoSchedule, quick, all},
		{"soft", known, corev1.TaintEffectPreferNoSchedule, quick + "rules: [" + softRule + "]\n", []trouble{memory()}},
	}
}

func memory() trouble { return troubles()[1] }

// hour is one reporter's hour of trouble on the Nodes of a NodePool.
type hour struct {
	reporter
	c           *cluster.Cluster
	karpenter   *karpenter
	descheduler *descheduler
	nodes       []*cluster.Node
	hosts       map[string]*fixtures.Host // of the Nodes that have an agent
	cost        cost
}

// startHour lets the trouble happen, and leaves half of the fleet and one more Node in it.
func startHour(t *testing.T, by reporter, k *karpenter, d *descheduler) *hour {
	t.Helper()
	h := &hour{reporter: by, c: k.cluster, karpenter: k, descheduler: d, hosts: map[string]*fixtures.Host{}}
	h.nodes = k.provision(t, h.name, "[]", fleet)
	k.waitInitialized(t, h.name)
	h.once(t)
	h.flap(t)
	h.half(t)
	h.cutOff(t)
	k.waitInitialized(t, h.name)
	return h
}

// begin makes the Node have the trouble.
func (h *hour) begin(t *testing.T, node *cluster.Node, of trouble) {
	t.Helper()
	if h.more == "" {
		h.report(t, node, of, corev1.ConditionTrue)
	} else {
		of.begin(h.host(t, node))
	}
}

func (h *hour) end(t *testing.T, node *cluster.Node, of trouble) {
	t.Helper()
	if h.more == "" {
		h.report(t, node, of, corev1.ConditionFalse)
	} else {
		of.end(h.host(t, node))
	}
}

// report is what a kubelet does.
func (h *hour) report(t *testing.T, node *cluster.Node, of trouble, status corev1.ConditionStatus) {
	t.Helper()
	if err := node.SetCondition(t.Context(), of.kubelets, status); err != nil {
		t.Fatal(err)
	}
}

// host is the host of a Node, with an agent that has found it healthy.
func (h *hour) host(t *testing.T, node *cluster.Node) *fixtures.Host {
	t.Helper()
	host := h.hosts[node.Name]
	if host == nil {
		host = startAgentWith(t, h.c, node.Name, h.more)
		h.hosts[node.Name] = host
		for _, condition := range []string{"HostMemoryPressure", "HostDiskPressure", "HostPIDPressure"} {
			waitNode(t, h.c, node.Name, cluster.HasCondition(condition, corev1.ConditionFalse))
		}
	}
	return host
}

func (h *hour) waitTaint(t *testing.T, node *cluster.Node, of trouble) {
	t.Helper()
	waitNode(t, h.c, node.Name, cluster.HasTaint(h.key(of), h.effect))
}

func (h *hour) waitNoTaint(t *testing.T, node *cluster.Node, of trouble) {
	t.Helper()
	waitNode(t, h.c, node.Name, cluster.Not(cluster.HasTaint(h.key(of), h.effect)))
}

// pin creates a Deployment with one pod that belongs on the Node, and waits for the pod.
func (h *hour) pin(t *testing.T, node *cluster.Node) {
	t.Helper()
	hostname := h.c.GetNode(t, node.Name).Labels[corev1.LabelHostname] // of a Node of kwok, the name of its NodeClaim
	h.deploy(t, "on-"+hostname, 1, corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelHostname: hostname}})
}

// deploy creates a Deployment and waits until each of its pods has a Node. Pods end at once,
// because no kubelet confirms the end.
func (h *hour) deploy(t *testing.T, name string, replicas int32, spec corev1.PodSpec) {
	t.Helper()
	now := int64(0)
	labels := map[string]string{"app": name}
	spec.TerminationGracePeriodSeconds = &now
	spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
	created := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
	}}
	if _, err := h.c.Client().AppsV1().Deployments(metav1.NamespaceDefault).Create(t.Context(), created, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, "the pods of "+name, func() error {
		pods, err := h.c.Client().CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return err
		}
		placed := 0
		for _, pod := range pods.Items {
			if pod.Spec.NodeName != "" {
				placed++
			}
		}
		if placed != int(replicas) {
			return fmt.Errorf("%d of %d have a Node", placed, replicas)
		}
		return nil
	})
}

// once has each condition on a Node, one after the other, and takes it away.
func (h *hour) once(t *testing.T) {
	t.Helper()
	for i, of := range h.troubles {
		node := h.nodes[i]
		h.pin(t, node)
		h.begin(t, node, of)
		h.waitTaint(t, node, of)
		h.descheduler.settle(t)
		h.end(t, node, of)
		h.waitNoTaint(t, node, of)
		h.cost.once += h.descheduler.evictions(node.Name)
	}
}

// flap has the memory of a Node short for a minute in each ten minutes. A kubelet shows the
// condition for five minutes more (--eviction-pressure-transition-period).
func (h *hour) flap(t *testing.T) {
	t.Helper()
	cycles := 1
	if os.Getenv(longEnv) != "" {
		cycles = 6
	}
	bad, whole := time.Minute/pace, 10*time.Minute/pace
	if h.more == "" {
		bad = 6 * time.Minute / pace
	}
	node := h.nodes[len(h.troubles)]
	h.pin(t, node)
	if h.more != "" {
		h.host(t, node)
	}
	for range cycles {
		next := time.Now().Add(whole)
		h.begin(t, node, memory())
		<-time.After(bad)
		h.end(t, node, memory())
		<-time.After(time.Until(next))
	}
	h.descheduler.settle(t)
	h.waitNoTaint(t, node, memory())
	h.cost.flapping = h.descheduler.evictions(node.Name)
}

// half has the memory of half of the fleet short at once, for good. Each Node has a pod of a
// Deployment, and no other Node has room for one more.
func (h *hour) half(t *testing.T) {
	t.Helper()
	name := "fleet-" + h.name
	h.deploy(t, name, fleet, corev1.PodSpec{NodeSelector: map[string]string{poolLabel: h.name}, Affinity: alone(map[string]string{"app": name})})
	half := h.nodes[fleet/2:]
	var names []string
	for _, node := range half {
		names = append(names, node.Name)
		if h.more != "" {
			h.host(t, node)
		}
	}
	for _, node := range half {
		h.begin(t, node, memory())
	}
	for _, node := range half {
		h.waitTaint(t, node, memory())
	}
	h.descheduler.settle(t)
	h.cost.half = h.descheduler.evictions(names...)
	h.cost.started = len(h.karpenter.adopt(t, h.name, fleet+h.cost.half))
}

// cutOff has one more Node of the fleet lose its network for good, if the reporter reports
// that. It needs a repair then.
func (h *hour) cutOff(t *testing.T) {
	t.Helper()
	if len(h.troubles) == 1 {
		return
	}
	network := troubles()[3]
	h.begin(t, h.nodes[3], network)
	h.waitTaint(t, h.nodes[3], network)
	if h.more != "" {
		waitNode(t, h.c, h.nodes[3].Name, cluster.HasCondition(decide.RepairType, corev1.ConditionTrue))
	}
	h.cost.started += len(h.karpenter.adopt(t, h.name, fleet+h.cost.half+1))
}

// broken is a Node that has no other trouble, and no pod that cannot be elsewhere: Karpenter
// would not repair that.
func (h *hour) broken() *cluster.Node { return h.nodes[fleet/2-1] }

// waitRepair waits until Karpenter has replaced the Node whose kubelet is not Ready, and counts
// the others that it has deleted.
func (h *hour) waitRepair(t *testing.T) {
	t.Helper()
	h.karpenter.adopt(t, h.name, fleet+h.cost.started+1)
	var kept []string
	cluster.Eventually(t, "the repair of the Node of "+h.name+" that is not Ready", func() error {
		kept = h.karpenter.kept(t, h.name)
		if slices.Contains(kept, h.broken().Name) {
			return fmt.Errorf("%s stays", h.broken().Name)
		}
		return nil
	})
	for _, node := range h.nodes {
		if node != h.broken() && !slices.Contains(kept, node.Name) {
			t.Logf("%s: Karpenter has deleted %s", h.name, node.Name)
			h.cost.deleted++
		}
	}
}

// Beside Karpenter and the descheduler, an hour of trouble that taintlet reports costs no more
// than the same trouble reported by the kubelets: each condition once, a Node that flaps, half
// of a fleet at once, and a start-up taint that stays. Karpenter deletes no Node for it. It
// still deletes the Node beside them that is not Ready.
func TestAnHourOfTrouble(t *testing.T) {
	requireNeighbours(t)
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	costs := map[string]cost{}
	for _, on := range []*bed.Installation{&provisioned, &provisionedPlain} {
		c := on.Require(t)
		k, d := startKarpenter(t, c), startDescheduler(t, c, removeAll)
		stuck := k.provision(t, "stuck", startupTaints, 1)[0]
		var hours []*hour
		for _, by := range reporters(on.Keep) {
			hours = append(hours, startHour(t, by, k, d))
		}
		k.waitStartupTaint(t, "stuck")
		k.restart(t, time.Hour, "")
		k.settle(t)
		// Within an hour, Karpenter would give a replacement up that starts now.
		k.restart(t, 12*time.Minute, "")
		for _, h := range hours {
			if err := h.broken().SetCondition(t.Context(), corev1.NodeReady, corev1.ConditionFalse); err != nil {
				t.Fatal(err)
			}
		}
		for _, h := range hours {
			h.waitRepair(t)
			costs[h.name] = h.cost
			t.Logf("%s: %+v", h.name, h.cost)
		}
		if kept := k.kept(t, "stuck"); !slices.Equal(kept, []string{stuck.Name}) {
			t.Errorf("of the Node with the start-up taint, Karpenter keeps %v", kept)
		}
	}
	judge(t, costs)
}

// judge compares the costs with those of the kubelets.
func judge(t *testing.T, costs map[string]cost) {
	t.Helper()
	kubelet := costs["kubelet"]
	want := cost{once: len(troubles()), flapping: kubelet.flapping, half: fleet / 2, started: fleet/2 + 1}
	if kubelet != want || kubelet.flapping == 0 {
		t.Errorf("the kubelets cost %+v, not %+v", kubelet, want)
	}
	for _, name := range []string{"kept", "stand-in"} {
		want.flapping = costs[name].flapping
		if costs[name] != want || want.flapping == 0 || want.flapping > kubelet.flapping {
			t.Errorf("%s costs %+v, the kubelets %+v", name, costs[name], kubelet)
		}
	}
	if costs["soft"] != (cost{}) {
		t.Errorf("the soft taint costs %+v", costs["soft"])
	}
}
