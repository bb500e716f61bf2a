package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
)

// oldest is the oldest minor version of Kubernetes that taintlet works with.
const oldest = 30

func (s *scene) checkVersion(_ context.Context) Line {
	if s.versionErr != nil {
		return fail("the API server does not say its version: %v", s.versionErr)
	}
	if minor := minorOf(s.version); minor < oldest {
		return fail("Kubernetes is %s, older than 1.%d", s.version.GitVersion, oldest)
	}
	return ok("Kubernetes is %s, 1.%d or later", s.version.GitVersion, oldest)
}

func (s *scene) checkNodes(context.Context) Line {
	switch {
	case errors.Is(s.readErr, errNoNodes):
		return fail("%v", s.readErr).but("add a Node first: most of what follows is tried on one")
	case s.readErr != nil:
		return fail("the Nodes cannot be listed: %v", s.readErr)
	}
	return ok("the Nodes can be listed: %d", len(s.names))
}

// creatable is what the chart creates with its default values, and what deploy/
// taintlet.yaml and deploy/keep.yaml do. A test compares it with the chart.
func creatable(namespace string, keeps bool) []permission {
	const rbac, policies, flow = "rbac.authorization.k8s.io", "admissionregistration.k8s.io", "flowcontrol.apiserver.k8s.io"
	list := []permission{
		{Resource: "namespaces"},
		{Resource: "serviceaccounts", Namespace: namespace},
		{Resource: "configmaps", Namespace: namespace},
		{Resource: "services", Namespace: namespace},
		{Resource: "resourcequotas", Namespace: namespace},
		{Group: "apps", Resource: "daemonsets", Namespace: namespace},
		{Group: "batch", Resource: "jobs", Namespace: namespace},
		{Group: rbac, Resource: "clusterroles"},
		{Group: rbac, Resource: "clusterrolebindings"},
		{Group: policies, Resource: "validatingadmissionpolicies"},
		{Group: policies, Resource: "validatingadmissionpolicybindings"},
		{Group: flow, Resource: "flowschemas"},
		{Group: flow, Resource: "prioritylevelconfigurations"},
	}
	for _, in := range []string{namespace, "default", "kube-system", "kube-node-lease"} {
		list = append(list, permission{Group: rbac, Resource: "roles", Namespace: in}, permission{Group: rbac, Resource: "rolebindings", Namespace: in})
	}
	if keeps {
		list = append(list, permission{Group: policies, Resource: installation.MutatingPolicies}, permission{Group: policies, Resource: installation.MutatingBindings})
	}
	for i := range list {
		list[i].Verb = "create"
	}
	return list
}

func (s *scene) checkCreatable(ctx context.Context) Line {
	_, keeps := s.served[installation.MutatingPolicies]
	allowed, refused, err := sort(ctx, s.mayI, creatable(s.namespace, keeps))
	switch err := errors.Join(s.servedErr, err); {
	case err != nil:
		return fail("what you may create cannot be looked up: %v", err)
	case len(refused) > 0:
		return fail("you may not %s", terminal.Listed(refused))
	}
	return ok("you may create what the chart creates: %d kinds and places", len(allowed))
}

// onCall is what the chart's role for people on call grants, beyond what agents do.
func onCall() (list []permission) {
	const admission = "admissionregistration.k8s.io"
	for _, p := range []permission{
		{Resource: "pods"}, {Resource: "events"}, {Group: "apps", Resource: "daemonsets"}, {Group: "coordination.k8s.io", Resource: "leases"},
		{Group: admission, Resource: "validatingadmissionpolicies"}, {Group: admission, Resource: "validatingadmissionpolicybindings"},
		{Group: admission, Resource: installation.MutatingPolicies}, {Group: admission, Resource: installation.MutatingBindings},
	} {
		p.Verb = "list"
		list = append(list, p)
	}
	return append(list, permission{Resource: "configmaps", Verb: "get"})
}

// grantable is what whoever installs has to be able to grant: what the agents do, what
// evict.slots of the chart adds, what people on call read, and what the Job after an
// uninstallation does. It is for the whole cluster, since a role cannot
// be tried in a namespace that is not there yet.
func grantable() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, p := range slices.Concat(needed("", ""), []permission{{Group: "coordination.k8s.io", Resource: "leases", Verb: "update"}}, onCall()) {
		r := rbacv1.PolicyRule{APIGroups: []string{p.Group}, Resources: []string{p.Resource}, Verbs: []string{p.Verb}}
		if p.Subresource != "" {
			r.Resources[0] += "/" + p.Subresource
		}
		if p.Name != "" {
			r.ResourceNames = []string{p.Name}
		}
		rules = append(rules, r)
	}
	return rules
}

