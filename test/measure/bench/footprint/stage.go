package footprint

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// bedHosts is how many hosts the bed has: as many as it can.
const bedHosts = 8

// stage is a cluster with a Node and an identity for each host.
type stage struct {
	spec    *spec
	say     func(format string, args ...any)
	bed     *bed.Network
	cluster *cluster.Cluster
	hosts   []*host
	agents  *bed.Manifest
	running []*process.Process
}

func (s *stage) setUp(ctx context.Context) (err error) {
	s.say("a control plane starts")
	if s.bed, err = bed.NewNetwork(s.spec.Folder, bedHosts); err != nil {
		return err
	}
	if s.cluster, err = cluster.Start(ctx, cluster.Options{Progress: os.Stderr, Address: bed.Gateway}); err != nil {
		return err
	}
	if err := errors.Join(s.cluster.InstallRules(ctx), s.cluster.InstallKeep(ctx)); err != nil {
		return err
	}
	if s.agents, err = bed.ShippedManifest(); err != nil {
		return err
	}
	for _, of := range s.bed.Hosts {
		h := newHost(of)
		s.hosts = append(s.hosts, h)
		if err := s.prepare(ctx, h); err != nil {
			return err
		}
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
func (s *stage) folder(h *host) string { return filepath.Join(s.spec.Folder, h.Name) }

// prepare registers the host's Node and writes the configuration and the identity of its
// agent.
func (s *stage) prepare(ctx context.Context, h *host) error {
	if _, err := s.cluster.RegisterNode(ctx, h.Name); err != nil {
		return err
	}
	identity, err := bed.IdentityOn(ctx, s.cluster, h.Name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.folder(h), 0o755); err != nil { //nolint:gosec // agents are not root
		return err
	}
	_, err = s.agents.WriteConfig(s.folder(h))
	return errors.Join(err, bed.WriteIdentity(filepath.Join(s.folder(h), "kubeconfig"), identity))
}

// makeSlices makes the EndpointSlices of the agents, of the DNS pods and of the API
// server, as controllers would.
func (s *stage) makeSlices(ctx context.Context) error {
	at, err := netip.ParseAddrPort(strings.TrimPrefix(s.cluster.URL(), "https://"))
	if err != nil {
		return err
	}
	agents := bed.NewSlice(bed.Namespace, "taintlet", "taintlet", "metrics", bed.AgentPort)
	dns := bed.NewSlice(metav1.NamespaceSystem, "kube-dns", "kube-dns", "dns-tcp", bed.DNSPort)
	own := bed.NewSlice(metav1.NamespaceDefault, "kubernetes", "kubernetes", "https", at.Port())
	bed.AddEndpoint(own, s.hosts[0].Name, at.Addr().String())
	for _, h := range s.hosts {
		bed.AddEndpoint(agents, h.Name, h.Address.String())
	}
	for _, h := range s.bed.DNS {
		bed.AddEndpoint(dns, h.Name, bed.PodAddress(h.Number).String())
	}
	return bed.CreateSlices(ctx, s.cluster, agents, dns, own)
}
