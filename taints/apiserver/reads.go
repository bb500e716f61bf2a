package apiserver

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/taints"
)

// ConfigFile reads a file of a ConfigMap.
func (c *Client) ConfigFile(ctx context.Context, namespace, name, file string) ([]byte, error) {
	var found corev1.ConfigMap
	err := c.kept.Get().Namespace(namespace).Resource("configmaps").Name(name).Do(ctx).Into(&found)
	if err != nil {
		return nil, explain("get", "configmaps", namespace+"/"+name, err)
	}
	text, isThere := found.Data[file]
	if !isThere {
		return nil, fmt.Errorf("the ConfigMap %s/%s has no %s", namespace, name, file)
	}
	return []byte(text), nil
}

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

const (
	sliceResource = "endpointslices"
	leaseResource = "leases.coordination.k8s.io"
	leaseAPI      = "/apis/coordination.k8s.io/v1/namespaces/"
	sliceAPI      = "/apis/discovery.k8s.io/v1/namespaces/"
	metadataOnly  = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	atVersion     = "resourceVersion" // a parameter
	fromCache     = "0"               // its value: the API server need not ask etcd
	listedAtOnce  = "1000"
)

// ListSlices returns the metadata of the EndpointSlices with these labels, and not
// what is in them. A slice has the labels of its Service, and one with its name
// (LabelServiceName in k8s.io/api/discovery/v1).
func (c *Client) ListSlices(ctx context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	err := c.read(within(ctx, maxSliceList), "list", sliceResource, namespace+"/"+selector, list, func(get *rest.Request) {
		get.AbsPath(sliceAPI+namespace, sliceResource).Param("labelSelector", selector).
			Param("limit", listedAtOnce).Param(atVersion, fromCache).SetHeader("Accept", metadataOnly)
	})
	return list.Items, err
}

// GetSlice reads one EndpointSlice.
func (c *Client) GetSlice(ctx context.Context, namespace, name string) (*discoveryv1.EndpointSlice, error) {
	slice := &discoveryv1.EndpointSlice{}
	return slice, c.read(within(ctx, maxSlice), "get", sliceResource, namespace+"/"+name, slice, func(get *rest.Request) {
		get.AbsPath(sliceAPI+namespace, sliceResource, name).Param(atVersion, fromCache)
	})
}

// LeaseRenewed returns when the Lease of a Node was renewed, by that Node's clock. Its
// kubelet renews it every 10 s.
func (c *Client) LeaseRenewed(ctx context.Context, node string) (time.Time, error) {
	const namespace = corev1.NamespaceNodeLease
	lease := &coordinationv1.Lease{}
	err := c.read(within(ctx, maxLease), "get", leaseResource, namespace+"/"+node, lease, func(get *rest.Request) {
		get.AbsPath(leaseAPI+namespace, "leases", node).Param(atVersion, fromCache)
	})
	return renewedAt(lease), err
}

// GetNode reads any Node.
func (c *Client) GetNode(ctx context.Context, name string) (*taints.Node, error) {
	return c.Node(name).Get(ctx)
}
