package taints

import (
	"context"
	"encoding/json"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
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

// ListSlices returns the metadata of the EndpointSlices of a Service, and not what
// is in them.
func (c *Client) ListSlices(ctx context.Context, namespace, service string) ([]metav1.PartialObjectMetadata, error) {
	var body []byte
	err := c.request(func(api rest.Interface) (err error) {
		body, err = api.Get().AbsPath(sliceAPI+namespace, sliceResource).
			Param("labelSelector", discoveryv1.LabelServiceName+"="+service).
			Param("resourceVersion", fromCache).Param("limit", listedAtOnce).
			SetHeader("Accept", metadataOnly).Do(ctx).Raw()
		return err
	})
	if err != nil {
		return nil, explain("list", sliceResource, namespace+"/"+service, err)
	}
	list := &metav1.PartialObjectMetadataList{}
	if err := json.Unmarshal(body, list); err != nil {
		return nil, explain("list", sliceResource, namespace+"/"+service, err)
	}
	return list.Items, nil
}

// GetSlice reads one EndpointSlice.
func (c *Client) GetSlice(ctx context.Context, namespace, name string) (*discoveryv1.EndpointSlice, error) {
	var body []byte
	err := c.request(func(api rest.Interface) (err error) {
		body, err = api.Get().AbsPath(sliceAPI+namespace, sliceResource, name).Param("resourceVersion", fromCache).
			SetHeader("Accept", "application/json").Do(ctx).Raw()
		return err
	})
	if err != nil {
		return nil, explain("get", sliceResource, namespace+"/"+name, err)
	}
	slice := &discoveryv1.EndpointSlice{}
	if err := json.Unmarshal(body, slice); err != nil {
		return nil, explain("get", sliceResource, namespace+"/"+name, err)
	}
	return slice, nil
}

// LeaseRenewed returns when the Lease of a Node was renewed, by that Node's clock. Its
// kubelet renews it every 10 s.
func (c *Client) LeaseRenewed(ctx context.Context, node string) (time.Time, error) {
	var body []byte
	err := c.request(func(api rest.Interface) (err error) {
		body, err = api.Get().AbsPath(nodeLeases, node).Param("resourceVersion", fromCache).
			SetHeader("Accept", "application/json").Do(ctx).Raw()
		return err
	})
	if err != nil {
		return time.Time{}, explain("get", leaseResource, corev1.NamespaceNodeLease+"/"+node, err)
	}
	lease := &coordinationv1.Lease{}
	if err := json.Unmarshal(body, lease); err != nil {
		return time.Time{}, explain("get", leaseResource, corev1.NamespaceNodeLease+"/"+node, err)
	}
	return renewedAt(lease), nil
}

// GetNode reads any Node.
func (c *Client) GetNode(ctx context.Context, name string) (*corev1.Node, error) {
	return c.Node(name).Get(ctx)
}
