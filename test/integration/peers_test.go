package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	agents "github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// peersOf runs what an agent on a Node knows of the fleet in a namespace, with the
// permissions that the chart gives it.
func peersOf(t *testing.T, as *rest.Config, namespace, node string, port uint16) *agents.Fleet {
	t.Helper()
	client, err := apiserver.NewClient(as, node)
	if err != nil {
		t.Fatal(err)
	}
	f := agents.New(agents.Options{
		Node: node, Listen: netip.AddrPortFrom(netip.IPv6Unspecified(), port), Namespace: namespace, Service: "taintlet",
		APIServer: client.Address(), Source: client, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return f
}

func knows(f *agents.Fleet, count int) func() error {
	return func() error {
		if got := len(f.Surroundings().Peers); got != count {
			return fmt.Errorf("%d peers, want %d", got, count)
		}
		return nil
	}
}

// labelled gives a Node a label, as a cloud provider does.
func labelled(t *testing.T, c *cluster.Cluster, node, key, value string) {
	t.Helper()
	patch := marshal(t, map[string]any{"metadata": map[string]any{"labels": map[string]string{key: value}}})
	if _, err := c.Client().CoreV1().Nodes().Patch(t.Context(), node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// runningAgent is a pod as the chart's DaemonSet makes it, which a kubelet reports
// as ready at an address of the Node.
func runningAgent(t *testing.T, c *cluster.Cluster, namespace, node, address string) {
	t.Helper()
	pods := c.Client().CoreV1().Pods(namespace)
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "taintlet-" + node, Labels: map[string]string{"app.kubernetes.io/name": "taintlet"}},
		Spec: corev1.PodSpec{
			NodeName: node, HostNetwork: true, ServiceAccountName: bed.Account,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:  []corev1.Container{{Name: "taintlet", Image: "none", Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 4808}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP, pod.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// The real endpointslice controller says where the agents of the chart's Service
// are. Peers are those of the other Nodes; one whose Node says that it suspects
// itself, or is cordoned, is told apart.
func TestPeersByTheEndpointSliceController(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	const namespace = "peers"
	createNamespace(t, c, namespace)
	bed.InstallRules(t.Context(), t, c, bed.ChartFolder, namespace, map[string]any{"config": allRules()})
	bed.Apply(t.Context(), t, c, bed.Render(t, "--namespace", namespace, "--show-only", "templates/service.yaml"))
	nodes := []string{"peer-0", "peer-1", "peer-2", "peer-3", "peer-4"}
	var last *cluster.Node
	for i, node := range nodes {
		last = c.Register(t, node)
		labelled(t, c, node, corev1.LabelTopologyZone, fmt.Sprint("zone-", i%2))
		runningAgent(t, c, namespace, node, fmt.Sprint("198.51.100.", i))
	}
	as := identityIn(t, c, namespace, nodes[0])
	// The controller needs a moment; an agent reads again after 30 s.
	cluster.Eventually(t, "the EndpointSlices", func() error {
		list, err := c.Client().DiscoveryV1().EndpointSlices(namespace).List(t.Context(), metav1.ListOptions{})
		if err == nil && (len(list.Items) != 1 || len(list.Items[0].Endpoints) != len(nodes)) {
			err = fmt.Errorf("%d slices", len(list.Items))
		}
		return err
	})
	f := peersOf(t, as, namespace, nodes[0], 4808)
	cluster.Eventually(t, "four peers", knows(f, 4))
	for _, peer := range f.Surroundings().Peers {
		number := strings.TrimPrefix(peer.Node, "peer-")
		if peer.Address.String() != "198.51.100."+number+":4808" || peer.Other != 10250 || peer.Node == nodes[0] {
			t.Errorf("%+v", peer)
		}
	}

	// The kubelet of the last one stops: the Node stays Ready, and its Lease stands.
	if err := last.Stop(); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Standings(t.Context(), nil, []string{"gone"}); err != nil || len(got) != 1 || !got[0].Renewed.IsZero() {
		t.Errorf("a Lease that does not exist: %+v, %v", got, err)
	}
	noted, err := f.Standings(t.Context(), nil, nodes[1:])
	if err != nil {
		t.Fatal(err)
	}
	suspects := taints.Desired{Conditions: []taints.NodeCondition{{Type: "HostNetworkUnavailable", Status: taints.ConditionUnknown, Reason: "PeersUnreachable"}}}
	client, err := apiserver.NewClient(identityIn(t, c, namespace, nodes[1]), nodes[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Apply(t.Context(), apiserver.NodeOf(c.GetNode(t, nodes[1])), suspects); err != nil {
		t.Fatal(err)
	}
	patch := marshal(t, map[string]any{"spec": map[string]any{"unschedulable": true}})
	if _, err := c.Client().CoreV1().Nodes().Patch(t.Context(), nodes[2], types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	want := []verdict.Standing{
		{Node: nodes[1], Suspects: true}, {Node: nodes[2], Excuse: verdict.Cordoned}, {Node: nodes[3]}, {Node: nodes[4]},
		{Node: "gone", Excuse: "does not exist"},
	}
	cluster.Eventually(t, "the Leases to be renewed", func() error {
		standings, err := f.Standings(t.Context(), append(nodes[1:5:5], "gone"), nodes)
		renewed := make([]bool, len(standings)) // since they were noted
		for i := range standings {
			renewed[i] = i < len(noted) && standings[i].Renewed.After(noted[i].Renewed)
			standings[i].Renewed = time.Time{}
		}
		if err == nil && fmt.Sprint(standings, renewed) != fmt.Sprint(want, []bool{false, true, true, false, false}) {
			err = fmt.Errorf("%+v, want %+v; renewed %t", standings, want, renewed)
		}
		return err
	})
}

// manySlices makes EndpointSlices of the agents' Service with so many endpoints
// each, as the controller does for a large fleet.
func manySlices(t *testing.T, c *cluster.Cluster, namespace string, count, each int, number uint16) {
	t.Helper()
	name, port := "metrics", int32(number)
	for i := range count {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: fmt.Sprint("agents-", i), Labels: map[string]string{discoveryv1.LabelServiceName: "taintlet"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
		}
		for j := range each {
			node, zone := fmt.Sprintf("large-%d-%d", i, j), fmt.Sprint("zone-", j%3)
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("198.18.%d.%d", i, j)}, NodeName: &node, Zone: &zone})
		}
		if _, err := c.Client().DiscoveryV1().EndpointSlices(namespace).Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// sliceRequests counts what an account asked for EndpointSlices in its namespace.
func sliceRequests(t *testing.T, c *cluster.Cluster, namespace string) (lists int, gets map[string]int) {
	t.Helper()
	requests, err := c.Requests(bed.UserOf(namespace))
	if err != nil {
		t.Fatal(err)
	}
	gets = map[string]int{}
	for _, r := range requests {
		switch {
		case r.ObjectRef.Resource != "endpointslices" || r.ObjectRef.Namespace != namespace:
		case r.Verb == "list":
			lists++
		default:
			gets[r.ObjectRef.Name]++
		}
	}
	return lists, gets
}

// listings keeps the last list of EndpointSlices that the API server sent.
type listings struct {
	mu   sync.Mutex
	body string
}

func (l *listings) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.body
}

func (l *listings) watch(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err != nil || !strings.HasSuffix(r.URL.Path, "/endpointslices") {
			return response, err
		}
		defer response.Body.Close() //nolint:errcheck // read to its end
		body, err := io.ReadAll(response.Body)
		response.Body = io.NopCloser(bytes.NewReader(body))
		l.mu.Lock()
		defer l.mu.Unlock()
		if strings.Contains(r.URL.Path, "large-fleet") {
			l.body = string(body)
		}
		return response, err
	})
}

// roundTripper is a function that is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Of a fleet of 250 agents in five slices an agent reads the metadata of all and
// three slices, and later only those of the three that have changed.
func TestPeersOfALargeFleet(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	const namespace = "large-fleet"
	createNamespace(t, c, namespace)
	bed.InstallRules(t.Context(), t, c, bed.ChartFolder, namespace, map[string]any{"config": allRules()})
	free, err := cluster.FreePorts("", 1)
	if err != nil {
		t.Fatal(err)
	}
	port := netip.MustParseAddrPort("0.0.0.0:" + free[0]).Port()
	manySlices(t, c, namespace, 5, 50, port)
	const own = "large-0-0"
	c.Register(t, own)
	as := identityIn(t, c, namespace, own)
	listed := &listings{}
	as.Wrap(listed.watch)
	f := peersOf(t, as, namespace, own, port)
	cluster.Eventually(t, "twelve peers", knows(f, agents.MaxPeers))
	perZone, slices := map[int]int{}, map[int]bool{}
	for _, peer := range f.Surroundings().Peers {
		var slice, endpoint int
		if _, err := fmt.Sscanf(peer.Node, "large-%d-%d", &slice, &endpoint); err != nil {
			t.Fatal(err)
		}
		perZone[endpoint%3]++
		slices[slice] = true
	}
	lists, gets := sliceRequests(t, c, namespace)
	t.Logf("peers by zone %v, of slices %v; %d lists, gets %v", perZone, slices, lists, gets)
	if lists != 1 || len(gets) != 3 || perZone[0] != 4 || perZone[1] != 4 || perZone[2] != 4 || f.Crowd() != 5*time.Second {
		t.Errorf("%d lists, gets %v, peers by zone %v, fleet of %s", lists, gets, perZone, f.Crowd())
	}

	if body := listed.last(); !strings.Contains(body, `"PartialObjectMetadataList"`) || strings.Contains(body, "addresses") {
		t.Errorf("listed more than metadata: %.1000s", body)
	}

	// One of the chosen slices loses its endpoints.
	var chosen string
	for name := range gets {
		chosen = name
	}
	patch := []byte(`[{"op": "replace", "path": "/endpoints", "value": []}]`)
	if _, err := c.Client().DiscoveryV1().EndpointSlices(namespace).Patch(t.Context(), chosen, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, "the list to be old enough to be read again", func() error {
		if _, err := f.Standings(t.Context(), []string{own}, nil); err != nil {
			return err
		}
		for _, peer := range f.Surroundings().Peers {
			if strings.HasPrefix(peer.Node, "large-"+strings.TrimPrefix(chosen, "agents-")+"-") {
				return fmt.Errorf("%s is a peer still", peer.Node)
			}
		}
		return nil
	})
	lists, after := sliceRequests(t, c, namespace)
	t.Logf("then %d lists, gets %v", lists, after)
	for name, count := range after {
		if want := map[bool]int{true: 2, false: 1}[name == chosen]; count != want {
			t.Errorf("%s was read %d times, want %d", name, count, want)
		}
	}
	if lists != 2 {
		t.Errorf("%d lists", lists)
	}

	a := bed.StartAgent(t, binary.Path(t), append(fixtures.NewHost(t).Flags(), "--kubeconfig="+cluster.Kubeconfig(t, as), "--node-name="+own, "--namespace="+namespace, fmt.Sprintf("--listen=:%d", port))...)
	cluster.Eventually(t, "the agent's peers", func() error {
		if got := a.Metric(`taintlet_peers{state="known"}`); got != agents.MaxPeers {
			return fmt.Errorf("%d peers", got)
		}
		return nil
	})
	if code, page := a.Get("/peer"); code != 200 || !strings.Contains(page, `"MemoryPressure":"OK"`) {
		t.Errorf("%d %s", code, page)
	}
}
