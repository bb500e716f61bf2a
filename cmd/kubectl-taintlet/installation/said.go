package installation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
func (r *Reader) readSaid(ctx context.Context, i *Installation) {
	i.Said = map[string]string{}
	asked := 0
	for _, pod := range i.Pods {
		isReady, _ := ReadySince(pod)
		if isReady || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || asked == askedAgents {
			continue
		}
		asked++
		i.Said[pod.Name] = r.ask(ctx, pod)
	}
}

func (r *Reader) ask(ctx context.Context, pod *corev1.Pod) string {
	ctx, cancel := context.WithTimeout(ctx, askedFor)
	defer cancel()
	port := int32(DefaultPort)
	if ports := Agent(&pod.Spec).Ports; len(ports) > 0 {
		port = ports[0].ContainerPort
	}
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy/readyz", pod.Namespace, pod.Name, port)
	var answered apierrors.APIStatus
	if err := r.Client.CoreV1().RESTClient().Get().AbsPath(path).MaxRetries(0).Do(ctx).Error(); !errors.As(err, &answered) || answered.Status().Details == nil {
		return ""
	}
	for _, cause := range answered.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse { // the agent's own text
			return strings.TrimSpace(cause.Message)
		}
	}
	return "" // of the API server, which did not reach it
}
