// Package apiserver reads and writes the objects that taintlet needs: Nodes, Leases, EndpointSlices
// and Events. It patches a Node without losing another client's change, and each answer that it
// reads has a bound.
package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/taints"
)

// ErrOvertaken is returned by Apply when the Node changed in a way for which nothing
// was decided: our record, or which pairs are ours. Nothing was
// written; the caller decides again on the newer Node.
var ErrOvertaken = errors.New("the node changed while it was written; deciding again")

// ErrContended is returned by Apply if other clients wrote the Node during each of its tries.
// Nothing was written, and Apply can be called again.
var ErrContended = errors.New("changed by others during each try")

// writeRetries is how often client-go repeats a request by default (rest.NewRequest).
const writeRetries = 10

// conflictTries bounds how often one Apply starts over because another client wrote the Node at the
// same time. A busy Node sees a few writes per minute.
const conflictTries = 10

// Client reads and writes one Node. It is built on the REST client, with a scheme of only the types
// that it uses: the typed clientset would add 10 MB to the binary and 6 MB to every node's memory.
type Client struct {
	*connections
	codec runtime.ParameterCodec
	name  string
	// dryRun is sent with every write: nil, or that nothing is to be kept.
	dryRun []string
	// retries is how often client-go repeats a write, and a read that a write waits for, when the
	// API server puts it off.
	retries int
}

// NewClient returns a client for the Node of that name.
func NewClient(config *rest.Config, nodeName string) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	config = rest.CopyConfig(config)
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	connections, err := newConnections(config)
	if err != nil {
		return nil, err
	}
	return &Client{connections: connections, codec: runtime.NewParameterCodec(scheme), name: nodeName, retries: writeRetries}, nil
}

// Node returns a client for another Node of the same cluster.
func (c *Client) Node(name string) *Client {
	other := *c
	other.name = name
	return &other
}

// DryRun returns a client whose writes the API server checks and does not store.
func (c *Client) DryRun() *Client {
	other := *c
	other.dryRun = []string{metav1.DryRunAll}
	return &other
}

// Unretried returns a client that sends each write, and each read that a write waits for, once: its
// caller knows better when to try again. client-go repeats a request that the API server puts off
// (429) each second, ten times, and the agents of a large fleet would repeat theirs all together.
func (c *Client) Unretried() *Client {
	other := *c
	other.retries = 0
	return &other
}

// Apply writes the desired state to the Node, with at most two patches. The first is of nodes:
// taints and annotations, guarded by the resourceVersion from which it was computed. The second is
// of nodes/status: conditions. A part that is already there is not written. On a conflict it reads
// the Node and plans again, so that no other client's taint is lost, reordered or restored. It
// returns the newest Node that it has seen, also with an error.
func (c *Client) Apply(ctx context.Context, base *taints.Node, desired taints.Desired) (*taints.Node, error) {
	node := base
	for range conflictTries {
		next, differs := desired.Differs(node)
		if !differs {
			return c.applyConditions(ctx, node, desired)
		}
		patched, err := c.patch(ctx, types.MergePatchType, specPatch(node, next, desired.Annotations))
		if err == nil {
			return c.applyConditions(ctx, patched, desired)
		}
		if !apierrors.IsConflict(err) {
			return node, err
		}
		if node, err = c.GetNode(ctx, c.name); err != nil {
			return base, err
		}
		if !desired.StillFits(base, node) {
			return node, ErrOvertaken
		}
	}
	return node, fmt.Errorf("patch nodes %s: %w", c.name, ErrContended)
}

// applyConditions is the second request of Apply.
func (c *Client) applyConditions(ctx context.Context, node *taints.Node, desired taints.Desired) (*taints.Node, error) {
	conditions := statusPatch(node, desired, time.Now())
	if len(conditions) == 0 {
		return node, nil
	}
	body := map[string]any{"status": map[string]any{"conditions": conditions}}
	patched, err := c.patch(ctx, types.StrategicMergePatchType, body, "status")
	if err != nil {
		return node, err
	}
	return patched, nil
}

// GetNode reads any Node.
func (c *Client) GetNode(ctx context.Context, name string) (*taints.Node, error) {
	node, err := c.node(name, func(api rest.Interface) rest.Result {
		return api.Get().Resource("nodes").Name(name).MaxRetries(c.retries).Do(ctx)
	})
	if err != nil {
		return nil, explain("get", "nodes", name, err)
	}
	return node, nil
}

// node returns the Node that a request is answered with.
func (c *Client) node(name string, do func(api rest.Interface) rest.Result) (*taints.Node, error) {
	node := &corev1.Node{}
	err := c.request(func(api rest.Interface) error { return do(api).Into(node) })
	if err == nil {
		err = isNamed(node, name)
	}
	if err != nil {
		return nil, err
	}
	return NodeOf(node), nil
}

// isNamed is an error unless the object that answers a request has that name: a proxy may answer in
// the API server's place.
func isNamed(object metav1.Object, name string) error {
	if object.GetName() != name {
		return fmt.Errorf("the answer has the name %q", object.GetName())
	}
	return nil
}

// listPage is how many Nodes one request returns.
const listPage = 500

