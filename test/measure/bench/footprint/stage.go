package footprint

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

const (
	agentNamespace = "taintlet-system"
	agentAccount   = "taintlet"
	// bedHosts is how many hosts the bed has: as many as it can.
	bedHosts = 8
)

// stage is a cluster with a Node and an identity for each host.
type stage struct {
	spec    *spec
	say     func(format string, args ...any)
	bed     *bed.Network
	cluster *cluster.Cluster
	hosts   []*host
	env     []string // of each agent, as in the manifest
	running []*process.Process
}

func (s *stage) setUp(ctx context.Context) (err error) {
	s.say("a control plane starts")
	options := cluster.Options{Progress: os.Stderr}
	if s.spec.Bed {
		if s.bed, err = bed.NewNetwork(s.spec.Folder, bedHosts); err != nil {
			return err
		}
		s.hosts, options.Address = hostsOf(s.bed), bed.Gateway
	} else {
		here, err := thisHost()
		if err != nil {
			return err
		}
		s.hosts = []*host{here}
	}
	if s.cluster, err = cluster.Start(ctx, options); err != nil {
		return err
	}
	if err := errors.Join(s.cluster.InstallRules(ctx), s.cluster.InstallKeep(ctx), s.readManifest()); err != nil {
		return err
	}
	for _, h := range s.hosts {
		if err := s.prepare(ctx, h); err != nil {
			return err
		}
	}
	if s.bed == nil {
		return nil
	}
	return s.makeSlices(ctx)
}

// tearDown ends everything.
func (s *stage) tearDown() error {
	var errs []error
	for _, p := range s.running {
		errs = append(errs, p.Kill())
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	if s.bed != nil {
		s.bed.Close()
	}
	return errors.Join(errs...)
}

// folder is where a host's files are.
func (s *stage) folder(h *host) string { return filepath.Join(s.spec.Folder, h.node) }

// readManifest takes the agent's environment and configuration from
// deploy/taintlet.yaml. Each host has a folder in place of the volume /scratch.
func (s *stage) readManifest() error {
	objects, err := cluster.Shipped()
	if err != nil {
		return err
	}
	var agents appsv1.DaemonSet
	var configuration corev1.ConfigMap
	for _, object := range objects {
		switch object.GetKind() {
		case "DaemonSet":
			err = errors.Join(err, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &agents))
		case "ConfigMap":
			err = errors.Join(err, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &configuration))
		}
	}
	text := configuration.Data["config.yaml"]
	if err != nil || len(agents.Spec.Template.Spec.Containers) == 0 || text == "" {
		return errors.Join(errors.New("deploy/taintlet.yaml lacks the agent or its configuration"), err)
	}
	resources := agents.Spec.Template.Spec.Containers[0].Resources
	// As the kubelet fills resourceFieldRef in: bytes, and whole CPUs, rounded up.
	s.env = []string{
		"GOMEMLIMIT=" + strconv.FormatInt(resources.Limits.Memory().Value(), 10),
		"GOMAXPROCS=" + strconv.FormatInt(resources.Requests.Cpu().Value(), 10),
		"POD_NAMESPACE=" + agentNamespace,
	}
	for _, h := range s.hosts {
		scratch := filepath.Join(s.folder(h), "scratch")
		if err := os.MkdirAll(scratch, 0o755); err != nil { //nolint:gosec // agents are not root
			return err
		}
		own := strings.ReplaceAll(text, "/scratch", scratch)
		if err := os.WriteFile(filepath.Join(s.folder(h), "config.yaml"), []byte(own), 0o644); err != nil { //nolint:gosec // the same
			return err
		}
		if s.spec.isRoot() {
			if err := os.Chown(scratch, nobody, nobody); err != nil {
				return err
			}
		}
	}
	return nil
}

func (*spec) isRoot() bool { return os.Geteuid() == 0 }

// prepare registers the host's Node and writes the identity of its agent: the
// bearer of a token that says on which Node it is.
func (s *stage) prepare(ctx context.Context, h *host) error {
	if _, err := s.cluster.RegisterNode(ctx, h.node); err != nil {
		return err
	}
	token, err := s.cluster.TokenOn(ctx, agentNamespace, agentAccount, h.node, cluster.LongToken)
	if err != nil {
		return err
	}
	path := filepath.Join(s.folder(h), "kubeconfig")
	if err := cluster.WriteKubeconfig(path, s.cluster.WithToken(token)); err != nil || !s.spec.isRoot() {
		return err
	}
	return os.Chown(path, nobody, nobody)
}

// makeSlices makes the EndpointSlices of the agents, of the DNS pods and of the API
// server, as controllers would.
func (s *stage) makeSlices(ctx context.Context) error {
	server, err := url.Parse(s.cluster.URL())
	if err != nil {
		return err
	}
	at, err := netip.ParseAddrPort(server.Host)
	if err != nil {
		return err
	}
	agents := newSlice(agentNamespace, "taintlet", "metrics", bed.AgentPort)
	dns := newSlice(metav1.NamespaceSystem, "kube-dns", "dns-tcp", bed.DNSPort)
	own := newSlice(metav1.NamespaceDefault, "kubernetes", "https", int32(at.Port()))
	addEndpoint(own, s.hosts[0].node, at.Addr().String())
	for _, h := range s.hosts {
		addEndpoint(agents, h.node, h.address)
	}
	for _, h := range s.bed.DNS {
		addEndpoint(dns, h.Name, bed.PodAddress(h.Number).String())
	}
	for _, slice := range []*discoveryv1.EndpointSlice{agents, dns, own} {
		if _, err := s.cluster.Client().DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("slice of %s: %w", slice.Name, err)
		}
	}
	return nil
}

func newSlice(namespace, service, port string, number int32) *discoveryv1.EndpointSlice {
	protocol := corev1.ProtocolTCP
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: service, Labels: map[string]string{
			discoveryv1.LabelServiceName: service, "k8s-app": service, discoveryv1.LabelManagedBy: "bench",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &port, Port: &number, Protocol: &protocol}},
	}
}

func addEndpoint(slice *discoveryv1.EndpointSlice, node, address string) {
	ready := true
	slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
		Addresses: []string{address}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
	})
}
