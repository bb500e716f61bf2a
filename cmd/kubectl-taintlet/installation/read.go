// Package installation reads the objects that the chart has installed, as the API server has them
// now: the DaemonSet, the agents' pods, the configuration, the admission policies, the eviction
// slots and the Events. It asks no agent and changes nothing. Parts that the reader is not allowed
// to see are named.
package installation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

const (
	// Account is the agents' service account, and the name of most that the chart
	// installs.
	Account = "taintlet"
	// Label is on everything that the chart installs.
	Label = "app.kubernetes.io/name=taintlet"
	// ConfigKey is the key of the configuration file in the ConfigMap.
	ConfigKey = "config.yaml"
)

// Installation has the objects that exist. Of parts in Unread nothing is known.
type Installation struct {
	Namespace  string
	DaemonSets []*appsv1.DaemonSet
	// Pods are the agents' pods, and Others those of other namespaces, as far as the reader is
	// allowed to see these.
	Pods, Others []*corev1.Pod
	// Said is what agents that are not ready answered when they were asked why, by the names
	// of their pods.
	Said map[string]string
	// Config is the configuration file of the ConfigMap; nil: there is none.
	Config *string
	// Release is the Helm release that installed the ConfigMap; empty: none did.
	Release string
	// Served are the versions in which the API server serves the resources of
	// admissionregistration.k8s.io; nil: it does not say so.
	Served map[string]schema.GroupVersion
	// Policies are the admission policies, and Bindings their bindings, by the names of the
	// policies. Those that mutate have only the fields that they share with those that validate.
	Policies map[string]*admissionv1.ValidatingAdmissionPolicy
	Bindings map[string]*admissionv1.ValidatingAdmissionPolicyBinding
	Slots    []*coordinationv1.Lease
	// Events are those about Nodes whose agents refused a configuration, about pods whose probes
	// failed, and about the DaemonSet, whose controller was not allowed to create pods.
	Events []*corev1.Event
	// MayNot are the permissions that the agents' account lacks, of those that the manifests
	// grant it.
	MayNot []string
	Unread []Unread
}

// Unread is a part that could not be read.
type Unread struct {
	Part string `json:"part"`
	Why  string `json:"why"`
}

// maxWhy is the longest reason, in bytes. Parts of it come from the API server.
const maxWhy = 512

// NewUnread says in a few words why a part could not be read.
func NewUnread(part string, err error) Unread {
	if apierrors.IsForbidden(err) {
		return Unread{part, "you are not allowed to"}
	}
	return Unread{part, terminal.Clean(err.Error(), maxWhy)}
}

// The parts.
const (
	PartDaemonSet   = "DaemonSets"
	PartPods        = "pods"
	PartConfig      = "ConfigMap"
	PartPolicies    = "admission policies"
	PartSlots       = "Leases"
	PartEvents      = "Events"
	PartPermissions = "permissions of the agents"
)

// Knows reports whether a part was read.
func (i *Installation) Knows(part string) bool {
	return !slices.ContainsFunc(i.Unread, func(u Unread) bool { return u.Part == part })
}

// HasKeep reports whether deploy/keep.yaml is installed, or a part of it.
func (i *Installation) HasKeep() bool {
	return i.Policies[taints.KeepPolicyName] != nil || i.Bindings[taints.KeepPolicyName] != nil
}

// Read reads all parts of the installation in a namespace. The error is that of the context.
func (c *Client) Read(ctx context.Context, namespace string) (*Installation, error) {
	i := &Installation{Namespace: namespace}
	for _, part := range []struct {
		name string
		read func(context.Context, *Installation) error
	}{
		{PartDaemonSet, c.readDaemonSets}, {PartPods, c.readPods}, {PartConfig, c.ReadConfig},
		{PartPolicies, c.readPolicies}, {PartSlots, c.readSlots}, {PartEvents, c.readEvents},
		{PartPermissions, c.readPermissions},
	} {
		err := part.read(ctx, i)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			i.Unread = append(i.Unread, NewUnread(part.name, err))
		}
	}
	c.readSaid(ctx, i)
	return i, ctx.Err()
}

func (c *Client) readDaemonSets(ctx context.Context, i *Installation) (err error) {
	i.DaemonSets, err = List[*appsv1.DaemonSet](ctx, c.AppsV1().DaemonSets(i.Namespace).List, Labelled())
	return err
}

