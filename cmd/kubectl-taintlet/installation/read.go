// Package installation reads what the chart has installed, as the API server has it now:
// the DaemonSet, the agents' pods, the configuration, the admission policies, the eviction
// slots and the Events. It asks no agent and changes nothing. Parts that the reader is not
// allowed to see are named.
package installation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

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

	admission = "/apis/admissionregistration.k8s.io/v1/"
)

// Installation is what is there. Of parts in Unread nothing is known.
type Installation struct {
	Namespace  string
	DaemonSets []DaemonSet
	// Elsewhere are the other namespaces that have such a DaemonSet; read only if there
	// is none in Namespace.
	Elsewhere []string
	Pods      []Pod
	// Config is the configuration file of the ConfigMap; nil: there is none.
	Config *string
	// Release is the Helm release that installed the ConfigMap; empty: none did.
	Release string
	// Validating and Mutating are the admission policies, each with its bindings.
	Validating, Mutating                 []Policy
	ValidatingBindings, MutatingBindings []Binding
	Slots                                []Lease
	// Events are taintlet's about Nodes.
	Events []Event
	// PodEvents are those of kubelets about probes of agents that failed.
	PodEvents []Event
	// MayNot are the permissions that the agents' account lacks, of those that it cannot
	// do without.
	MayNot []string
	// Unread are the parts that could not be read.
	Unread []Unread
}

// Unread is a part that could not be read.
type Unread struct {
	Part string `json:"part"`
	Why  string `json:"why"`
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
	for _, unread := range i.Unread {
		if unread.Part == part {
			return false
		}
	}
	return true
}

// Reader reads the installation of a namespace.
type Reader struct {
	api       api
	namespace string
}

// NewReader returns a Reader.
func NewReader(config *rest.Config, namespace string) (*Reader, error) {
	a, err := newAPI(config)
	return &Reader{a, namespace}, err
}

// Read reads all parts. The error is that of the context.
func (r *Reader) Read(ctx context.Context) (*Installation, error) {
	i := &Installation{Namespace: r.namespace}
	for _, part := range []struct {
		name string
		read func(context.Context, *Installation) error
	}{
		{PartDaemonSet, r.readDaemonSets}, {PartPods, r.readPods}, {PartConfig, r.readConfig},
		{PartPolicies, r.readPolicies}, {PartSlots, r.readSlots}, {PartEvents, r.readEvents},
		{PartPermissions, r.readPermissions},
	} {
		err := part.read(ctx, i)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			i.Unread = append(i.Unread, Unread{part.name, why(err)})
		}
	}
	return i, nil
}

// why says in a few words why a part could not be read.
func why(err error) string {
	if apierrors.IsForbidden(err) {
		return "you are not allowed to"
	}
	return err.Error()
}

func labelled() url.Values { return url.Values{"labelSelector": {Label}} }

func (r *Reader) within(group, resource string) string {
	return group + "/namespaces/" + r.namespace + "/" + resource
}

func (r *Reader) readDaemonSets(ctx context.Context, i *Installation) (err error) {
	if i.DaemonSets, err = list[DaemonSet](ctx, r.api, r.within("/apis/apps/v1", "daemonsets"), labelled()); err != nil || len(i.DaemonSets) > 0 {
		return err
	}
	all, err := list[DaemonSet](ctx, r.api, "/apis/apps/v1/daemonsets", labelled())
	if err != nil {
		return nil //nolint:nilerr // those of other namespaces are only a hint
	}
	for _, d := range all {
		i.Elsewhere = append(i.Elsewhere, d.Metadata.Namespace)
	}
	return nil
}

func (r *Reader) readPods(ctx context.Context, i *Installation) error {
	all, err := list[Pod](ctx, r.api, r.within("/api/v1", "pods"), labelled())
	for _, pod := range all {
		if pod.isAgent() {
			pod.Metadata.ManagedFields = nil // the largest part of a pod
			i.Pods = append(i.Pods, pod)
		}
	}
	return err
}