// checkGrantable tries to create a role like the agents': whoever may create roles may
// still not grant what they may not do themselves.
func (s *scene) checkGrantable(ctx context.Context) Line {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "taintlet-check-"}, Rules: grantable()}
	if _, err := s.me.RbacV1().ClusterRoles().Create(ctx, role, tryCreate(tellsWhoAsks)); err != nil {
		return fail("you may not grant the agents their permissions: %v", err)
	}
	return ok("you may grant the agents their permissions")
}

func (s *scene) checkNamespace(ctx context.Context) Line {
	namespace, err := s.me.CoreV1().Namespaces().Get(ctx, s.namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return ok("the namespace %s is not there yet: create it as the documentation says", s.namespace)
	case err != nil:
		return unread("the namespace "+s.namespace, err)
	case namespace.DeletionTimestamp != nil:
		return fail("the namespace %s is being deleted", s.namespace).but("wait until it is gone; what a finalizer holds back keeps it")
	}
	_, err = s.me.CoreV1().Pods(s.namespace).Create(ctx, podLikeOurs(s.port), tryCreate(tellsWhoAsks))
	switch {
	case apierrors.IsForbidden(err):
		return fail("the namespace %s refuses the agents' pods: %v", s.namespace, err)
	case err != nil:
		return fail("whether the namespace %s takes the agents' pods cannot be tried: %v", s.namespace, err)
	}
	return ok("the namespace %s takes pods with hostNetwork and hostPID", s.namespace)
}

// podLikeOurs is a pod that is allowed where the agents' are.
func podLikeOurs(port int) *corev1.Pod {
	const nobody = 65532
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "taintlet-check-"},
		Spec: corev1.PodSpec{
			HostNetwork: true, HostPID: true, AutomountServiceAccountToken: new(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(nobody)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "check", Image: account + "/" + account,
				Ports:           []corev1.ContainerPort{{ContainerPort: int32(port), HostPort: int32(port)}}, //nolint:gosec // 1 to 65535
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
}

// declares says that the pod takes the TCP port of its host. The scheduler goes by
// the same: it counts neither other protocols nor init containers that end (HostPorts
// in k8s.io/component-helpers/scheduling).
func declares(p *corev1.Pod, port int) bool {
	containers := slices.Clone(p.Spec.Containers)
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	for _, c := range containers {
		for _, declared := range c.Ports {
			isOnHost := int(declared.HostPort) == port || p.Spec.HostNetwork && int(declared.ContainerPort) == port
			if isOnHost && (declared.Protocol == "" || declared.Protocol == corev1.ProtocolTCP) {
				return true
			}
		}
	}
	return false
}

// isAgent says that the pod is one of ours.
func isAgent(p *corev1.Pod, namespace string) bool {
	key, value, _ := strings.Cut(installation.Label, "=")
	return p.Namespace == namespace && p.Labels[key] == value
}

// nameOf is the pod's with its Node's.
func nameOf(p *corev1.Pod) string {
	name := p.Namespace + "/" + p.Name
	if p.Spec.NodeName == "" {
		return name + " (on no Node yet)"
	}
	return fmt.Sprintf("%s (%s)", name, p.Spec.NodeName)
}

// checkPort finds pods that take the agents' port of their host. There the agents stay
// Pending, or keep such a pod from being scheduled. A program that listens without
// being declared is not found: no API knows of it.
func (s *scene) checkPort(ctx context.Context) Line {
	taken, err := s.podsWithPort(ctx)
	switch {
	case err != nil:
		return skip("whether port %d of the hosts is free: the pods cannot be listed: %v", s.port, err)
	case len(taken) > 0:
		return fail("pods declare port %d of their hosts: %s", s.port, terminal.Listed(taken))
	}
	return ok("no pod declares port %d of its host", s.port)
}

// podsWithPort returns the pods that take the port of their host, without the agents'.
func (s *scene) podsWithPort(ctx context.Context) (taken []string, err error) {
	options := metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"}
	err = installation.Each(ctx, s.me.CoreV1().Pods(metav1.NamespaceAll).List, options, func(pod *corev1.Pod) {
		if declares(pod, s.port) && !isAgent(pod, s.namespace) {
			taken = append(taken, nameOf(pod))
		}
	})
	slices.Sort(taken)
	return taken, err
}
