package installation

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Meta is the metadata of an object that are in use.
type Meta struct {
	Name, Namespace   string
	Labels            map[string]string
	Annotations       map[string]string
	DeletionTimestamp *time.Time
	CreationTimestamp time.Time
	OwnerReferences   []struct{ Kind, Name string }
	ManagedFields     []ManagedFields
}

// ManagedFields says which fields a program has written last, and when.
type ManagedFields struct {
	Manager, Subresource string
	Time                 time.Time
	FieldsV1             map[string]json.RawMessage
}

// DaemonSet is the agents'.
type DaemonSet struct {
	Metadata Meta
	Spec     struct {
		Template struct{ Spec PodSpec }
	}
	Status struct {
		DesiredNumberScheduled, CurrentNumberScheduled, NumberReady, UpdatedNumberScheduled int
	}
}

// PodSpec is what is used of a pod's specification.
type PodSpec struct {
	NodeName   string
	Containers []struct{ Name, Image string }
}

// Image is that of the agent's container; empty: there is none.
func (s PodSpec) Image() string {
	for _, c := range s.Containers {
		if c.Name == Account {
			return c.Image
		}
	}
	return ""
}

// Pod is one of the agents'.
type Pod struct {
	Metadata Meta
	Spec     PodSpec
	Status   struct {
		Phase             string
		Reason, Message   string
		Conditions        []PodCondition
		ContainerStatuses []ContainerStatus
	}
}

// PodCondition is a condition of a pod.
type PodCondition struct {
	Type, Status, Reason, Message string
	LastTransitionTime            time.Time
}

// ContainerStatus is how a container is, and how the one before it ended.
type ContainerStatus struct {
	Name         string
	RestartCount int
	State        ContainerState
	LastState    ContainerState
}

// ContainerState has one field that is set.
type ContainerState struct {
	Waiting    *struct{ Reason, Message string }
	Terminated *Ended
}

// Ended is how a container ended.
type Ended struct {
	Reason           string
	ExitCode, Signal int
	FinishedAt       time.Time
}

// condition returns the pod's condition of a type; nil: it has none.
func (p *Pod) condition(kind string) *PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// ReadySince reports whether the pod is ready, and since when it has been so or not;
// zero: that is not known.
func (p *Pod) ReadySince() (isReady bool, since time.Time) {
	ready := p.condition("Ready")
	if ready == nil {
		return false, time.Time{}
	}
	return ready.Status == "True", ready.LastTransitionTime
}

// WhyNotScheduled is what the scheduler says; empty: the pod has a Node.
func (p *Pod) WhyNotScheduled() string {
	if c := p.condition("PodScheduled"); c != nil && c.Status == "False" {
		return c.Message
	}
	return ""
}

// Container is the status of the agent's container; nil: the kubelet reported none yet.
func (p *Pod) Container() *ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if p.Status.ContainerStatuses[i].Name == Account {
			return &p.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// isAgent: the pod is the DaemonSet's, and not that of a cleanup.
func (p *Pod) isAgent() bool {
	return !slices.ContainsFunc(p.Metadata.OwnerReferences, func(o struct{ Kind, Name string }) bool { return o.Kind == "Job" })
}

// Policy is an admission policy.
type Policy struct{ Metadata Meta }

// Binding puts an admission policy into force.
type Binding struct {
	Metadata Meta
	Spec     struct {
		PolicyName        string
		ValidationActions []string
		MatchResources    json.RawMessage
	}
}

// Lease is an eviction slot.
type Lease struct {
	Metadata Meta
	Spec     struct {
		HolderIdentity string
		RenewTime      *time.Time
	}
}

// Event is one of taintlet's about a Node, or one of a kubelet's about an agent's pod.
type Event struct {
	Metadata       Meta
	InvolvedObject struct{ Kind, Name string }
	Type           string
	Reason         string
	Message        string
	Count          int
	EventTime      *time.Time
	FirstTimestamp *time.Time
	LastTimestamp  *time.Time
}

// At is when the Event most recently happened.
func (e Event) At() time.Time {
	for _, at := range []*time.Time{e.LastTimestamp, e.EventTime, e.FirstTimestamp} {
		if at != nil && !at.IsZero() {
			return *at
		}
	}
	return e.Metadata.CreationTimestamp
}

// ChangedByHand returns the program, other than the one that installed the object, that
// wrote its specification, and when; empty: none. Kubernetes calls it a field manager.
func (m Meta) ChangedByHand() (manager string, at time.Time) {
	installer := ""
	for _, entry := range m.ManagedFields {
		if strings.Contains(string(entry.FieldsV1["f:metadata"]), `"f:app.kubernetes.io/name"`) {
			installer = entry.Manager
		}
	}
	if installer == "" {
		return "", time.Time{} // managedFields were removed: nobody can tell
	}
	for _, entry := range m.ManagedFields {
		_, writesSpec := entry.FieldsV1["f:spec"]
		if writesSpec && entry.Subresource == "" && entry.Manager != installer && entry.Time.After(at) {
			manager, at = entry.Manager, entry.Time
		}
	}
	return manager, at
}

// PodsByNode returns the agents' pods that are not being deleted and have not ended, by the
// name of their Node.
func (i *Installation) PodsByNode() map[string][]*Pod {
	byNode := map[string][]*Pod{}
	for index := range i.Pods {
		p := &i.Pods[index]
		hasEnded := p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed"
		if p.Metadata.DeletionTimestamp == nil && !hasEnded && p.Spec.NodeName != "" {
			byNode[p.Spec.NodeName] = append(byNode[p.Spec.NodeName], p)
		}
	}
	return byNode
}

// VersionOf is the tag of an image; empty: it has none.
func VersionOf(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	name, _, _ = strings.Cut(name, "@")
	_, tag, _ := strings.Cut(name, ":")
	return strings.TrimPrefix(tag, "v")
}
