package apiserver

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AgentPods lists the pods of a namespace that have a label, such as the agents'.
func (c *Client) AgentPods(ctx context.Context, namespace, label string) (all []corev1.Pod, err error) {
	options := metav1.ListOptions{Limit: listPage, LabelSelector: label}
	for {
		list := &corev1.PodList{}
		err := c.kept.Get().Namespace(namespace).Resource("pods").VersionedParams(&options, c.codec).Do(within(ctx, maxPage)).Into(list)
		if err != nil {
			return nil, explain("list", "pods", "in namespace "+namespace, err)
		}
		all = append(all, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			return all, nil
		}
	}
}
