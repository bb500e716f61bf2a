package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

const (
	controllerUser = "system:serviceaccount:kube-system:node-controller"
	foreignUser    = "system:serviceaccount:default:foreign"
	foreignObject  = "foreign"

	// sliceSize is how many endpoints an EndpointSlice has.
	sliceSize = 100
)

// stage is the cluster with everything on it.
type stage struct {
	options *options
	folder  string
	program string // kubectl-taintlet
	config  string // file of the agents
	cluster *cluster.Cluster
	nodes   []string
	setup   *setup

	view                      *view
	timers                    *timers
	kubelets, agents, foreign *child
	slices                    *sliceController
	brake                     int       // percent, as it is configured
	configured                time.Time // when the last agent got it
}

// setUp makes the cluster with its Nodes, alive, and taintlet's permissions and
// policies as they are shipped. No agent runs yet.
func setUp(ctx context.Context, o *options) (*stage, error) {
	s := &stage{options: o, timers: newTimers()}
	return s, s.prepare(ctx)
}

func (s *stage) prepare(ctx context.Context) (err error) {
	if s.folder, err = os.MkdirTemp("", "taintlet-scale-"); err != nil {
		return err
	}
	if s.program, err = process.BuildPlugin(ctx, s.folder, process.BuildOptions{Release: true}); err != nil {
		return err
	}
	s.config = filepath.Join(s.folder, "config.yaml")
	if err := s.configure(s.options.firstBrake()); err != nil {
		return err
	}
	measure.Say("the control plane starts")
	// Those whose requests are counted.
	counted := []string{bed.User, controllerUser}
	if s.cluster, err = cluster.Start(ctx, cluster.Options{AuditLog: true, AuditOnly: counted, Progress: os.Stderr}); err != nil {
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
	for _, c := range []*child{s.agents, s.foreign, s.kubelets} {
		if c != nil {
			errs = append(errs, c.end())
		}
	}
	if s.view != nil {
		s.view.end()
	}
	if s.slices != nil {
		s.slices.end()
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
	s.brake = brakePercent
	return os.Rename(s.config+".new", s.config)
}

func (s *stage) register(ctx context.Context) (err error) {
	measure.Say("%d nodes are registered", s.options.nodes)
	for i := range s.options.nodes {
		s.nodes = append(s.nodes, fmt.Sprintf("node-%05d.region-1.example.com", i))
	}
	s.setup = &setup{Host: s.cluster.URL(), CA: s.cluster.Admin().CAData, Nodes: s.nodes, Tokens: map[string]string{}, Config: s.config}
	own := *s.setup
	own.Admin, own.Kubelets = s.cluster.Admin().BearerToken, map[string]certificate{}
	for _, name := range s.nodes {
		c, err := s.cluster.Config("system:node:"+name, "system:nodes")
		if err != nil {
			return err
		}
		own.Kubelets[name] = certificate{c.CertData, c.KeyData}
	}
	if s.kubelets, err = startChild(ctx, kubeletsKind, s.folder, &own); err != nil {
		return err
	}
	return s.kubelets.tell(command{Op: "start"}, nil)
}

// makeSlices makes the EndpointSlices of the agents, of the cluster's DNS and of
// the API server, of the size that the controllers give them. Neighbouring Nodes are in
// different slices, as pods come in no order of their Nodes.
func (s *stage) makeSlices(ctx context.Context) (err error) {
	agents := make([]*discoveryv1.EndpointSlice, (len(s.nodes)+sliceSize-1)/sliceSize)
	for i := range agents {
		agents[i] = bed.NewSlice(bed.Namespace, fmt.Sprintf("taintlet-%05d", i), "taintlet", "metrics", bed.AgentPort)
	}
	for i, node := range s.nodes {
		addEndpoint(agents[i%len(agents)], node, i)
	}
	if s.slices, err = startSliceController(ctx, s.cluster, agents); err != nil {
		return err
	}
	dns := bed.NewSlice(metav1.NamespaceSystem, "kube-dns-00000", "kube-dns", "dns-tcp", 53)
	addEndpoint(dns, s.nodes[0], 0)
	addEndpoint(dns, s.nodes[len(s.nodes)-1], len(s.nodes)-1)
	own := bed.NewSlice(metav1.NamespaceDefault, "kubernetes", "kubernetes", "https", 6443)
	addEndpoint(own, s.nodes[0], 1<<16)
	return bed.CreateSlices(ctx, s.cluster, dns, own)
}

// addEndpoint adds the endpoint of a pod on a Node, as large as the controller makes it.
func addEndpoint(slice *discoveryv1.EndpointSlice, node string, number int) {
	zone, serving := zoneOf(number), true
	e := bed.AddEndpoint(slice, node, addressOf(number+1).String())
	e.Zone, e.Conditions.Serving = &zone, &serving
	e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: slice.Namespace, Name: fmt.Sprintf("%s-abc%02d", slice.Labels[discoveryv1.LabelServiceName], number%100), UID: "01234567-89ab-cdef-0123-456789abcdef"}
}

// identify makes the tokens: one for each agent, bound to its Node, and that of the
// foreign client.
func (s *stage) identify(ctx context.Context) error {
	measure.Say("%d tokens are made", len(s.nodes))
	for _, name := range s.nodes {
		token, err := s.cluster.TokenOn(ctx, bed.Namespace, bed.Account, name, cluster.LongToken)
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

// late says how late the timers of this program's processes were within some time.
func (s *stage) late(from, to time.Time) (map[string]latency, error) {
	all := map[string]latency{harnessName: s.timers.late(from, to)}
	for name, c := range s.children() {
		var l latency
		if err := c.tell(command{Op: lateness, From: from, To: to}, &l); err != nil {
			return nil, err
		}
		all[name] = l
	}
	return all, nil
}

// children are the child processes that run, by their names in a cost.
func (s *stage) children() map[string]*child {
	all := map[string]*child{kubeletsName: s.kubelets, agentsName: s.agents, foreignName: s.foreign}
	maps.DeleteFunc(all, func(_ string, c *child) bool { return c == nil })
	return all
}
