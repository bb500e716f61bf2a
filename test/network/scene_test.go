package network

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

// hosts is how many there are, and few the size of the small cluster.
const (
	hosts = 8
	few   = 3
)

// scene is the network and the control plane of all tests.
type scene struct {
	bed     *bed.Network
	cluster *cluster.Cluster
	records *recorder
	agents  *bed.Manifest // what the manifest gives them
	dir     string        // that agents can read
}

// stage holds the scene, which the first test that requires it makes.
type stage struct {
	once  sync.Once
	scene *scene
	err   error
}

var theStage stage

func require(t *testing.T) *scene {
	t.Helper()
	cluster.SkipUnlessRequired(t)
	bed.SkipWithoutNamespaces(t)
	theStage.once.Do(func() {
		theStage.scene = &scene{}
		theStage.err = theStage.scene.open(context.WithoutCancel(t.Context()), t)
	})
	if theStage.err != nil {
		t.Fatal(theStage.err)
	}
	s := theStage.scene
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.cluster.Tail(3))
		}
	})
	return s
}

// open makes everything but Nodes and agents.
func (s *scene) open(ctx context.Context, t *testing.T) (err error) {
	if s.dir, err = os.MkdirTemp("", "taintlet-network-scene-"); err != nil {
		return err
	}
	if err := os.Chmod(s.dir, 0o755); err != nil { //nolint:gosec // agents are not root
		return err
	}
	if s.bed, err = bed.NewNetwork(s.dir, hosts); err != nil {
		return err
	}
	if s.agents, err = bed.ShippedManifest(); err != nil {
		return err
	}
	s.cluster, err = cluster.Start(ctx, cluster.Options{AuditLog: true, Address: bed.Gateway, Progress: os.Stderr})
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bed.Namespace}}
	if _, err := s.cluster.Client().CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	bed.InstallRules(ctx, t, s.cluster, bed.ChartFolder, bed.Namespace, map[string]any{})
	bed.Apply(ctx, t, s.cluster, bed.Render(t, "--show-only", "templates/service.yaml"))
	if cluster.HasMutatingAdmissionPolicy(t) {
		if err := s.cluster.InstallKeep(ctx); err != nil {
			return err
		}
	}
	if err := s.serveDNS(ctx); err != nil {
		return err
	}
	s.records = record(s.cluster)
	return nil
}

// close ends everything, after a check that no request of an agent was refused.
func (s *scene) close() error {
	if s == nil {
		return nil
	}
	var errs []error
	if s.cluster != nil {
		errs = append(errs, noneRefused(s.cluster))
	}
	if s.records != nil {
		s.records.stop()
	}
	if s.bed != nil {
		s.bed.Close()
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
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
func (s *scene) serveDNS(ctx context.Context) error {
	_, err := s.cluster.Client().CoreV1().Services(metav1.NamespaceSystem).Create(ctx, &corev1.Service{
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
func (s *scene) waitSlices(t *testing.T, namespace, service string, nodes int) {
	t.Helper()
	cluster.Eventually(t, "EndpointSlices of "+service, func() error {
		found, err := s.cluster.Client().DiscoveryV1().EndpointSlices(namespace).List(t.Context(), metav1.ListOptions{
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