func (r *Reader) readConfig(ctx context.Context, i *Installation) error {
	data, err := r.api.get(ctx, r.within("/api/v1", "configmaps/"+Account), nil)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	var found struct {
		Metadata Meta
		Data     map[string]string
	}
	if err := json.Unmarshal(data, &found); err != nil {
		return err
	}
	i.Release = found.Metadata.Annotations["meta.helm.sh/release-name"]
	if text, has := found.Data[ConfigKey]; has {
		i.Config = &text
	}
	return nil
}

func (r *Reader) readPolicies(ctx context.Context, i *Installation) (err error) {
	if i.Validating, err = list[Policy](ctx, r.api, admission+"validatingadmissionpolicies", labelled()); err != nil {
		return err
	}
	if i.ValidatingBindings, err = list[Binding](ctx, r.api, admission+"validatingadmissionpolicybindings", labelled()); err != nil {
		return err
	}
	if i.Mutating, err = list[Policy](ctx, r.api, admission+"mutatingadmissionpolicies", labelled()); err == nil {
		i.MutatingBindings, err = list[Binding](ctx, r.api, admission+"mutatingadmissionpolicybindings", labelled())
	}
	if apierrors.IsNotFound(err) {
		return nil // before Kubernetes 1.36
	}
	return err
}

func (r *Reader) readSlots(ctx context.Context, i *Installation) error {
	all, err := list[Lease](ctx, r.api, r.within("/apis/coordination.k8s.io/v1", "leases"), url.Values{})
	for _, lease := range all {
		if strings.HasPrefix(lease.Metadata.Name, apiserver.SlotPrefix) {
			i.Slots = append(i.Slots, lease)
		}
	}
	return err
}

func (r *Reader) readEvents(ctx context.Context, i *Installation) (err error) {
	if i.Events, err = r.Events(ctx, ""); err != nil {
		return err
	}
	i.PodEvents, err = list[Event](ctx, r.api, r.within("/api/v1", "events"), url.Values{"fieldSelector": {"involvedObject.kind=Pod,reason=Unhealthy"}})
	return err
}

// Events reads taintlet's Events about a Node; empty: about all Nodes.
func (r *Reader) Events(ctx context.Context, node string) ([]Event, error) {
	selector := "involvedObject.kind=Node,source=" + Account
	if node != "" {
		selector += ",involvedObject.name=" + node
	}
	return list[Event](ctx, r.api, "/api/v1/namespaces/default/events", url.Values{"fieldSelector": {selector}})
}

// review is a question about permissions, and its answer.
type review struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		User       string     `json:"user"`
		Groups     []string   `json:"groups"`
		Attributes attributes `json:"resourceAttributes"`
	} `json:"spec"`
	Status struct {
		Allowed bool `json:"allowed"`
	} `json:"status,omitzero"`
}

type attributes struct {
	Verb        string `json:"verb"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
}

// readPermissions asks whether the agents are allowed to do what no agent can do without.
func (r *Reader) readPermissions(ctx context.Context, i *Installation) error {
	for _, needed := range []attributes{{"watch", "nodes", ""}, {"patch", "nodes", ""}, {"patch", "nodes", "status"}} {
		question := review{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}
		question.Spec.User = "system:serviceaccount:" + r.namespace + ":" + Account
		question.Spec.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + r.namespace, "system:authenticated"}
		question.Spec.Attributes = needed
		if err := r.api.ask(ctx, "/apis/authorization.k8s.io/v1/subjectaccessreviews", question, &question); err != nil {
			return err
		}
		if !question.Status.Allowed {
			i.MayNot = append(i.MayNot, strings.TrimSuffix(fmt.Sprintf("%s %s/%s", needed.Verb, needed.Resource, needed.Subresource), "/"))
		}
	}
	return nil
}
