package installation

import (
	"context"
	"errors"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/agent/fleet/dnspods"
	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/deploy"
)

// Permission is a verb on a resource.
type Permission authorizationv1.ResourceAttributes

func (p Permission) String() string {
	text := terminal.With(p.Verb+" "+p.Resource, "/", p.Subresource)
	return terminal.With(terminal.With(text, " ", p.Name), " in ", p.Namespace)
}

// Review asks which permissions the agents of a namespace have, and which they lack.
func (c *Client) Review(ctx context.Context, namespace string, all []Permission) (allowed, refused []string, err error) {
	agents := User(namespace, Account)
	for _, p := range all {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: agents.UserName, Groups: agents.Groups, ResourceAttributes: (*authorizationv1.ResourceAttributes)(&p),
		}}
		answer, err := c.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		switch {
		case err != nil:
			return nil, nil, err
		case answer.Status.Allowed:
			allowed = append(allowed, p.String())
		default:
			refused = append(refused, p.String())
		}
	}
	return allowed, refused, nil
}

// Manifests are the objects of deploy/taintlet.yaml and deploy/keep.yaml, as they would be in a
// namespace.
func Manifests(namespace string) (all []*unstructured.Unstructured, err error) {
	text := strings.ReplaceAll(deploy.Taintlet+"\n---\n"+deploy.Keep, command.DefaultNamespace, namespace)
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), object); err != nil {
			return nil, err
		}
		all = append(all, object)
	}
	return all, nil
}

// needed is what the roles of the manifest let the agents do. dns is the namespace of the
// cluster's DNS, which the chart can change.
func needed(namespace, dns string) (all []Permission, err error) {
	objects, err := Manifests(namespace)
	for _, object := range objects {
		role := &rbacv1.ClusterRole{} // a Role has the same rules
		if !strings.HasSuffix(object.GetKind(), "Role") || object.GetName() == "taintlet-oncall" {
			continue
		}
		err = errors.Join(err, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role))
		if role.Namespace == metav1.NamespaceSystem {
			role.Namespace = dns
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					p := Permission{Group: rule.APIGroups[0], Namespace: role.Namespace, Verb: verb, Name: append(rule.ResourceNames, "")[0]}
					p.Resource, p.Subresource, _ = strings.Cut(resource, "/")
					all = append(all, p)
				}
			}
		}
	}
	return all, err
}

// readPermissions reads which permissions the agents' account lacks, of those that the manifests
// grant. It asks for each of them, so of a namespace that has them all it does not ask again.
func (c *Client) readPermissions(ctx context.Context, i *Installation) error {
	if c.granted == i.Namespace {
		return nil
	}
	all, err := needed(i.Namespace, i.DNSPods().Namespace)
	if err == nil {
		_, i.MayNot, err = c.Review(ctx, i.Namespace, all)
	}
	if err == nil && len(i.MayNot) == 0 {
		c.granted = i.Namespace
	}
	return err
}

// DNSPods is where the agents look for the pods of the cluster's DNS. A DaemonSet that
// cannot be read is taken for the chart's.
func (i *Installation) DNSPods() dnspods.Where {
	for _, d := range i.DaemonSets {
		for _, arg := range Agent(&d.Spec.Template.Spec).Args {
			text, isSet := strings.CutPrefix(arg, "--dns-pods=")
			if found, err := dnspods.Parse(text); isSet && err == nil {
				return found
			}
		}
	}
	return dnspods.Default()
}
