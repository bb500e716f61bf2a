package scale

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// What a kubelet does by default: it renews its Lease every 10 s, for 40 s, and
// writes a status that has not changed every 5 min.
const (
	renewEvery   = 10 * time.Second
	leaseSeconds = 40
	statusEvery  = 5 * time.Minute
)

// kubelets is the child process that keeps the Nodes alive: each with a kubelet's
// identity and a connection of its own, as kubelets have.
type kubelets struct {
	setup   *setup
	mu      sync.Mutex
	renewed []asked
	// late counts renewals that were not done when the next one was due.
	late []time.Time
}

// kubelet is one of them.
type kubelet struct {
	all    *kubelets
	name   string
	leases v1.LeaseInterface
	nodes  corev1client.NodeInterface
	lease  *coordinationv1.Lease
}

func newKubelets(s *setup) *kubelets { return &kubelets{setup: s} }

func (k *kubelets) do(c command) (any, error) {
	switch c.Op {
	case "start":
		return nil, k.start()
	case "report":
		return k.report(c.From, c.To), nil
	}
	return nil, fmt.Errorf("unknown command %q", c.Op)
}

// start registers the Nodes, several at a time, and keeps them alive until the process
// ends.
func (k *kubelets) start() error {
	const atOnce = 8
	admin, err := corev1client.NewForConfig(k.setup.as(k.setup.Admin))
	if err != nil {
		return err
	}
	queue, errs := make(chan int), make(chan error, len(k.setup.Nodes))
	for range atOnce {
		go func() {
			for i := range queue {
				errs <- k.register(context.Background(), admin, i)
			}
		}()
	}
	for i := range k.setup.Nodes {
		queue <- i
	}
	close(queue)
	var first error
	for range k.setup.Nodes {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}

// register makes a Node and its Lease, and starts what keeps it alive.
func (k *kubelets) register(ctx context.Context, admin *corev1client.CoreV1Client, number int) error {
	name := k.setup.Nodes[number]
	config := k.setup.by(k.setup.Kubelets[name])
	config.Dial = dialerOf(addressOf(number + 1)).DialContext
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := rest.HTTPClientFor(config) // one connection
	if err != nil {
		return err
	}
	core, err := corev1client.NewForConfigAndClient(config, client)
	if err != nil {
		return err
	}
	coordination, err := v1.NewForConfigAndClient(config, client)
	if err != nil {
		return err
	}
	one := &kubelet{all: k, name: name, leases: coordination.Leases(corev1.NamespaceNodeLease), nodes: core.Nodes()}
	node, err := one.nodes.Create(ctx, nodeObject(name, number), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("register node %s: %w", name, err)
	}
	if err := one.createLease(ctx, node); err != nil {
		return fmt.Errorf("lease of node %s: %w", name, err)
	}
	// Admission gives a new Node a taint, which the controller would remove, 20 a
	// second for all.
	if _, err := admin.Nodes().Patch(ctx, name, "application/merge-patch+json", []byte(`{"spec":{"taints":[]}}`), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("untaint node %s: %w", name, err)
	}
	go one.run(ctx)
	return nil
}

func (k *kubelet) createLease(ctx context.Context, node *corev1.Node) (err error) {
	seconds, now := int32(leaseSeconds), metav1.NewMicroTime(time.Now())
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: k.name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: k.name, UID: node.UID}}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &k.name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	for {
		k.lease, err = k.leases.Create(ctx, lease, metav1.CreateOptions{})
		if !apierrors.IsNotFound(err) { // just after its start, the cluster may lack the namespace
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// run keeps the Node alive until the context ends.
func (k *kubelet) run(ctx context.Context) {
	phase := func(most time.Duration) time.Duration { return time.Duration(rand.Int64N(int64(most))) } //nolint:gosec // not a secret
	renew, status := time.NewTimer(phase(renewEvery)), time.NewTimer(phase(statusEvery))
	defer renew.Stop()
	defer status.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case due := <-renew.C:
			k.renew(ctx, due)
			renew.Reset(max(0, time.Until(due.Add(renewEvery))))
		case <-status.C:
			k.writeStatus(ctx)
			status.Reset(statusEvery)
		}
	}
}

