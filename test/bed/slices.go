package bed

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/cluster"
)

// NewSlice returns an EndpointSlice of a Service without endpoints, as its controller
// makes it, with one TCP port.
func NewSlice(namespace, name, service, port string, number uint16) *discoveryv1.EndpointSlice {
	protocol, portNumber := corev1.ProtocolTCP, int32(number)
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
			discoveryv1.LabelServiceName: service, "k8s-app": service, discoveryv1.LabelManagedBy: "taintlet-bed",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &port, Port: &portNumber, Protocol: &protocol}},
	}
}

// AddEndpoint adds an endpoint that is ready and returns it, to be changed.
func AddEndpoint(slice *discoveryv1.EndpointSlice, node, address string) *discoveryv1.Endpoint {
	ready := true
	slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
		Addresses: []string{address}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
	})
	return &slice.Endpoints[len(slice.Endpoints)-1]
}

// CreateSlices creates EndpointSlices.
func CreateSlices(ctx context.Context, c *cluster.Cluster, slices ...*discoveryv1.EndpointSlice) error {
	for _, slice := range slices {
		if _, err := c.Client().DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create the EndpointSlice %s: %w", slice.Name, err)
		}
	}
	return nil
}
