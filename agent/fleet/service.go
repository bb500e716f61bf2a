package fleet

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/taints"
)

// Source is the API server, where EndpointSlices, Nodes and their Leases are read (*apiserver.Client).
type Source interface {
	// ListSlices returns the metadata of the EndpointSlices with these labels.
	ListSlices(ctx context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error)
	// GetSlice reads one EndpointSlice.
	GetSlice(ctx context.Context, namespace, name string) (*discoveryv1.EndpointSlice, error)
	// GetNode reads a Node.
	GetNode(ctx context.Context, name string) (*taints.Node, error)
	// LeaseRenewed returns when a Node's Lease was renewed, by that Node's clock.
	LeaseRenewed(ctx context.Context, node string) (time.Time, error)
	// SetEndpoints sets the addresses to dial while the configured one fails.
	SetEndpoints([]netip.AddrPort)
	// ObserveWay takes in whether a route is lost, and whether the endpoints answer although the
	// configured address does not.
	ObserveWay(isBroken, elsewhere bool)
}

// maxSlices is how many EndpointSlices of a Service are read. Each has up to 100
// endpoints, so three have far more than are chosen. It also bounds who asks an
// endpoint: of a fleet with S slices 3/S know it, about 300 agents.
const maxSlices = 3

// service is one Service, or several with the same labels, as far as their EndpointSlices were read.
type service struct {
	source    Source
	namespace string
	// selectors of the EndpointSlices: the first that finds some counts.
	selectors []string
	ports     []uint16 // the endpoints have one of these
	own       string   // the Node that reads
	// count is how many slices there are, read those of them that were read.
	count int
	read  map[string]slice
}

// slice is what was read of an EndpointSlice in one version.
type slice struct {
	version   string
	endpoints []endpoint
}

// refresh reads the metadata of all slices, and those that rank first and have changed; after an error: nothing.
func (s *service) refresh(ctx context.Context) error {
	var list []metav1.PartialObjectMetadata
	for _, selector := range s.selectors {
		some, err := s.source.ListSlices(ctx, s.namespace, selector)
		if err != nil {
			return err
		}
		if list = some; len(list) > 0 {
			break
		}
	}
	versions := make(map[string]string, len(list))
	for i := range list {
		versions[list[i].Name] = list[i].ResourceVersion
	}
	read := map[string]slice{}
	for _, name := range first(s.own, slices.Collect(maps.Keys(versions)), maxSlices) {
		known, found := s.read[name]
		if found && known.version == versions[name] {
			read[name] = known
			continue
		}
		full, err := s.source.GetSlice(ctx, s.namespace, name)
		if apierrors.IsNotFound(err) {
			continue // gone since
		}
		if err != nil {
			return err
		}
		others := slices.DeleteFunc(endpointsOf(full, s.ports...), func(e endpoint) bool { return isOwn(e.address) })
		read[name] = slice{full.ResourceVersion, others}
	}
	s.count, s.read = len(versions), read
	return nil
}

// endpoints returns those of the slices that were read.
func (s *service) endpoints() []endpoint {
	var all []endpoint
	for _, name := range slices.Sorted(maps.Keys(s.read)) {
		all = append(all, s.read[name].endpoints...)
	}
	return all
}
