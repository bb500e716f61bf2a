package installation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

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

// condition returns the pod's condition of a type; an empty one: it has none.
func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
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
	ready := condition(pod, corev1.PodReady)
	return ready.Status == corev1.ConditionTrue, ready.LastTransitionTime.UTC()
}

// WhyNotScheduled is what the scheduler says; empty: the pod has a Node.
func WhyNotScheduled(pod *corev1.Pod) string {
	if c := condition(pod, corev1.PodScheduled); c.Status == corev1.ConditionFalse {
		return c.Message
	}
	return ""
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

// Names are the names of pods with their namespaces, in alphabetical order.
func Names(pods []*corev1.Pod) []string {
	names := make([]string, len(pods))
	for i, p := range pods {
		names[i] = p.Namespace + "/" + p.Name
	}
	slices.Sort(names)
	return names
}

// IsOver reports whether the agent that wrote an Event about its Node has ended: each of the
// Node's agents started later. pods are all of them; none: nobody can tell.
func IsOver(e *corev1.Event, pods []*corev1.Pod) bool {
	isOver := false
	for _, pod := range pods {
		if pod.Spec.NodeName == e.InvolvedObject.Name {
			c := AgentStatus(pod)
			isOver = c != nil && c.State.Running != nil && c.State.Running.StartedAt.After(At(e))
			if !isOver {
				return false
			}
		}
	}
	return isOver
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
