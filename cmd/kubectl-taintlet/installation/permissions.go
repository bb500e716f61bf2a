package installation

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// User is what a service account is to the API server: a user with groups.
func User(namespace, account string) rest.ImpersonationConfig {
	return rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
}

// Permission is a verb on a resource.
type Permission authorizationv1.ResourceAttributes

func (p Permission) String() string {
	text := p.Verb + " " + p.Resource
	if p.Subresource != "" {
		text += "/" + p.Subresource
	}
	if p.Name != "" {
		text += " " + p.Name
	}
	if p.Namespace != "" {
		text += " in " + p.Namespace
	}
	return text
}

// MayAgents asks whether the agents of a namespace are allowed to do something.
func (c *Client) MayAgents(ctx context.Context, namespace string, p Permission) (bool, error) {
	agents := User(namespace, Account)
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: agents.UserName, Groups: agents.Groups, ResourceAttributes: (*authorizationv1.ResourceAttributes)(&p),
	}}
	answer, err := c.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	return err == nil && answer.Status.Allowed, err
}
