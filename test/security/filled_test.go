package security

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"golang.org/x/sync/errgroup"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/bed/fleet"
	"github.com/taintlet/taintlet/test/cluster"
)

const (
	// memoryDelay is from the host's change to the taint, of an agent that samples each
	// second.
	memoryDelay = 5 * time.Second
	// room is what is left of the 256 KiB of annotations of a Node, and of what etcd takes
	// for one request: an agent whose record does not fit sets its taint without it, but
	// nothing fits into a Node that is full.
	room = 50_000
)

// TestFilledObjects fills what agents read to what the API server stores: their own
// Nodes and those of others, Leases of Nodes, and EndpointSlices. Each agent stays below
// its memory limit, and the taint of one whose host is short of memory comes soon.
//
// Kubelets write Nodes and Leases, each its own. EndpointSlices where the agents and
// the DNS pods are, in taintlet's namespace and kube-system, are written by whoever may
// do so in all namespaces, such as controllers of Services; neither a kubelet nor the
// role edit may. Agents read no pods.
func TestFilledObjects(t *testing.T) {
	s := fleet.Require(t)
	// In the first minutes the fleet brake waits for two rounds of the peers. That is no
	// matter of what the objects hold.
	agents := s.Start(t, fleet.Hosts, fleet.Quick+"memory: {period: 1s, debounce: {clearAfter: 500ms, maxClearAfter: 500ms}}\nfleetBrake: {percent: 0}\n")
	s.WaitKnown(t, fleet.Hosts)
	fleet.WaitSamples(t, agents, 2) // all have reached their peers
	last := agents[fleet.Hosts-1]

	for _, a := range agents {
		fillNode(t, s, a.Name)
		fillLease(t, s, a)
	}
	wantSoonTainted(t, s, last)
	// Now it reads others' Nodes and Leases.
	if err := last.Break("filled", fleet.FromPeers+" drop", fleet.ToPeers+" drop"); err != nil {
		t.Fatal(err)
	}
	cutOff := s.Records.Wait(time.Minute, func(states map[string]fleet.State) bool { return states[last.Name].Tainted })
	if err := last.Mend("filled"); err != nil {
		t.Fatal(err)
	}
	if !cutOff {
		t.Error("the host is cut off and not accused: its agent did not read others' Nodes")
	}
	wantLittleMemory(t, agents, "with full Nodes and Leases")

	fillSlices(t, s)
	for _, a := range []*fleet.Agent{agents[0], last} {
		if err := a.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		a.Run() // it reads them at its start
		a.WaitReady()
		cluster.Eventually(t, "metrics that say that the lists are too large", func() error {
			if a.Memory(t, "VmHWM") >= maxMemory {
				return nil // that is told below
			}
			for _, list := range []string{"agents", "dns-pods"} {
				if a.Series(t, `taintlet_fleet_list_failed{list="`+list+`"}`) != 1 {
					return fmt.Errorf("%s does not say so of the list %s", a.Name, list)
				}
			}
			return nil
		})
	}
	wantSoonTainted(t, s, last)
	wantLittleMemory(t, agents, "with full EndpointSlices too")
}

// wantLittleMemory fails for each agent that took more than it may, since its start.
func wantLittleMemory(t *testing.T, agents []*fleet.Agent, when string) {
	t.Helper()
	worst := 0
	for _, a := range agents {
		select {
		case <-a.Process.Ended():
			t.Fatalf("the agent of %s ended %s: %v", a.Name, when, a.Process.Err())
		default:
		}
		most := a.Memory(t, "VmHWM")
		worst = max(worst, most)
		if most >= maxMemory {
			t.Errorf("the agent of %s took %d KiB of memory %s, at most %d are allowed", a.Name, most, when, maxMemory)
		}
	}
	t.Logf("%s: %.1f MiB at most", when, float64(worst)/1024)
}