func (c *Client) readPods(ctx context.Context, i *Installation) error {
	all, err := c.Pods(ctx, metav1.NamespaceAll)
	if apierrors.IsForbidden(err) {
		all, err = c.Pods(ctx, i.Namespace)
	}
	for _, pod := range all {
		isOfCleanup := slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Job" })
		switch {
		case isOfCleanup:
		case pod.Namespace == i.Namespace:
			i.Pods = append(i.Pods, pod)
		default:
			i.Others = append(i.Others, pod)
		}
	}
	return err
}

// ReadConfig reads the agents' configuration file, and the Helm release that installed it.
func (c *Client) ReadConfig(ctx context.Context, i *Installation) error {
	found, err := c.CoreV1().ConfigMaps(i.Namespace).Get(ctx, Account, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("get configmap %s/%s: %w", i.Namespace, Account, err)
	}
	if file, has := found.Data[ConfigKey]; has {
		i.Config = &file
	}
	i.Release = found.Annotations["meta.helm.sh/release-name"]
	return nil
}

func (c *Client) readPolicies(ctx context.Context, i *Installation) (err error) {
	i.Policies, i.Bindings = map[string]*admissionv1.ValidatingAdmissionPolicy{}, map[string]*admissionv1.ValidatingAdmissionPolicyBinding{}
	i.Served, err = c.policyVersions(ctx)
	for _, kind := range []string{"validating", "mutating"} {
		err = errors.Join(err,
			eachPolicy(ctx, c, i.Served, kind+"admissionpolicies", func(p *admissionv1.ValidatingAdmissionPolicy) { i.Policies[p.Name] = p }),
			eachPolicy(ctx, c, i.Served, kind+"admissionpolicybindings", func(b *admissionv1.ValidatingAdmissionPolicyBinding) { i.Bindings[b.Spec.PolicyName] = b }))
	}
	return err
}

// eachPolicy calls do with each object of a resource, if that is served, as an object of the
// validating kind.
func eachPolicy[T any](ctx context.Context, c *Client, served map[string]schema.GroupVersion, resource string, do func(*T)) (err error) {
	if served[resource].Empty() {
		return nil
	}
	failed := Each(ctx, c.Dynamic.Resource(served[resource].WithResource(resource)).List, Labelled(), func(object *unstructured.Unstructured) {
		found := new(T)
		err = errors.Join(err, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, found))
		do(found)
	})
	return errors.Join(err, failed)
}

func (c *Client) readSlots(ctx context.Context, i *Installation) (err error) {
	all, err := List[*coordinationv1.Lease](ctx, c.CoordinationV1().Leases(i.Namespace).List, metav1.ListOptions{})
	i.Slots = slices.DeleteFunc(all, func(lease *coordinationv1.Lease) bool { return !strings.HasPrefix(lease.Name, apiserver.SlotPrefix) })
	return err
}

func (c *Client) readEvents(ctx context.Context, i *Installation) (err error) {
	for _, events := range []struct{ namespace, which string }{
		{metav1.NamespaceDefault, "involvedObject.kind=Node,reason=ConfigurationRefused,source=" + Account},
		{i.Namespace, "involvedObject.kind=Pod,reason=Unhealthy"},
		{i.Namespace, "involvedObject.kind=DaemonSet,reason=FailedCreate"},
	} {
		found, failed := List[*corev1.Event](ctx, c.CoreV1().Events(events.namespace).List, metav1.ListOptions{FieldSelector: events.which})
		i.Events, err = append(i.Events, found...), errors.Join(err, failed)
	}
	return err
}

// At is when an Event most recently happened.
func At(e *corev1.Event) time.Time {
	return cmp.Or(e.LastTimestamp.Time, e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time)
}

// Configuration is that of the ConfigMap; nil: there is none, or it is invalid for the reason
// of the error. A release of the agents that differs from this program may refuse other fields.
func (i *Installation) Configuration() (*config.Config, error) {
	if i.Config == nil {
		return nil, nil
	}
	cfg, err := config.HostSchema().Decode([]byte(*i.Config))
	if err != nil {
		return nil, err
	}
	return cfg, nil
}

// ChangedByHand returns the program that wrote the specification of an object after its
// installation by another one, and when; empty: there is none. Kubernetes calls this program a
// field manager.
func ChangedByHand(managed []metav1.ManagedFieldsEntry) (manager string, at time.Time) {
	installer := ""
	for _, entry := range managed {
		if strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:app.kubernetes.io/name"`) {
			installer = entry.Manager
		}
	}
	if installer == "" {
		return "", time.Time{} // managedFields were removed: nobody can tell
	}
	for _, entry := range managed {
		writesSpec := strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:spec"`)
		if writesSpec && entry.Subresource == "" && entry.Manager != installer && entry.Time != nil && entry.Time.After(at) {
			manager, at = entry.Manager, entry.Time.Time
		}
	}
	return manager, at
}

