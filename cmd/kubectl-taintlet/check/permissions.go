package check

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// permission is a verb on a resource, as a review has it.
type permission struct {
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource"`
	Sub       string `json:"subresource,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Verb      string `json:"verb"`
}

func (p permission) String() string {
	text := p.Verb + " " + p.Resource
	if p.Sub != "" {
		text += "/" + p.Sub
	}
	if p.Name != "" {
		text += " " + p.Name
	}
	if p.Namespace != "" {
		text += " in " + p.Namespace
	}
	return text
}

// needed is what the agents do: the rules of templates/rbac.yaml in the chart, with
// which a test compares it.
func needed(namespace, dns string) []permission {
	const admission, discovery, coordination = "admissionregistration.k8s.io", "discovery.k8s.io", "coordination.k8s.io"
	return []permission{
		{Resource: "nodes", Verb: "get"},
		{Resource: "nodes", Verb: "list"},
		{Resource: "nodes", Verb: "watch"},
		{Resource: "nodes", Verb: "patch"},
		{Resource: "nodes", Sub: "status", Verb: "patch"},
		{Group: admission, Resource: "mutatingadmissionpolicybindings", Name: "taintlet-keep", Verb: "get"},
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
		{Resource: "nodes", Sub: "proxy", Verb: "get"},
		{Resource: "serviceaccounts", Sub: "token", Verb: "create"},
	}
}

// review is a question to the authorizer, and its answer.
type review struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Spec       reviewSpec   `json:"spec"`
	Status     reviewStatus `json:"status,omitzero"`
}

type reviewSpec struct {
	User       string      `json:"user,omitempty"`
	Groups     []string    `json:"groups,omitempty"`
	Attributes *permission `json:"resourceAttributes"`
}

type reviewStatus struct {
	Allowed bool `json:"allowed"`
}

const authorization = "/apis/authorization.k8s.io/v1/"

// mayAgent asks whether the agents' account may do something.
func (s *scene) mayAgent(ctx context.Context, p permission) (bool, error) {
	question := review{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview", Spec: reviewSpec{s.user(), groupsOf(s.namespace), &p}}
	err := s.me.ask(ctx, authorization+"subjectaccessreviews", question, &question)
	return question.Status.Allowed, err
}

// mayI asks whether whoever runs the check may do something.
func (s *scene) mayI(ctx context.Context, p permission) (bool, error) {
	question := review{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview", Spec: reviewSpec{Attributes: &p}}
	err := s.me.ask(ctx, authorization+"selfsubjectaccessreviews", question, &question)
	return question.Status.Allowed, err
}

// sort divides permissions into those that are allowed and those that are not.
func sort(ctx context.Context, may func(context.Context, permission) (bool, error), all []permission) (allowed, refused []string, err error) {
	for _, p := range all {
		isAllowed, err := may(ctx, p)
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

func grantedCheck() check {
	return check{
		name:   "granted",
		remedy: "apply the manifest or upgrade the chart again: its roles and their bindings are incomplete",
		link:   "deploy/README.md#permissions",
		ask: func(ctx context.Context, s *scene) answer {
			allowed, refused, err := sort(ctx, s.mayAgent, needed(s.namespace, s.dnsPods(ctx).Namespace))
			switch {
			case apierrors.IsForbidden(err):
				return skip("whether the agents may do what they need: you may not create subjectaccessreviews")
			case err != nil:
				return fail("the permissions of the agents cannot be looked up: %v", err)
			case len(refused) > 0:
				return fail("the agents' account %s may not %s", s.user(), listed(refused))
			}
			return ok("the agents may do what they need: %d permissions", len(allowed))
		},
	}
}

func boundedCheck() check {
	return check{
		name:   "bounded",
		remedy: "find the role binding that grants this and remove it: taintlet needs none but its own",
		link:   "deploy/README.md#permissions",
		ask: func(ctx context.Context, s *scene) answer {
			allowed, _, err := sort(ctx, s.mayAgent, excessive())
			switch {
			case apierrors.IsForbidden(err):
				return skip("whether the agents may do more than they need: you may not create subjectaccessreviews")
			case err != nil:
				return fail("the permissions of the agents cannot be looked up: %v", err)
			case len(allowed) > 0:
				return warn("the agents' account may do more than it needs: %s", listed(allowed))
			}
			return ok("the agents may not read Secrets, nor create or delete pods and Nodes")
		},
	}
}

// tokenRequest asks for a token that is bound to a pod, as a kubelet does.
type tokenRequest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		ExpirationSeconds int `json:"expirationSeconds"`
		BoundObjectRef    struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Name       string `json:"name"`
			UID        string `json:"uid"`
		} `json:"boundObjectRef"`
	} `json:"spec"`
	Status struct {
		Token string `json:"token"`
	} `json:"status,omitzero"`
}

// tokenReview asks whose a token is.
type tokenReview struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Token string `json:"token"`
	} `json:"spec"`
	Status struct {
		Authenticated bool `json:"authenticated"`
		User          struct {
			Extra map[string][]string `json:"extra"`
		} `json:"user"`
	} `json:"status,omitzero"`
}

// tokenFor is how long the token lives that the check asks for, in seconds: the
// shortest that the API server grants.
const tokenFor = 600

func tokenCheck() check {
	return check{
		name:   "token",
		remedy: "the policies refuse every write of an agent whose token names no Node: see that the API server has the feature ServiceAccountTokenPodNodeInfo (on since 1.30)",
		link:   "deploy/README.md#permissions",
		ask: func(ctx context.Context, s *scene) answer {
			list, err := s.agentPods(ctx)
			if err != nil {
				return unread("the agents' pods", err)
			}
			for _, pod := range list {
				if pod.Spec.NodeName != "" {
					return s.tokenOf(ctx, pod.Metadata.Name, pod.Metadata.UID, pod.Spec.NodeName)
				}
			}
			return skip("whether tokens name their Node: no agent's pod is on a Node")
		},
	}
}

// tokenOf asks for a token of a pod and what the API server makes of it.
func (s *scene) tokenOf(ctx context.Context, pod, uid, node string) answer {
	request := tokenRequest{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"}
	request.Spec.ExpirationSeconds = tokenFor
	bound := &request.Spec.BoundObjectRef
	bound.APIVersion, bound.Kind, bound.Name, bound.UID = "v1", "Pod", pod, uid
	err := s.me.ask(ctx, "/api/v1/namespaces/"+s.namespace+"/serviceaccounts/"+account+"/token", request, &request)
	review := tokenReview{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}
	if err == nil {
		review.Spec.Token = request.Status.Token
		err = s.me.ask(ctx, "/apis/authentication.k8s.io/v1/tokenreviews", review, &review)
	}
	found := strings.Join(review.Status.User.Extra[nodeExtra], ",")
	switch {
	case apierrors.IsForbidden(err):
		return skip("whether tokens name their Node: you may not create serviceaccounts/token and tokenreviews")
	case err != nil:
		return fail("the token of pod %s cannot be looked at: %v", pod, err)
	case found != node:
		return fail("the token of pod %s on Node %s names the Node %q", pod, node, found)
	}
	return ok("tokens of the agents name their Node")
}
