package check

import (
	"context"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/taints"
)

// permission is a verb on a resource, as a review has it.
type permission = installation.Permission

// needed is what the agents do: the rules of templates/rbac.yaml in the chart, with
// which a test compares it.
func needed(namespace, dns string) []permission {
	const admission, discovery, coordination = "admissionregistration.k8s.io", "discovery.k8s.io", "coordination.k8s.io"
	return []permission{
		{Resource: "nodes", Verb: "get"},
		{Resource: "nodes", Verb: "list"},
		{Resource: "nodes", Verb: "watch"},
		{Resource: "nodes", Verb: "patch"},
		{Resource: "nodes", Subresource: "status", Verb: "patch"},
		{Group: admission, Resource: "mutatingadmissionpolicybindings", Name: taints.KeepPolicyName, Verb: "get"},
		{Group: admission, Resource: "mutatingadmissionpolicies", Name: taints.KeepPolicyName, Verb: "get"},
		{Resource: "events", Namespace: "default", Verb: "create"},
		{Group: discovery, Resource: "endpointslices", Namespace: "default", Name: "kubernetes", Verb: "get"},
		{Group: discovery, Resource: "endpointslices", Namespace: namespace, Verb: "list"},
		{Group: discovery, Resource: "endpointslices", Namespace: namespace, Verb: "get"},
		{Group: discovery, Resource: "endpointslices", Namespace: dns, Verb: "list"},
		{Group: discovery, Resource: "endpointslices", Namespace: dns, Verb: "get"},
		{Group: coordination, Resource: "leases", Namespace: "kube-node-lease", Verb: "get"},
	}
}

// excessive is what an agent's stolen token must not allow.
func excessive() []permission {
	return []permission{
		{Resource: "secrets", Verb: "get"},
		{Resource: "secrets", Verb: "list"},
		{Resource: "pods", Verb: "create"},
		{Resource: "pods", Verb: "delete"},
		{Resource: "nodes", Verb: "create"},
		{Resource: "nodes", Verb: "delete"},
		{Resource: "nodes", Subresource: "proxy", Verb: "get"},
		{Resource: "serviceaccounts", Subresource: "token", Verb: "create"},
	}
}

// reviewed returns which permissions the agents have, and which they lack.
func (s *scene) reviewed(ctx context.Context, all []permission) (allowed, refused []string, err error) {
	for _, p := range all {
		isAllowed, err := s.me.MayAgents(ctx, s.namespace, p)
		switch {
		case err != nil:
			return nil, nil, err
		case isAllowed:
			allowed = append(allowed, p.String())
		default:
			refused = append(refused, p.String())
		}
	}
	return allowed, refused, nil
}

func (s *scene) checkGranted(ctx context.Context) (Line, error) {
	allowed, refused, err := s.reviewed(ctx, needed(s.namespace, s.dnsPods().Namespace))
	if len(refused) > 0 {
		return fail("the agents' account %s may not %s", s.user().UserName, terminal.Listed(refused)), nil
	}
	return ok("the agents may do what they need: %d permissions", len(allowed)), err
}

func (s *scene) checkBounded(ctx context.Context) (Line, error) {
	allowed, _, err := s.reviewed(ctx, excessive())
	if len(allowed) > 0 {
		return warn("the agents' account may do more than it needs: %s", terminal.Listed(allowed)), nil
	}
	return ok("the agents may not read Secrets, nor create or delete pods and Nodes"), err
}

// tokenFor is in seconds the shortest life of a token that the API server grants.
const tokenFor = 600

func (s *scene) checkToken(ctx context.Context) (Line, error) {
	for _, pod := range s.installation.Pods {
		if pod.Spec.NodeName != "" {
			return s.tokenOf(ctx, pod)
		}
	}
	return Line{}, untold("no agent's pod is on a Node")
}

// tokenOf asks for a token that is bound to a pod, as a kubelet does, and what the API
// server makes of it.
func (s *scene) tokenOf(ctx context.Context, pod *corev1.Pod) (Line, error) {
	request, err := s.me.CoreV1().ServiceAccounts(s.namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(tokenFor)),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}, metav1.CreateOptions{})
	review := &authenticationv1.TokenReview{}
	if err == nil {
		review.Spec.Token = request.Status.Token
		review, err = s.me.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
	}
	if err != nil {
		return Line{}, err
	}
	found := strings.Join(review.Status.User.Extra[nodeExtra], ",")
	if node := pod.Spec.NodeName; found != node {
		return fail("the token of pod %s on Node %s names the Node %q", pod.Name, node, found), nil
	}
	return ok("tokens of the agents name their Node"), nil
}
