package apiserver

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EachPod calls do with every pod on the client's Node, or with every pod of the
// cluster for a client without a name. It is for people: agents may not read pods.
func (c *Client) EachPod(ctx context.Context, do func(*corev1.Pod)) error {
	options := metav1.ListOptions{Limit: listPage}
	if c.name != "" {
		options.FieldSelector = "spec.nodeName=" + c.name
	}
	for {
		list := &corev1.PodList{}
		if err := c.page(ctx, "pods", &options, list); err != nil {
			return explain("list", "pods", c.name, err)
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}
