package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// Hosts is how many hosts there are.
const Hosts = 8

// What matches packets between hosts, as a beginning of rules for Break: all that a host
// receives from others, and all that it sends to them.
const (
	FromPeers = "in ip saddr 10.90.0.11-10.90.0.18"
	ToPeers   = "out ip daddr 10.90.0.11-10.90.0.18"
)

// Scene is the network and the control plane of all tests of a package.
type Scene struct {
	Network *bed.Network
	Cluster *cluster.Cluster
	// Records has every change of every Node.
	Records *Recorder

	manifest *bed.Manifest // what the manifest gives the agents
	dir      string        // that agents can read
}

// stage holds the Scene, which the first test that requires it makes.
type stage struct {
	once  sync.Once
	scene *Scene
	err   error
}

var theStage stage //nolint:gochecknoglobals // one for all tests of a package

// Require returns the Scene. The test is skipped unless TAINTLET_REQUIRE lists
// controlplane and netns.
func Require(t *testing.T) *Scene {
	t.Helper()
	cluster.SkipUnlessRequired(t)
	bed.SkipWithoutNamespaces(t)
	theStage.once.Do(func() {
		theStage.scene = &Scene{}
		theStage.err = theStage.scene.open(context.WithoutCancel(t.Context()), t)
	})
	if theStage.err != nil {
		t.Fatal(theStage.err)
	}
	s := theStage.scene
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.Cluster.Tail(3))
		}
	})
	return s
}

// open makes everything but Nodes and agents.
func (s *Scene) open(ctx context.Context, t *testing.T) (err error) {
	if s.dir, err = os.MkdirTemp("", "taintlet-network-scene-"); err != nil {
		return err
	}
	if err := os.Chmod(s.dir, 0o755); err != nil { //nolint:gosec // agents are not root
		return err
	}
	if s.Network, err = bed.NewNetwork(s.dir, Hosts); err != nil {
		return err
	}
	if s.manifest, err = bed.ShippedManifest(); err != nil {
		return err
	}
	s.Cluster, err = cluster.Start(ctx, cluster.Options{AuditLog: true, Address: bed.Gateway, Progress: os.Stderr})
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bed.Namespace}}
	if _, err := s.Cluster.Client().CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	bed.InstallRules(ctx, t, s.Cluster, bed.ChartFolder, bed.Namespace, map[string]any{})
	bed.Apply(ctx, t, s.Cluster, bed.Render(t, "--show-only", "templates/service.yaml"))
	if cluster.HasMutatingAdmissionPolicy(t) {
		if err := s.Cluster.InstallKeep(ctx); err != nil {
			return err
		}
	}
	if err := s.serveDNS(ctx); err != nil {
		return err
	}
	s.Records = record(s.Cluster)
	return nil
}

// close ends everything, after a check that no request of an agent was refused.
func (s *Scene) close() error {
	if s == nil {
		return nil
	}
	var errs []error
	if s.Cluster != nil {
		errs = append(errs, noneRefused(s.Cluster))
	}
	if s.Records != nil {
		s.Records.stop()
	}
	if s.Network != nil {
		s.Network.Close()
	}
	if s.Cluster != nil {
		errs = append(errs, s.Cluster.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// noneRefused is an error when RBAC or a policy refused a request of an agent.
func noneRefused(c *cluster.Cluster) error {
	requests, err := c.Requests(":" + bed.Account)
	if err != nil {
		return err
	}
	refused := map[string]error{}
	for _, r := range requests {
		if r.ResponseStatus.Code == http.StatusForbidden || r.ResponseStatus.Code == http.StatusUnprocessableEntity {
			what := r.Verb + " " + r.Resource()
			refused[what] = fmt.Errorf("refused: %s %s of the agent of %s: %s", what, r.ObjectRef.Name, r.User.Extra[bed.NodeNameExtra], r.ResponseStatus.Message)
		}
	}
	return errors.Join(slices.Collect(maps.Values(refused))...)
}

// serveDNS makes the Service kube-dns. Its EndpointSlices are the controller's.
func (s *Scene) serveDNS(ctx context.Context) error {
	_, err := s.Cluster.Client().CoreV1().Services(metav1.NamespaceSystem).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-dns", Labels: map[string]string{"k8s-app": "kube-dns"}},
		Spec: corev1.ServiceSpec{
			ClusterIP: bed.DNSService,
			Selector:  map[string]string{"k8s-app": "kube-dns"},
			Ports: []corev1.ServicePort{
				{Name: "dns", Port: bed.DNSPort, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(bed.DNSPort)},
				{Name: "dns-tcp", Port: bed.DNSPort, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(bed.DNSPort)},
			},
		},
	}, metav1.CreateOptions{})
	return err
}

// waitSlices waits until the EndpointSlices of a Service name that many Nodes as
// ready.
func (s *Scene) waitSlices(t *testing.T, namespace, service string, nodes int) {
	t.Helper()
	cluster.Eventually(t, "EndpointSlices of "+service, func() error {
		found, err := s.Cluster.Client().DiscoveryV1().EndpointSlices(namespace).List(t.Context(), metav1.ListOptions{
			LabelSelector: discoveryv1.LabelServiceName + "=" + service,
		})
		if err != nil {
			return err
		}
		ready := map[string]bool{}
		for _, slice := range found.Items {
			for _, e := range slice.Endpoints {
				if e.NodeName != nil && e.Conditions.Ready != nil && *e.Conditions.Ready {
					ready[*e.NodeName] = true
				}
			}
		}
		if len(ready) != nodes {
			return fmt.Errorf("they name %d Nodes, not %d", len(ready), nodes)
		}
		return nil
	})
}
