package apiserver

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EachPod calls do with every pod on the client's Node, or with every pod of the
// cluster for a client without a name. It is for people: agents may not read pods.
func (c *Client) EachPod(ctx context.Context, do func(*corev1.Pod)) error {
	var options metav1.ListOptions
	if c.name != "" {
		options.FieldSelector = "spec.nodeName=" + c.name
	}
	return c.eachPod(ctx, metav1.NamespaceAll, options, c.name, do)
}

// AgentPods lists the pods of a namespace that have a label, such as the agents'.
func (c *Client) AgentPods(ctx context.Context, namespace, label string) (all []corev1.Pod, err error) {
	options := metav1.ListOptions{LabelSelector: label}
	err = c.eachPod(ctx, namespace, options, "in namespace "+namespace, func(pod *corev1.Pod) { all = append(all, *pod) })
	return all, err
}

// eachPod calls do with every pod that the options select. An error says which these are.
func (c *Client) eachPod(ctx context.Context, namespace string, options metav1.ListOptions, which string, do func(*corev1.Pod)) error {
	options.Limit = listPage
	for {
		list := &corev1.PodList{}
		if err := c.page(ctx, namespace, "pods", &options, list); err != nil {
			return explain("list", "pods", which, err)
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}
