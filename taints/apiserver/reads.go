package apiserver

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// AgentPods lists the pods of a namespace that have a label, such as the agents'.
func (c *Client) AgentPods(ctx context.Context, namespace, label string) (all []corev1.Pod, err error) {
	options := metav1.ListOptions{LabelSelector: label, Limit: listPage}
	for {
		list := &corev1.PodList{}
		if err := c.page(ctx, namespace, "pods", &options, list); err != nil {
			return nil, explain("list", "pods", "in namespace "+namespace, err)
		}
		all = append(all, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			return all, nil
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

// ListSlices returns the metadata of the EndpointSlices with these labels, without their endpoints.
// A slice has the labels of its Service, and one with the name of the Service (LabelServiceName in
// k8s.io/api/discovery/v1).
func (c *Client) ListSlices(ctx context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	err := c.call(within(ctx, maxSliceList), "list", sliceResource, namespace+"/"+selector, list, func(get *rest.Request) {
		get.AbsPath(sliceAPI+namespace, sliceResource).Param("labelSelector", selector).
			Param("limit", listedAtOnce).Param(atVersion, fromCache).SetHeader("Accept", metadataOnly)
	})
	return list.Items, err
}

// GetSlice reads one EndpointSlice.
func (c *Client) GetSlice(ctx context.Context, namespace, name string) (*discoveryv1.EndpointSlice, error) {
	slice := &discoveryv1.EndpointSlice{}
	return slice, c.call(within(ctx, maxSlice), "get", sliceResource, namespace+"/"+name, slice, func(get *rest.Request) {
		get.AbsPath(sliceAPI+namespace, sliceResource, name).Param(atVersion, fromCache)
	})
}

// LeaseRenewed returns when the Lease of a Node was renewed, by that Node's clock. Its
// kubelet renews it every 10 s.
func (c *Client) LeaseRenewed(ctx context.Context, node string) (time.Time, error) {
	const namespace = corev1.NamespaceNodeLease
	lease := &coordinationv1.Lease{}
	err := c.call(within(ctx, maxLease), "get", leaseResource, namespace+"/"+node, lease, func(get *rest.Request) {
		get.AbsPath(leaseAPI+namespace, "leases", node).Param(atVersion, fromCache)
	})
	return renewedAt(lease), err
}