// Pods reads the pods of a namespace that have the Label; no namespace: of all.
func (c *Client) Pods(ctx context.Context, namespace string) (all []*corev1.Pod, err error) {
	err = Each(ctx, c.CoreV1().Pods(namespace).List, Labelled(), func(pod *corev1.Pod) {
		pod.ManagedFields = nil // the largest part of a pod
		all = append(all, pod)
	})
	return all, err
}

// Agent is the agent's container; an empty one: there is none.
func Agent(spec *corev1.PodSpec) *corev1.Container {
	for i := range spec.Containers {
		if spec.Containers[i].Name == Account {
			return &spec.Containers[i]
		}
	}
	return &corev1.Container{}
}

// AgentStatus is the status of the agent's container; nil: the kubelet reported none yet.
func AgentStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == Account {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// Condition returns the pod's condition of a type; an empty one: it has none.
func Condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

// ReadySince reports whether a pod is ready, and since when it has been so or not; zero:
// that is not known.
func ReadySince(pod *corev1.Pod) (isReady bool, since time.Time) {
	ready := Condition(pod, corev1.PodReady)
	return ready.Status == corev1.ConditionTrue, ready.LastTransitionTime.UTC()
}

// PodsByNode returns the pods that are not being deleted and have not ended, by the name of
// their Node.
func PodsByNode(pods []*corev1.Pod) map[string][]*corev1.Pod {
	byNode := map[string][]*corev1.Pod{}
	for _, p := range pods {
		hasEnded := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if p.DeletionTimestamp == nil && !hasEnded && p.Spec.NodeName != "" {
			byNode[p.Spec.NodeName] = append(byNode[p.Spec.NodeName], p)
		}
	}
	return byNode
}

// Images returns the images of agents, and a text that counts them, such as 2 of taintlet:0.1.0.
func Images(pods []*corev1.Pod) (images []string, text string) {
	counts := map[string]int{}
	for _, pod := range pods {
		counts[Agent(&pod.Spec).Image]++
	}
	delete(counts, "")
	images = slices.Sorted(maps.Keys(counts))
	counted := make([]string, len(images))
	for i, image := range images {
		counted[i] = fmt.Sprintf("%d of %s", counts[image], image)
	}
	return images, strings.Join(counted, ", ")
}

// VersionOf is the tag of an image; empty: it has none.
func VersionOf(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	name, _, _ = strings.Cut(name, "@")
	_, tag, _ := strings.Cut(name, ":")
	return strings.TrimPrefix(tag, "v")
}

// ReleaseOf returns the release that a version or the tag of an image names; empty: none.
func ReleaseOf(name string) string {
	found, err := version.ParseSemantic(cmp.Or(VersionOf(name), name))
	if err != nil || found.PreRelease() != "" || found.BuildMetadata() != "" {
		return ""
	}
	return found.String()
}

const (
	// DefaultPort is the port of the host where the agents of the chart and of
	// deploy/taintlet.yaml listen. docs/decisions.md says why it is this one.
	DefaultPort = 4808
	// askedAgents is how many agents are asked why they are not ready, and askedFor how
	// long each may take.
	askedAgents = 3
	askedFor    = 2 * time.Second
)

// readSaid asks the agents that run and are not ready why, through the API server. Where an
// agent cannot be asked, nothing is known.
func (c *Client) readSaid(ctx context.Context, i *Installation) {
	i.Said = map[string]string{}
	for _, pod := range i.Pods {
		isReady, _ := ReadySince(pod)
		if !isReady && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && len(i.Said) < askedAgents {
			i.Said[pod.Name] = c.ask(ctx, pod)
		}
	}
}

func (c *Client) ask(ctx context.Context, pod *corev1.Pod) string {
	ctx, cancel := context.WithTimeout(ctx, askedFor)
	defer cancel()
	port := int32(DefaultPort)
	if ports := Agent(&pod.Spec).Ports; len(ports) > 0 {
		port = ports[0].ContainerPort
	}
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy/readyz", pod.Namespace, pod.Name, port)
	err := c.CoreV1().RESTClient().Get().AbsPath(path).MaxRetries(0).Do(ctx).Error()
	// The agent's own text; any other cause is of the API server, which did not reach it.
	if cause, isAnswer := apierrors.StatusCause(err, metav1.CauseTypeUnexpectedServerResponse); isAnswer {
		return strings.TrimSpace(cause.Message)
	}
	return ""
}
