package apiserver

import (
	"context"
	"encoding/json"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/taints"
)

const (
	sliceResource = "endpointslices"
	leaseResource = "leases.coordination.k8s.io"
	nodeLeases    = "/apis/coordination.k8s.io/v1/namespaces/" + corev1.NamespaceNodeLease + "/leases"
	sliceAPI      = "/apis/discovery.k8s.io/v1/namespaces/"
	metadataOnly  = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	fromCache     = "0" // a resourceVersion: the API server need not ask etcd
	listedAtOnce  = "1000"
)

// ListSlices returns the metadata of the EndpointSlices with these labels, and not
// what is in them. A slice has the labels of its Service, and one with its name
// (LabelServiceName in k8s.io/api/discovery/v1).
func (c *Client) ListSlices(ctx context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	err := c.getCached(within(ctx, maxSliceList), list, func(get *rest.Request) *rest.Request {
		return get.AbsPath(sliceAPI+namespace, sliceResource).Param("labelSelector", selector).
			Param("limit", listedAtOnce).SetHeader("Accept", metadataOnly)
	})
	if err != nil {
		return nil, explain("list", sliceResource, namespace+"/"+selector, err)
	}
	return list.Items, nil
}

// GetSlice reads one EndpointSlice.
func (c *Client) GetSlice(ctx context.Context, namespace, name string) (*discoveryv1.EndpointSlice, error) {
	slice := &discoveryv1.EndpointSlice{}
	err := c.getCached(within(ctx, maxSlice), slice, func(get *rest.Request) *rest.Request {
		return get.AbsPath(sliceAPI+namespace, sliceResource, name).SetHeader("Accept", "application/json")
	})
	if err != nil {
		return nil, explain("get", sliceResource, namespace+"/"+name, err)
	}
	return slice, nil
}

// LeaseRenewed returns when the Lease of a Node was renewed, by that Node's clock. Its
// kubelet renews it every 10 s.
func (c *Client) LeaseRenewed(ctx context.Context, node string) (time.Time, error) {
	lease := &coordinationv1.Lease{}
	err := c.getCached(within(ctx, maxLease), lease, func(get *rest.Request) *rest.Request {
		return get.AbsPath(nodeLeases, node).SetHeader("Accept", "application/json")
	})
	if err != nil {
		return time.Time{}, explain("get", leaseResource, corev1.NamespaceNodeLease+"/"+node, err)
	}
	return renewedAt(lease), nil
}

// getCached reads what a request asks for, as the API server has it in memory.
func (c *Client) getCached(ctx context.Context, into any, ask func(get *rest.Request) *rest.Request) error {
	var body []byte
	err := c.request(func(api rest.Interface) (err error) {
		body, err = ask(api.Get()).Param("resourceVersion", fromCache).Do(ctx).Raw()
		return err
	})
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// GetNode reads any Node.
func (c *Client) GetNode(ctx context.Context, name string) (*taints.Node, error) {
	return c.Node(name).Get(ctx)
}