// renew renews the Lease as a kubelet does: it writes the one that it knows, and
// tries at once again, five times at most.
func (k *kubelet) renew(ctx context.Context, due time.Time) {
	const tries = 5
	done := false
	for try := 0; try < tries && !done && ctx.Err() == nil; try++ {
		a := asked{at: time.Now()}
		next := k.lease.DeepCopy()
		now := metav1.NewMicroTime(a.at)
		next.Spec.RenewTime = &now
		limited, cancel := context.WithTimeout(ctx, renewEvery)
		lease, err := k.leases.Update(limited, next, metav1.UpdateOptions{})
		cancel()
		a.took, a.code = time.Since(a.at), codeOf(err)
		if err == nil {
			k.lease, done = lease, true
		} else if apierrors.IsConflict(err) {
			if lease, err := k.leases.Get(ctx, k.name, metav1.GetOptions{}); err == nil {
				k.lease = lease
			}
		}
		k.all.note(a)
	}
	if ctx.Err() == nil && (!done || time.Since(due) > renewEvery) {
		k.all.mu.Lock()
		k.all.late = append(k.all.late, due)
		k.all.mu.Unlock()
	}
}

func codeOf(err error) int {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &status):
		return int(status.Status().Code)
	}
	return 0
}

func (k *kubelets) note(a asked) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renewed = append(k.renewed, a)
}

// leaseReport is how renewals fared. Late is how many were not done when the next one
// was due.
type leaseReport struct {
	latency
	Late int
}

// report says how renewals fared that began in this time.
func (k *kubelets) report(from, to time.Time) leaseReport {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := leaseReport{latency: latencyOf(k.renewed, from, to)}
	for _, due := range k.late {
		if due.After(from) && due.Before(to) {
			r.Late++
		}
	}
	return r
}

// writeStatus refreshes the kubelet's conditions.
func (k *kubelet) writeStatus(ctx context.Context) {
	var conditions []string
	now := time.Now().UTC().Format(time.RFC3339)
	for _, c := range kubeletConditions() {
		conditions = append(conditions, fmt.Sprintf(`{"type":%q,"status":%q,"lastHeartbeatTime":%q}`, c.Type, c.Status, now))
	}
	patch := `{"status":{"conditions":[` + strings.Join(conditions, ",") + `]}}`
	_, _ = k.nodes.PatchStatus(ctx, k.name, []byte(patch)) // the next one comes in five minutes
}

func kubeletConditions() []corev1.NodeCondition {
	now := metav1.Now()
	var all []corev1.NodeCondition
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		c := corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientResources", Message: "kubelet has sufficient resources available",
			LastHeartbeatTime: now, LastTransitionTime: now,
		}
		if kind == corev1.NodeReady {
			c.Status, c.Reason, c.Message = corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"
		}
		all = append(all, c)
	}
	return all
}

// nodeObject is a Node of the size that they have: most of it is the list of images.
func nodeObject(name string, number int) *corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			corev1.LabelTopologyZone: zoneOf(number), corev1.LabelTopologyRegion: "region-1", corev1.LabelInstanceTypeStable: "large-16",
		}},
		Status: corev1.NodeStatus{
			Capacity: resources, Allocatable: resources, Conditions: kubeletConditions(),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: addressOf(number + 1).String()}, {Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: strings.Repeat("0123456789abcdef", 2), BootID: "boot-of-" + name, KernelVersion: "6.12.0-1-cloud-amd64",
				OSImage: "Debian GNU/Linux 13 (trixie)", ContainerRuntimeVersion: "containerd://2.1.4", KubeletVersion: "v1.37.2",
				OperatingSystem: "linux", Architecture: "amd64",
			},
		},
	}
	const images = 30
	for i := range images {
		repository := fmt.Sprintf("registry.example.com/team-%d/service-%d", i%7, i)
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names:     []string{repository + "@sha256:" + strings.Repeat(fmt.Sprintf("%08x", i), 8), repository + ":v1.2.3"},
			SizeBytes: int64(1+i) << 20,
		})
	}
	return node
}

func zoneOf(number int) string { return fmt.Sprint("zone-", number%3) }
