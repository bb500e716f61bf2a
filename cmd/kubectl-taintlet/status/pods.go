package status

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes/consumers"
)

const (
	// mostLookups is for how many Nodes of one Report pods are listed at most. The others keep
	// the UIDs: of hundreds of Nodes nobody reads every message.
	mostLookups = 50
	listTimeout = 5 * time.Second
	// configAnnotation is the UID that the kubelet gave a static pod. The pod that the API server
	// has in its place has another one (ConfigHashAnnotationKey in pkg/kubelet/types/pod_update.go).
	configAnnotation = "kubernetes.io/config.hash"
)

// namePods gives the pods in messages their names, with one request for each Node that has such a
// message. list returns the pods of a Node. A static pod is known by the hash that stands in the
// name of its control group. After the first failure nothing more is asked.
func (r *Report) namePods(list func(node string) ([]metav1.PartialObjectMetadata, error)) {
	lookups := 0
	for _, n := range r.Nodes {
		namesPod := func(c Condition) bool { return len(consumers.PodsIn(c.Message)) > 0 }
		if lookups == mostLookups || !slices.ContainsFunc(n.Conditions, namesPod) {
			continue
		}
		lookups++
		pods, err := list(n.Name)
		if err != nil {
			r.Unread = append(r.Unread, installation.NewUnread("names of pods", err))
			return
		}
		names := map[string]string{}
		for i := range pods {
			p := &pods[i]
			names[cmp.Or(p.Annotations[configAnnotation], string(p.UID))] = terminal.Clean(p.Namespace+"/"+p.Name, 2*maxName)
		}
		for i := range n.Conditions {
			c := &n.Conditions[i]
			for _, uid := range consumers.PodsIn(c.Message) {
				c.Message = strings.ReplaceAll(c.Message, "pod "+uid, "pod "+cmp.Or(names[uid], uid))
			}
		}
	}
}

// podsOfNode lists the pods of a Node without their specs.
func podsOfNode(ctx context.Context, client *installation.Client, node string) ([]metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := client.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
