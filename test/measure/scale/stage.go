package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

const (
	agentUser      = "system:serviceaccount:" + agentNamespace + ":taintlet"
	controllerUser = "system:serviceaccount:kube-system:node-controller"
	foreignUser    = "system:serviceaccount:default:foreign"
	foreignObject  = "foreign"

	// auditRules keep who asked for what when, of those whose requests are
	// counted. A log of all would cost the API server more than the agents do.
	auditRules = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["` + agentUser + `", "` + controllerUser + `"]
- level: None
`
	// sliceSize is how many endpoints an EndpointSlice has.
	sliceSize = 100
)

// stage is the cluster with everything on it.
type stage struct {
	options *options
	folder  string
	program string // taintlet
	config  string // file of the agents
	cluster *cluster.Cluster
	nodes   []string
	setup   *setup

	kubelets        *kubelets
	view            *view
	agents, foreign *child
}

// setUp makes the cluster with its Nodes, alive, and taintlet's permissions and
// policies as they are shipped. No agent runs yet.
func setUp(ctx context.Context, o *options) (*stage, error) {
	s := &stage{options: o}
	return s, s.prepare(ctx)
}

func (s *stage) prepare(ctx context.Context) (err error) {
	if s.folder, err = os.MkdirTemp("", "taintlet-scale-"); err != nil {
		return err
	}
	if s.program, err = process.BuildAgent(ctx, s.folder, process.BuildOptions{Release: true}); err != nil {
		return err
	}
	s.config = filepath.Join(s.folder, "config.yaml")
	rules := filepath.Join(s.folder, "audit.yaml")
	if err := errors.Join(s.configure(s.options.brake), os.WriteFile(rules, []byte(auditRules), 0o600)); err != nil {
		return err
	}
	measure.Say("the control plane starts")
	if s.cluster, err = cluster.Start(ctx, cluster.Options{
		AuditLog: true, Progress: os.Stderr, Args: map[string][]string{cluster.APIServer: {"--audit-policy-file=" + rules}},
	}); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{s.cluster.InstallRules, s.cluster.InstallKeep, s.register, s.makeSlices, s.identify} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if s.view, err = newView(ctx, s.cluster); err != nil {
		return err
	}
	s.foreign, err = startChild(ctx, foreignKind, s.folder, s.setup)
	return err
}

// tearDown ends everything.
func (s *stage) tearDown() error {
	var errs []error
	for _, c := range []*child{s.agents, s.foreign} {
		if c != nil {
			errs = append(errs, c.end())
		}
	}
	if s.view != nil {
		s.view.end()
	}
	if s.kubelets != nil {
		s.kubelets.end()
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

// configure writes the agents' configuration: the default but for a shorter time
// until a condition clears, without damping, so that one incident can follow
// another.
func (s *stage) configure(brakePercent int) error {
	text := fmt.Sprintf("apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\nfleetBrake:\n  percent: %d\n"+
		"memory:\n  debounce:\n    clearAfter: 20s\n    maxClearAfter: 20s\n", brakePercent)
	if err := os.WriteFile(s.config+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(s.config+".new", s.config)
}

func (s *stage) register(ctx context.Context) (err error) {
	measure.Say("%d nodes are registered", s.options.nodes)
	for i := range s.options.nodes {
		s.nodes = append(s.nodes, fmt.Sprintf("node-%05d.region-1.example.com", i))
	}
	s.kubelets, err = startKubelets(ctx, s.cluster, s.nodes)
	return err
}

// makeSlices makes the EndpointSlices of the agents, of the cluster's DNS and of
// the API server, of the size that the controllers give them.
func (s *stage) makeSlices(ctx context.Context) error {
	for first := 0; first < len(s.nodes); first += sliceSize {
		slice := newSlice(agentNamespace, "taintlet", "metrics", agentPort)
		for i := first; i < min(first+sliceSize, len(s.nodes)); i++ {
			addEndpoint(slice, s.nodes[i], i)
		}
		if _, err := s.cluster.Client().DiscoveryV1().EndpointSlices(agentNamespace).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	dns := newSlice(metav1.NamespaceSystem, "kube-dns", "dns-tcp", 53)
	addEndpoint(dns, s.nodes[0], 0)
	addEndpoint(dns, s.nodes[len(s.nodes)-1], len(s.nodes)-1)
	if _, err := s.cluster.Client().DiscoveryV1().EndpointSlices(metav1.NamespaceSystem).Create(ctx, dns, metav1.CreateOptions{}); err != nil {
		return err
	}
	own := newSlice(metav1.NamespaceDefault, "kubernetes", "https", 6443)
	own.Name, own.GenerateName = "kubernetes", ""
	addEndpoint(own, s.nodes[0], 1<<16)
	_, err := s.cluster.Client().DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(ctx, own, metav1.CreateOptions{})
	return err
}

func newSlice(namespace, service, port string, number int32) *discoveryv1.EndpointSlice {
	protocol := corev1.ProtocolTCP
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, GenerateName: service + "-",
			Labels: map[string]string{discoveryv1.LabelServiceName: service, "k8s-app": service, discoveryv1.LabelManagedBy: "hollow-fleet"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &port, Port: &number, Protocol: &protocol}},
	}
}

func addEndpoint(slice *discoveryv1.EndpointSlice, node string, number int) {
	ready, zone := true, zoneOf(number)
	slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
		Addresses: []string{addressOf(number + 1).String()}, NodeName: &node, Zone: &zone,
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: slice.Namespace, Name: fmt.Sprintf("%sabc%02d", slice.GenerateName, number%100), UID: "01234567-89ab-cdef-0123-456789abcdef"},
	})
}

// identify makes the tokens: one for each agent, bound to its Node, and that of the
// foreign client.
func (s *stage) identify(ctx context.Context) error {
	measure.Say("%d tokens are made", len(s.nodes))
	s.setup = &setup{Host: s.cluster.URL(), CA: s.cluster.Admin().CAData, Nodes: s.nodes, Tokens: map[string]string{}, Config: s.config}
	for _, name := range s.nodes {
		token, err := s.cluster.TokenOn(ctx, agentNamespace, "taintlet", name, cluster.LongToken)
		if err != nil {
			return err
		}
		s.setup.Tokens[name] = token
	}
	accounts := s.cluster.Client().CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: foreignObject}, Data: map[string]string{"of": "others"}}
	if _, err := s.cluster.Client().CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := s.cluster.Grant(ctx, "foreign", foreignUser, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
	if err != nil {
		return err
	}
	s.setup.Foreign, err = s.cluster.Token(ctx, metav1.NamespaceDefault, "foreign", nil, cluster.LongToken)
	return err
}

// report asks the agents' process what it did since its start.
func (s *stage) report() (r agentsReport, err error) {
	err = s.agents.tell(command{Op: "report"}, &r)
	return r, err
}

// level makes some Nodes' memory have that level.
func (s *stage) level(level string, first, count int) error {
	return s.agents.tell(command{Op: "level", Level: level, First: first, Count: count}, nil)
}