// Each calls do with every Node of the cluster, until it returns an error.
func (c *Client) Each(ctx context.Context, do func(*taints.Node) error) error {
	options := metav1.ListOptions{Limit: listPage}
	for {
		list := &corev1.NodeList{}
		if err := c.page(ctx, metav1.NamespaceNone, "nodes", &options, list); err != nil {
			return explain("list", "nodes", "", err)
		}
		for i := range list.Items {
			if err := do(NodeOf(&list.Items[i])); err != nil {
				return err
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// page reads one page of a list. A page that is larger than its bound is requested again in smaller
// pages. The following pages stay that small.
func (c *Client) page(ctx context.Context, namespace, resource string, options *metav1.ListOptions, into runtime.Object) error {
	for {
		err := c.kept.Get().Namespace(namespace).Resource(resource).VersionedParams(options, c.codec).Do(within(ctx, maxPage)).Into(into)
		if !errors.Is(err, ErrTooLarge) || options.Limit == 1 {
			return err
		}
		options.Limit = max(1, options.Limit/8)
	}
}

func (c *Client) patch(ctx context.Context, kind types.PatchType, body any, subresources ...string) (*taints.Node, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	defer c.patches.begin()()
	node, err := c.node(c.name, func(api rest.Interface) rest.Result {
		return api.Patch(kind).Resource("nodes").Name(c.name).SubResource(subresources...).
			VersionedParams(&metav1.PatchOptions{FieldManager: fieldManager, DryRun: c.dryRun}, c.codec).
			MaxRetries(c.retries).Body(data).Do(ctx)
	})
	if err != nil {
		resource := "nodes"
		if len(subresources) > 0 {
			resource += "/" + subresources[0]
		}
		return nil, explain("patch", resource, c.name, err)
	}
	return node, nil
}

// specPatch is a JSON merge patch. spec.taints is an atomic list, and the patch
// replaces all of it. So it carries the resourceVersion that it was computed
// on, and the API server answers 409 when the Node has changed since.
func specPatch(node *taints.Node, next []taints.Taint, annotations map[string]string) any {
	values := make(map[string]any, len(annotations))
	for key, value := range annotations {
		values[key] = value
		if value == "" {
			values[key] = nil
		}
	}
	return map[string]any{
		"metadata": map[string]any{"resourceVersion": node.ResourceVersion, "annotations": values},
		"spec":     map[string]any{"taints": next},
	}
}

// statusPatch returns the conditions of a strategic merge patch: they merge by
// type, so that it touches no type but ours and needs no resourceVersion.
// lastTransitionTime moves only with the status.
func statusPatch(node *taints.Node, desired taints.Desired, now time.Time) []any {
	patch := make([]any, 0, len(desired.Conditions))
	for _, condition := range node.Transitions(desired.Conditions) {
		since := condition.LastTransitionTime
		if since.IsZero() {
			since = now
		}
		patch = append(patch, corev1.NodeCondition{
			Type: corev1.NodeConditionType(condition.Type), Status: corev1.ConditionStatus(condition.Status),
			Reason: condition.Reason, Message: taints.Message(condition.Message),
			LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(since),
		})
	}
	for _, kind := range desired.Gone {
		if node.Condition(kind) != nil {
			patch = append(patch, map[string]any{"type": kind, "$patch": "delete"})
		}
	}
	return patch
}

// Ping reads the admission policy. Any answer with a status, also an error, shows that the API
// server answers.
func (c *Client) Ping(ctx context.Context) error {
	_, _, err := c.KeepPolicy(ctx, false)
	return err
}

// KeepPolicy reports whether the binding of deploy/keep.yaml exists in the cluster. With the
// version, which changes with the binding and the policy, the policy must exist as well.
func (c *Client) KeepPolicy(ctx context.Context, withVersion bool) (isPresent bool, version string, err error) {
	binding, err := c.keepObject(ctx, "mutatingadmissionpolicybindings")
	if !withVersion || binding == "" {
		return binding != "", "", err
	}
	policy, err := c.keepObject(ctx, "mutatingadmissionpolicies")
	if policy == "" {
		return false, "", err
	}
	return true, binding + " " + policy, nil
}

// keepObject returns the version of an object of deploy/keep.yaml; empty: there is none.
// Kubernetes 1.34 and 1.35 serve v1beta1 at most. Where an API server does not serve a
// kind, its 404 names no object: 1.34.4 answers with a Status, others with a text.
func (c *Client) keepObject(ctx context.Context, resource string) (version string, err error) {
	for _, apiVersion := range []string{"v1", "v1beta1"} {
		object := &metav1.PartialObjectMetadata{}
		err := c.call(ctx, "get", resource+".admissionregistration.k8s.io", taints.KeepPolicyName, object, func(get *rest.Request) {
			get.AbsPath("/apis/admissionregistration.k8s.io", apiVersion, resource, taints.KeepPolicyName).MaxRetries(c.retries)
		})
		if !apierrors.IsNotFound(err) {
			return object.ResourceVersion, err
		}
		var answer apierrors.APIStatus
		if errors.As(err, &answer) && answer.Status().Details != nil && answer.Status().Details.Name != "" {
			break
		}
	}
	return "", nil
}

// call decodes the JSON answer of a request, which prepare can make another than a get. verb, resource
// and name describe the request in errors.
func (c *Client) call(ctx context.Context, verb, resource, name string, into any, prepare func(get *rest.Request)) error {
	var body []byte
	err := c.request(func(api rest.Interface) (err error) {
		get := api.Get().SetHeader("Accept", runtime.ContentTypeJSON)
		prepare(get)
		result := get.Do(ctx)
		if err := result.Error(); err != nil { // as the API server puts it, which Raw does not
			return err
		}
		body, err = result.Raw()
		return err
	})
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if object, isOne := into.(metav1.Object); isOne && err == nil {
		err = isNamed(object, path.Base(name))
	}
	if err != nil {
		return explain(verb, resource, name, err)
	}
	return nil
}

// explain says what was tried, and for a refusal which permission is missing.
func explain(verb, resource, name string, err error) error {
	tried := strings.TrimSpace(verb + " " + resource + " " + name)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s: the permission to %s %s is missing (RBAC or an admission policy): %w", tried, verb, resource, err)
	}
	return fmt.Errorf("%s: %w", tried, err)
}
