package check

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
		list = append(list, permission{Group: policies, Resource: "mutatingadmissionpolicies"}, permission{Group: policies, Resource: "mutatingadmissionpolicybindings"})
	}
	for i := range list {
		list[i].Verb = "create"
	}
	return list
}

func creatableCheck() check {
	return check{
		name: "creatable", link: "deploy/README.md#install",
		remedy: "install as an administrator of the cluster",
		ask: func(ctx context.Context, s *scene) answer {
			keeps, err := s.served(ctx, "mutatingadmissionpolicies")
			if err != nil {
				return fail("what you may create cannot be looked up: %v", err)
			}
			allowed, refused, err := sort(ctx, s.mayI, creatable(s.namespace, keeps))
			switch {
			case err != nil:
				return fail("what you may create cannot be looked up: %v", err)
			case len(refused) > 0:
				return fail("you may not %s", listed(refused))
			}
			return ok("you may create what the chart creates: %d kinds and places", len(allowed))
		},
	}
}

// rule is one of a role.
type rule struct {
	Groups    []string `json:"apiGroups"`
	Resources []string `json:"resources"`
	Names     []string `json:"resourceNames,omitempty"`
	Verbs     []string `json:"verbs"`
}

// grantable is what whoever installs has to be able to grant: what the agents do, what
// evict.slots of the chart adds, and what the Job after an uninstallation does. It is for the whole cluster, since a role cannot
// be tried in a namespace that is not there yet.
func grantable() []rule {
	var rules []rule
	for _, p := range append(needed("", ""), permission{Group: "coordination.k8s.io", Resource: "leases", Verb: "update"}, permission{Resource: "pods", Verb: "list"}) {
		r := rule{Groups: []string{p.Group}, Resources: []string{p.Resource}, Verbs: []string{p.Verb}}
		if p.Sub != "" {
			r.Resources[0] += "/" + p.Sub
		}
		if p.Name != "" {
			r.Names = []string{p.Name}
		}
		rules = append(rules, r)
	}
	return rules
}

// grantableCheck tries to create a role like the agents': whoever may create roles may
// still not grant what they may not do themselves.
func grantableCheck() check {
	return check{
		name: "grantable", link: "deploy/README.md#permissions",
		remedy: "install as an administrator of the cluster: whoever creates a role must have its permissions, or the verb escalate",
		ask: func(ctx context.Context, s *scene) answer {
			err := s.me.tryCreate(ctx, "/apis/rbac.authorization.k8s.io/v1/clusterroles", map[string]any{
				"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
				"metadata": map[string]string{"generateName": "taintlet-check-"}, "rules": grantable(),
			})
			if err != nil {
				return fail("you may not grant the agents their permissions: %v", err)
			}
			return ok("you may grant the agents their permissions")
		},
	}
}

func namespaceCheck() check {
	return check{
		name: "namespace", link: "deploy/README.md#install",
		remedy: "label the namespace pod-security.kubernetes.io/enforce=privileged: no other level allows hostNetwork and hostPID",
		ask: func(ctx context.Context, s *scene) answer {
			var namespace struct {
				Metadata struct{ DeletionTimestamp string }
			}
			found, err := s.me.find(ctx, "/api/v1/namespaces/"+s.namespace, &namespace)
			switch {
			case err != nil:
				return unread("the namespace "+s.namespace, err)
			case !found:
				return ok("the namespace %s is not there yet: create it as the documentation says", s.namespace)
			case namespace.Metadata.DeletionTimestamp != "":
				return fail("the namespace %s is being deleted", s.namespace).but("wait until it is gone; what a finalizer holds back keeps it")
			}
			err = s.me.tryCreate(ctx, "/api/v1/namespaces/"+s.namespace+"/pods", podLikeOurs(s.namespace, s.port))
			switch {
			case apierrors.IsForbidden(err):
				return fail("the namespace %s refuses the agents' pods: %v", s.namespace, err)
			case err != nil:
				return fail("whether the namespace %s takes the agents' pods cannot be tried: %v", s.namespace, err)
			}
			return ok("the namespace %s takes pods with hostNetwork and hostPID", s.namespace)
		},
	}
}

// podLikeOurs is a pod that is allowed where the agents' are.
func podLikeOurs(namespace string, port int) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]string{"generateName": "taintlet-check-", "namespace": namespace},
		"spec": map[string]any{
			"hostNetwork": true, "hostPID": true, "automountServiceAccountToken": false,
			"securityContext": map[string]any{"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": map[string]string{"type": "RuntimeDefault"}},
			"containers": []map[string]any{{
				"name": "check", "image": fmt.Sprintf("%s/%s", account, account),
				"ports":           []map[string]any{{"containerPort": port, "hostPort": port}},
				"securityContext": map[string]any{"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []string{"ALL"}}},
			}},
		},
	}
}
