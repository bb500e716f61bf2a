package integration

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent/assembly"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

const (
	startingKey  = "startup-taint.cluster-autoscaler.kubernetes.io/taintlet"
	startingHost = "starting-%d"
	manyHosts    = 100
	cutOffHost   = 37
)

// wellProbe finds its condition OK.
type wellProbe struct{ condition probes.Condition }

func (p wellProbe) Condition() probes.Condition { return p.condition }
func (p wellProbe) Wake() <-chan struct{}       { return nil }
func (p wellProbe) Run(context.Context)         {}
func (p wellProbe) Observe(context.Context) probes.Observation {
	return probes.Observation{Condition: p.condition, Level: probes.OK, Reason: "Enough", Message: "enough"}
}

// reachingProbe judges rounds by the agent's own verdict. Each peer answers, or none does.
type reachingProbe struct {
	wellProbe
	judge   *verdict.Evaluator
	cutOff  *atomic.Bool
	cluster verdict.Cluster
}

func (p *reachingProbe) Join(cluster verdict.Cluster) { p.cluster = cluster }

func (p *reachingProbe) Observe(ctx context.Context) probes.Observation {
	in := p.cluster.Surroundings()
	well := verdict.Result{Outcome: verdict.Well}
	r := verdict.Round{At: time.Now(), Results: map[verdict.Class]verdict.Result{verdict.Route: well, verdict.Self: well, verdict.API: well}}
	switch answer := (verdict.Answer{Version: verdict.AnswerVersion, Lossy: 0, Reach: 100}); {
	case len(in.Peers) == 0:
	case p.cutOff.Load():
		r.Results[verdict.Peers] = verdict.Result{Never: true, Detail: fmt.Sprintf("none of %d peers was ever reached", len(in.Peers))}
		r.NeverReached = len(in.Peers)
	default:
		r.Results[verdict.Peers] = well
		for _, peer := range in.Peers {
			r.Peers = append(r.Peers, verdict.PeerResult{Node: peer.Node, Reached: true, Answer: &answer})
		}
	}
	found := p.judge.Next(r)
	p.cluster.Consult(ctx, &found)
	return found.Observation
}

// startingFleet is hosts that register at the same time, each with an agent that is real
// but for its probes.
type startingFleet struct {
	t      *testing.T
	c      *cluster.Cluster
	cfg    *config.Config
	cutOff atomic.Bool // the host cutOffHost
}

// register makes the Nodes as their kubelets do, and the EndpointSlice of the agents.
func (f *startingFleet) register(namespace string) {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "taintlet-test", Labels: map[string]string{discoveryv1.LabelServiceName: "taintlet"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("metrics"), Port: new(int32(4808))}},
	}
	for i := range manyHosts {
		name := fmt.Sprintf(startingHost, i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{
			{Key: "example.com/foreign", Effect: corev1.TaintEffectNoSchedule}, {Key: startingKey, Effect: corev1.TaintEffectNoSchedule},
		}}}
		if _, err := f.c.Client().CoreV1().Nodes().Create(f.t.Context(), node, metav1.CreateOptions{}); err != nil {
			f.t.Fatal(err)
		}
		f.t.Cleanup(func() {
			if err := f.c.Client().CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
				f.t.Error(err)
			}
		})
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: &name, Addresses: []string{fmt.Sprint("198.51.100.", i+1)}})
	}
	if _, err := f.c.Client().DiscoveryV1().EndpointSlices(namespace).Create(f.t.Context(), slice, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// start runs the agent of a host for the length of the test.
func (f *startingFleet) start(namespace string, number int, as *rest.Config) {
	name := fmt.Sprintf(startingHost, number)
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.t.Context()))
	a, disconnect, err := assembly.New(ctx, assembly.Options{
		Node: name, Namespace: namespace, RestConfig: as, DryRun: assembly.DryRunNone,
		HostIP: netip.AddrFrom4([4]byte{198, 51, 100, byte(number + 1)}), Listen: netip.AddrPortFrom(netip.IPv6Unspecified(), 4808),
		NewProbe: func(c config.Condition) probes.Probe {
			if c.Name != probes.NetworkUnavailable {
				return wellProbe{c.Name}
			}
			cutOff := &atomic.Bool{}
			if number == cutOffHost {
				cutOff = &f.cutOff
			}
			return &reachingProbe{wellProbe: wellProbe{c.Name}, judge: verdict.NewEvaluator(5*time.Second, uint64(number)), cutOff: cutOff} //nolint:gosec // it is small
		},
		Config: f.cfg, Log: slog.New(slog.DiscardHandler), Instance: name, Boot: decide.Boot{ID: name, At: time.Now()}, Now: time.Now,
		Version: "test",
	})
	if err != nil {
		f.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, nil) }()
	f.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Error(err)
		}
		disconnect()
	})
}

