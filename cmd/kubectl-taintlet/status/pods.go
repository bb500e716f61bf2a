package status

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes/consumers"
)

// podNames gives the pods in messages their names, with one request for each Node that has
// such a message.
type podNames struct {
	// list returns the pods of a Node by their UIDs, and static pods by the hash that stands in
	// the name of their control group.
	list func(ctx context.Context, node string) (map[string]Culprit, error)
	// pods are those that are known, and askedAt is when a Node was asked for its pods.
	pods    map[string]Culprit
	askedAt map[string]time.Time
	failed  error
}

func newPodNames(list func(ctx context.Context, node string) (map[string]Culprit, error)) *podNames {
	return &podNames{list: list, pods: map[string]Culprit{}, askedAt: map[string]time.Time{}}
}

// mostLookups is for how many Nodes of one Report pods are listed at most. The others keep the
// UIDs: of hundreds of Nodes nobody reads every message.
const mostLookups = 50

// resolve names the pods of a Report. A Node with a pod that is not known is asked again only
// after a while.
func (p *podNames) resolve(ctx context.Context, r *Report, now time.Time) {
	lookups := mostLookups
	for i := range r.Nodes {
		n := &r.Nodes[i]
		n.Conditions = slices.Clone(n.Conditions) // they are the Fleet's
		for j := range n.Conditions {
			c := &n.Conditions[j]
			c.Culprits = nil
			for _, uid := range consumers.PodsIn(c.Message) {
				if _, isKnown := p.pods[uid]; !isKnown && lookups > 0 && now.Sub(p.askedAt[n.Name]) >= readEvery {
					lookups--
					var found map[string]Culprit
					found, p.failed = p.list(ctx, n.Name)
					maps.Copy(p.pods, found)
					p.askedAt[n.Name] = now
				}
				if pod, isKnown := p.pods[uid]; isKnown {
					c.Culprits = append(c.Culprits, pod)
				}
			}
		}
	}
	if p.failed != nil {
		r.Unread = append(r.Unread, installation.NewUnread("names of pods", p.failed))
	}
}

const listTimeout = 5 * time.Second

// configAnnotation is the UID that the kubelet gave a static pod. The pod that the API server
// has in its place has another one (ConfigHashAnnotationKey in pkg/kubelet/types/pod_update.go).
const configAnnotation = "kubernetes.io/config.hash"

// podLister lists pods without their specs.
func podLister(client *installation.Client) func(ctx context.Context, node string) (map[string]Culprit, error) {
	return func(ctx context.Context, node string) (map[string]Culprit, error) {
		ctx, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		text, err := client.CoreV1().RESTClient().Get().Resource("pods").
			VersionedParams(&metav1.ListOptions{FieldSelector: "spec.nodeName=" + node}, scheme.ParameterCodec).
			SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").DoRaw(ctx)
		if err != nil {
			return nil, err
		}
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, errors.New("the API server's list of pods cannot be read")
		}
		pods := make(map[string]Culprit, len(list.Items))
		for i := range list.Items {
			p := &list.Items[i]
			uid := string(p.UID)
			if hash := p.Annotations[configAnnotation]; hash != "" {
				uid = hash
			}
			pods[uid] = Culprit{uid, terminal.Clean(p.Namespace, maxName), terminal.Clean(p.Name, maxName)}
		}
		return pods, nil
	}
}

func (c Condition) text() string {
	text := c.Message
	for _, pod := range c.Culprits {
		text = strings.ReplaceAll(text, "pod "+pod.UID, "pod "+pod.Namespace+"/"+pod.Name)
	}
	return text
}
