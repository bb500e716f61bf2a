package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/taintlet/taintlet/test/bed"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

const (
	watchedNode = "watched"
	// peerUser is who the peers are in the cluster: what they ask for is not counted.
	peerUser = "soak-peer"
	// peers are agents on this host too, at ports of their own. An agent reads three
	// EndpointSlices, and a slice has one port: so there are two.
	peers = 2
)

// stage is the cluster with everything on it.
type stage struct {
	options *options
	folder  string // everybody may read it
	cluster *cluster.Cluster
	hostIP  netip.Addr
	// ports are those of the watched agent, of the peers, and of the gate before the
	// API server.
	ports         [1 + peers + 1]uint16
	agentManifest *bed.Manifest // what the manifest gives the agents
	agents        []*agent
}

// setUp makes the cluster with its Nodes, alive, and taintlet's permissions and
// policies as they are shipped. No agent runs yet.
func setUp(ctx context.Context, o *options) (*stage, error) {
	s := &stage{options: o}
	return s, s.prepare(ctx)
}

func (s *stage) prepare(ctx context.Context) (err error) {
	if s.folder, err = os.MkdirTemp("", "taintlet-soak-"); err != nil {
		return err
	}
	if err := os.Chmod(s.folder, 0o755); err != nil { //nolint:gosec // the agent is another user
		return err
	}
	if s.hostIP, err = ownAddress(); err != nil {
		return err
	}
	free, err := lastingPorts(len(s.ports))
	if err != nil {
		return err
	}
	copy(s.ports[:], free)
	measure.Say("the control plane starts")
	if s.cluster, err = cluster.Start(ctx, cluster.Options{AuditLog: true, AuditOnly: []string{bed.User}, Progress: os.Stderr}); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{s.install, s.cluster.InstallKeep, s.register, s.makeSlices} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// tearDown ends everything.
func (s *stage) tearDown() error {
	var errs []error
	for _, a := range s.agents {
		errs = append(errs, a.end())
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	if s.options.keep {
		measure.Say("logs are in %s", s.folder)
		return errors.Join(errs...)
	}
	return errors.Join(append(errs, os.RemoveAll(s.folder))...)
}

// lastingPorts returns ports that are free, and that the kernel gives to no client
// while nobody listens there (ip_local_port_range in ip(7)): a program that is
// started again finds its port as it left it.
func lastingPorts(count int) ([]uint16, error) {
	var first, last uint16
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Sscan(string(text), &first, &last); err != nil {
		return nil, err
	}
	var ports []uint16
	for port := first - 1; port > 1024 && len(ports) < count; port -= 1 + rand.N(uint16(7)) {
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port)) //nolint:noctx // closed at once
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	if len(ports) < count {
		return nil, fmt.Errorf("no %d ports are free below %d", count, first)
	}
	return ports, nil
}

// ownAddress is an address of this host at which agents reach each other.
func ownAddress() (netip.Addr, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err == nil && prefix.Addr().Is4() && prefix.Addr().IsGlobalUnicast() {
			return prefix.Addr(), nil
		}
	}
	return netip.Addr{}, errors.New("this host has no IPv4 address but loopback, where no agent has peers")
}

// manifest returns what is installed: deploy/taintlet.yaml, or for an accelerated run
// the chart with a rule that evicts, and slots for that.
func (s *stage) manifest(ctx context.Context) ([]*unstructured.Unstructured, error) {
	if s.options.real > 0 {
		return cluster.Shipped()
	}
	values, path := filepath.Join(s.folder, "values.yaml"), filepath.Join(s.folder, "chart.yaml")
	if err := os.WriteFile(values, []byte("config:\n"+indented(rules())), 0o600); err != nil {
		return nil, err
	}
	helm := process.CommandContext(ctx, "go", "tool", "-modfile=test/helm/go.mod", "helm", "template", "taintlet", "deploy/helm/taintlet",
		"--namespace", bed.Namespace, "--kube-version", "1.37", "-f", values,
		"--set", fmt.Sprintf("namespace.create=true,cleanup.afterUninstall=false,cleanup.stale=false,evict.slots=%d", slots))
	helm.Dir, helm.Stderr = s.options.module, os.Stderr
	text, err := helm.Output()
	if err != nil {
		return nil, fmt.Errorf("render the chart: %w", err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, err
	}
	return cluster.ReadManifest(path)
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

// install applies the manifest without what would run agents of its own,
// and keeps the configuration that it has.
func (s *stage) install(ctx context.Context) error {
	objects, err := s.manifest(ctx)
	if err != nil {
		return err
	}
	if s.agentManifest, err = bed.ManifestOf(objects); err != nil {
		return err
	}
	return errors.Join(s.cluster.InstallRulesOf(ctx, objects), s.cluster.GrantAsAgent(ctx, peerUser))
}

// peerNode is the Node of a peer, by its number from 1.
func peerNode(number int) string { return fmt.Sprint("peer-", number) }

func (s *stage) register(ctx context.Context) error {
	nodes := []string{watchedNode}
	for i := range peers {
		nodes = append(nodes, peerNode(i+1))
	}
	for _, node := range nodes {
		if _, err := s.cluster.RegisterNode(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

// makeSlices says where the agents are.
func (s *stage) makeSlices(ctx context.Context) error {
	for i, port := range s.ports[:1+peers] {
		node := watchedNode
		if i > 0 {
			node = peerNode(i)
		}
		if err := bed.CreateSlices(ctx, s.cluster, s.slice(node, port)); err != nil {
			return err
		}
	}
	return nil
}

// slice is an EndpointSlice of the agents: those of some Nodes at one port of this
// host.
func (s *stage) slice(name string, port uint16) *discoveryv1.EndpointSlice {
	slice := bed.NewSlice(bed.Namespace, name, "taintlet", "metrics", port)
	bed.AddEndpoint(slice, name, s.hostIP.String())
	return slice
}

// taints returns the taints of taintlet's that are on the watched Node.
func (s *stage) taints(ctx context.Context) ([]string, error) {
	node, err := s.cluster.Client().CoreV1().Nodes().Get(ctx, watchedNode, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var own []string
	for _, t := range node.Spec.Taints {
		if isOwn(t) {
			own = append(own, t.ToString())
		}
	}
	return own, nil
}

// isOwn reports whether taintlet sets such a taint, itself or by a stand-in.
func isOwn(t corev1.Taint) bool {
	wellKnown := []string{corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable}
	return slices.Contains(wellKnown, t.Key) || strings.HasPrefix(t.Key, taints.DefaultStandInPrefix+"/")
}

// program builds taintlet as it is shipped, but that its peers may be on its host, and with
// those swaps.
func (s *stage) program(ctx context.Context, swaps ...swap) (string, error) {
	return swappedProgram(ctx, s.options.module, s.folder, "shipped", append(oneHost(), swaps...))
}
