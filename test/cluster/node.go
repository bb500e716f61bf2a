package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// leaseEvery is how often a kubelet renews its Lease and checks its Node.
	leaseEvery = 10 * time.Second
	// heartbeatEvery is how often a kubelet writes a status that has not changed.
	heartbeatEvery = 5 * time.Minute
	leaseSeconds   = 40
)

// Node is a registered Node that is kept fresh in place of a kubelet, with a
// kubelet's identity, until Stop or the cluster's Stop.
type Node struct {
	Name   string
	client kubernetes.Interface // as system:node:Name
	uid    types.UID
	stop   context.CancelFunc
	ended  chan struct{}

	mu         sync.Mutex
	conditions []corev1.NodeCondition // as this kubelet sees them; without times
	writes     int                    // of the status
	failed     error                  // of the last report
}

// RegisterNode creates a Node as a kubelet does: healthy, with room for pods,
// with a Lease. When the cluster has a controller manager the Node is
// schedulable on return. The context bounds the registration alone.
func (c *Cluster) RegisterNode(ctx context.Context, name string) (*Node, error) {
	config, err := c.Config("system:node:"+name, "system:nodes")
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("register node %s: %w", name, err)
	}
	node := &Node{Name: name, client: client, ended: make(chan struct{}), conditions: healthy()}
	created, err := client.CoreV1().Nodes().Create(ctx, node.object(c.version), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("register node %s: %w", name, err)
	}
	node.uid = created.UID
	if err := node.report(ctx); err != nil {
		return nil, fmt.Errorf("register node %s: %w", name, err)
	}
	node.keepFresh(c)
	if !c.hasControllerManager {
		return node, nil
	}
	// Admission gives every new Node a not-ready taint, which the controller
	// manager removes from a Node that is ready.
	_, err = c.WaitNode(ctx, name, Not(HasTaint(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule)))
	return node, err
}

// AdoptNode stands in for the kubelet of a Node that another program has created, as
// RegisterNode does for its own.
func (c *Cluster) AdoptNode(ctx context.Context, name string) (*Node, error) {
	config, err := c.Config("system:node:"+name, "system:nodes")
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("adopt node %s: %w", name, err)
	}
	found, err := c.admin.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("adopt node %s: %w", name, err)
	}
	node := &Node{Name: name, client: client, uid: found.UID, ended: make(chan struct{}), conditions: healthy()}
	if err := node.report(ctx); err != nil {
		return nil, fmt.Errorf("adopt node %s: %w", name, err)
	}
	node.keepFresh(c)
	return node, nil
}

func healthy() []corev1.NodeCondition {
	var conditions []corev1.NodeCondition
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		conditions = append(conditions, condition(kind, corev1.ConditionFalse))
	}
	return append(conditions, condition(corev1.NodeReady, corev1.ConditionTrue))
}

func condition(kind corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
	return corev1.NodeCondition{
		Type:   kind,
		Status: status,
		Reason: "TestKubelet",
	}
}

func (n *Node) object(version string) *corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("4"),
		corev1.ResourceMemory:           resource.MustParse("8Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name,
			Labels: map[string]string{
				corev1.LabelHostname:   n.Name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
			},
		},
		Status: corev1.NodeStatus{
			Capacity:    resources,
			Allocatable: resources,
			Conditions:  stamped(n.conditions, nil, metav1.Now()),
			Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: n.Name}},
			NodeInfo:    corev1.NodeSystemInfo{KubeletVersion: version, OperatingSystem: "linux", Architecture: "amd64"},
		},
	}
}

// stamped gives the wanted conditions their times, given the present ones.
func stamped(wanted, present []corev1.NodeCondition, now metav1.Time) []corev1.NodeCondition {
	stamped := slices.Clone(wanted)
	for i := range stamped {
		stamped[i].LastHeartbeatTime, stamped[i].LastTransitionTime = now, now
		if old := find(present, stamped[i].Type); old != nil && old.Status == stamped[i].Status {
			stamped[i].LastTransitionTime = old.LastTransitionTime
		}
	}
	return stamped
}

func find(conditions []corev1.NodeCondition, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

// SetCondition makes the kubelet see a condition, such as MemoryPressure, in
// that status, and report it at once.
func (n *Node) SetCondition(ctx context.Context, kind corev1.NodeConditionType, status corev1.ConditionStatus) error {
	n.mu.Lock()
	n.conditions = slices.DeleteFunc(n.conditions, func(old corev1.NodeCondition) bool { return old.Type == kind })
	n.conditions = append(n.conditions, condition(kind, status))
	n.mu.Unlock()
	return n.report(ctx)
}

// Heartbeat makes the kubelet write its status now, although nothing may have
// changed. Every write is a new version of the Node.
func (n *Node) Heartbeat(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.writeStatus(ctx, nil)
}

// Stop ends the kubelet as a crash would: the Node stays, nobody renews its
// Lease. The error is that of the last report, if it failed.
func (n *Node) Stop() error {
	n.stop()
	<-n.ended
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failed
}

// keepFresh reports until the node or its cluster is stopped.
func (n *Node) keepFresh(c *Cluster) {
	ctx, cancel := context.WithCancel(c.nodesCtx)
	n.stop = cancel
	c.nodes.Go(func() {
		defer close(n.ended)
		defer cancel()
		every := time.NewTicker(leaseEvery)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			err := n.report(ctx)
			if ctx.Err() != nil {
				return
			}
			n.mu.Lock()
			n.failed = err
			n.mu.Unlock()
		}
	})
}

// report renews the Lease, and writes the status when it differs from what the
// kubelet sees or is old.
func (n *Node) report(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.renewLease(ctx); err != nil {
		return fmt.Errorf("renew the lease of node %s: %w", n.Name, err)
	}
	node, err := n.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read node %s: %w", n.Name, err)
	}
	for _, wanted := range n.conditions {
		present := find(node.Status.Conditions, wanted.Type)
		if present == nil || present.Status != wanted.Status || time.Since(present.LastHeartbeatTime.Time) > heartbeatEvery {
			return n.writeStatus(ctx, node.Status.Conditions)
		}
	}
	return nil
}

// writeStatus patches the conditions of the kubelet and no others.
func (n *Node) writeStatus(ctx context.Context, present []corev1.NodeCondition) error {
	if present == nil {
		node, err := n.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read node %s: %w", n.Name, err)
		}
		present = node.Status.Conditions
	}
	conditions := stamped(n.conditions, present, metav1.Now())
	n.writes++
	for i := range conditions {
		// Times have whole seconds: without a number, two writes within one
		// would be the same, and no watcher would see the second.
		conditions[i].Message = fmt.Sprintf("status %d of the test that stands in for the kubelet", n.writes)
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		return fmt.Errorf("write the status of node %s: %w", n.Name, err)
	}
	if _, err := n.client.CoreV1().Nodes().PatchStatus(ctx, n.Name, patch); err != nil {
		return fmt.Errorf("write the status of node %s: %w", n.Name, err)
	}
	return nil
}

// renewLease creates the Lease when it is not there. Just after start its
// namespace may not be there either: the API server makes it when it comes to it.
func (n *Node) renewLease(ctx context.Context) error {
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NewMicroTime(time.Now())
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": now}})
	if err != nil {
		return err
	}
	_, err = leases.Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	for apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, n.lease(now), metav1.CreateOptions{})
		if !apierrors.IsNotFound(err) {
			break
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return err
}

func (n *Node) lease(now metav1.MicroTime) *coordinationv1.Lease {
	seconds := int32(leaseSeconds)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name:            n.Name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.uid}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &n.Name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
}