// wantSoonTainted makes the agent's host short of memory and well again.
func wantSoonTainted(t *testing.T, s *fleet.Scene, a *fleet.Agent) {
	t.Helper()
	isTainted := func(node *corev1.Node) bool {
		return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
			return strings.HasSuffix(taint.Key, "/memory-pressure") // the well-known key, or its stand-in
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	began := time.Now()
	setMemory(t, a, 2)
	if _, err := s.Cluster.WaitNode(ctx, a.Name, isTainted); err != nil {
		t.Fatalf("no taint: %v", err)
	}
	delay := time.Since(began)
	t.Logf("the taint of %s came after %s", a.Name, delay.Round(10*time.Millisecond))
	if delay >= memoryDelay {
		t.Errorf("the taint of %s came after %s, at most %s are allowed", a.Name, delay, memoryDelay)
	}
	setMemory(t, a, 50)
	if _, err := s.Cluster.WaitNode(ctx, a.Name, cluster.Not(isTainted)); err != nil {
		t.Fatalf("the taint does not go: %v", err)
	}
}

// setMemory sets how many percent of the host's memory are available.
func setMemory(t *testing.T, a *fleet.Agent, percent int) {
	t.Helper()
	const total = 16 << 20 // KiB
	available := total / 100 * percent
	text := fmt.Sprintf("MemTotal: %d kB\nMemFree: %d kB\nMemAvailable: %d kB\nBuffers: 0 kB\nCached: 0 kB\nActive(anon): %d kB\nInactive(anon): 0 kB\nAnonPages: %[4]d kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\nVmallocTotal: 34359738367 kB\n",
		total, available, available, total-available)
	path := filepath.Join(a.Dir, "proc/meminfo")
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil { //nolint:gosec // agents are not root
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// kubelet has the identity of a Node's kubelet.
func kubelet(t *testing.T, c *cluster.Cluster, node string) kubernetes.Interface {
	t.Helper()
	config, err := c.Config("system:node:"+node, "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// fillNode has a kubelet fill its Node with everything that it may write: a kubelet
// may set taints only when it makes its Node, and remove no other's conditions.
func fillNode(t *testing.T, s *fleet.Scene, name string) {
	t.Helper()
	nodes := kubelet(t, s.Cluster, name).CoreV1().Nodes()
	patch := func(subresources []string, value map[string]any) error {
		_, err := nodes.Patch(t.Context(), name, types.StrategicMergePatchType, []byte(marshal(t, value)), metav1.PatchOptions{}, subresources...)
		return err
	}
	labels, prefix := map[string]string{}, strings.Repeat("x.", 115)+"example.com/"
	for i := range 300 {
		labels[fmt.Sprintf("%s%d", prefix, i)] = letters(63)
	}
	annotations := map[string]string{"attack.example.com/a": letters(256<<10 - room)}
	if err := patch(nil, map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}}); err != nil {
		t.Fatal(err)
	}
	var conditions []map[string]string
	for i := range 300 {
		conditions = append(conditions, map[string]string{"type": fmt.Sprintf("Attack%d", i), "status": "True", "reason": letters(100), "message": letters(1000)})
	}
	if err := patch([]string{"status"}, map[string]any{"status": map[string]any{"conditions": conditions}}); err != nil {
		t.Fatal(err)
	}
	// With images up to what etcd takes, and room less.
	put := func(size int) error {
		return patch([]string{"status"}, map[string]any{"status": map[string]any{"images": images(size)}})
	}
	size := 900_000
	for size > room && put(size) != nil {
		size -= room
	}
	if err := put(size - room); err != nil {
		t.Fatal(err)
	}
	if node := s.Cluster.GetNode(t, name); node.Size() < 1_200_000 {
		t.Errorf("the Node %s has %d bytes only, it is not full", name, node.Size())
	}
}

// images is a list of images with that many letters in all.
func images(size int) []corev1.ContainerImage {
	const each = 200
	var all []corev1.ContainerImage
	for range size / each {
		all = append(all, corev1.ContainerImage{Names: []string{letters(each)}})
	}
	return all
}

// fillLease has a kubelet fill its Lease as far as agents read it, and that of the
// first host as far as the API server stores it.
func fillLease(t *testing.T, s *fleet.Scene, a *fleet.Agent) {
	t.Helper()
	size := 60_000
	if a.Number == 1 {
		size = 250_000
	}
	patch := fmt.Sprintf(`{"metadata": {"annotations": {"attack.example.com/a": %q}}}`, letters(size))
	if _, err := kubelet(t, s.Cluster, a.Name).CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(t.Context(), a.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// fillSlices makes 200 EndpointSlices of the agents and as many of the DNS pods, each
// with nearly as many annotations as an object may have, for the length of the test.
func fillSlices(t *testing.T, s *fleet.Scene) {
	t.Helper()
	const each, mark = 200, "attack.example.com/filled"
	annotations := map[string]string{"attack.example.com/a": letters(250_000)}
	for namespace, labels := range map[string]map[string]string{
		bed.Namespace:          {discoveryv1.LabelServiceName: "taintlet", mark: ""},
		metav1.NamespaceSystem: {discoveryv1.LabelServiceName: "kube-dns", "k8s-app": "kube-dns", mark: ""},
	} {
		client := s.Cluster.Client().DiscoveryV1().EndpointSlices(namespace)
		t.Cleanup(func() {
			if err := client.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: mark}); err != nil {
				t.Error(err)
			}
		})
		group, ctx := errgroup.WithContext(t.Context())
		group.SetLimit(4)
		for i := range each {
			group.Go(func() error {
				_, err := client.Create(ctx, &discoveryv1.EndpointSlice{
					ObjectMeta:  metav1.ObjectMeta{Name: fmt.Sprintf("filled-%d", i), Labels: labels, Annotations: annotations},
					AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{},
				}, metav1.CreateOptions{})
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}
