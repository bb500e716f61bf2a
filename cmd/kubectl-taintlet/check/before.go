package check

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
)

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

func (s *scene) checkCreatable(ctx context.Context) answer {
	version, err := s.policyVersion(ctx, installation.MutatingPolicies)
	if err != nil {
		return fail("what you may create cannot be looked up: %v", err)
	}
	allowed, refused, err := sort(ctx, s.mayI, creatable(s.namespace, !version.Empty()))
	switch {
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
func (s *scene) checkGrantable(ctx context.Context) answer {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "taintlet-check-"}, Rules: grantable()}
	if _, err := s.me.RbacV1().ClusterRoles().Create(ctx, role, tryCreate(tellsWhoAsks)); err != nil {
		return fail("you may not grant the agents their permissions: %v", err)
	}
	return ok("you may grant the agents their permissions")
}

func (s *scene) checkNamespace(ctx context.Context) answer {
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