// starting returns the hosts whose Node still has the taint.
func (f *startingFleet) starting() (names []string, err error) {
	nodes, err := f.c.Client().CoreV1().Nodes().List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if !strings.HasPrefix(node.Name, "starting-") {
			continue
		}
		if !cluster.HasTaint("example.com/foreign", corev1.TaintEffectNoSchedule)(node) {
			return nil, fmt.Errorf("%s lost its foreign taint", node.Name)
		}
		if cluster.HasTaint(startingKey, corev1.TaintEffectNoSchedule)(node) {
			names = append(names, node.Name)
		}
	}
	return names, nil
}

// A hundred Nodes register at once with the start-up taint, under the permissions and
// policies of the chart. Each is freed by its own verdict. One that reaches no peer stays
// tainted, and its condition and an Event say why, until it reaches them.
func TestAHundredNodesStartAtOnce(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	const namespace = "starting"
	createNamespace(t, c, namespace)
	startup := map[string]any{"taint": startingKey}
	bed.InstallRules(t.Context(), t, c, bed.ChartFolder, namespace, map[string]any{"config": map[string]any{"startup": startup}})
	cfg, err := config.HostSchema().Decode([]byte(bed.ConfigHeader + "startup: {taint: " + startingKey + "}\n"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Startup.Timeout.Duration = time.Minute
	f := &startingFleet{t: t, c: c, cfg: cfg}
	f.cutOff.Store(true)
	f.register(namespace)
	identities := make([]*rest.Config, manyHosts)
	for i := range identities {
		identities[i] = identityIn(t, c, namespace, fmt.Sprintf(startingHost, i))
	}
	began := time.Now()
	for i, as := range identities {
		f.start(namespace, i, as)
	}
	cutOff := fmt.Sprintf(startingHost, cutOffHost)
	var first sync.Once
	cluster.Eventually(t, "99 Nodes without the taint", func() error {
		names, err := f.starting()
		if err != nil || slices.Equal(names, []string{cutOff}) {
			return err
		}
		if len(names) < manyHosts {
			first.Do(func() { t.Logf("the first Node was freed within %.0f s", time.Since(began).Seconds()) })
		}
		return fmt.Errorf("%d Nodes have the taint", len(names))
	})
	t.Logf("%d Nodes were freed within %.0f s", manyHosts-1, time.Since(began).Seconds())
	c.WaitAgentEvent(t, cutOff, "StartupTaintStays", "it waits for NetworkUnavailable (no healthy check yet of PacketLoss, LargePacketsLost, CutOff): none of 12 peers was ever reached")
	names, err := f.starting()
	if err != nil || !slices.Equal(names, []string{cutOff}) {
		t.Errorf("%v have the taint, %v", names, err)
	}
	waitNode(t, c, cutOff, func(node *corev1.Node) bool { // it is told within a minute
		network := cluster.Condition(node, "HostNetworkUnavailable")
		return network != nil && strings.Contains(network.Message, "the start-up taint "+startingKey+" has waited for this condition since ") &&
			strings.HasSuffix(network.Message, "no healthy check yet of PacketLoss, LargePacketsLost, CutOff")
	})
	f.cutOff.Store(false)
	waitNode(t, c, cutOff, cluster.Not(cluster.HasTaint(startingKey, corev1.TaintEffectNoSchedule)))
	c.WaitAgentEvent(t, cutOff, "StartupTaintRemoved", "")
}
