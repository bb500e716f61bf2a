package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// LongToken is how long a token is valid for programs that ask for one once: longer
// than any of them runs.
const LongToken = 24 * time.Hour

// InstallShipped applies deploy/taintlet.yaml.
func (c *Cluster) InstallShipped(ctx context.Context) error {
	objects, err := Shipped()
	if err != nil {
		return err
	}
	return c.apply(ctx, shippedFile, objects)
}

// InstallRules applies deploy/taintlet.yaml but for what would run agents: account,
// permissions and policies as they are shipped.
func (c *Cluster) InstallRules(ctx context.Context) error {
	objects, err := Shipped()
	if err != nil {
		return err
	}
	return c.InstallRulesOf(ctx, objects)
}

// InstallRulesOf applies the objects of a manifest of taintlet, but for what would
// run agents.
func (c *Cluster) InstallRulesOf(ctx context.Context, objects []*unstructured.Unstructured) error {
	objects = slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool {
		return slices.Contains([]string{"DaemonSet", "Service"}, object.GetKind())
	})
	return c.apply(ctx, shippedFile, objects)
}

// GrantAsAgent lets a user do what deploy/taintlet.yaml lets agents do, and where. The
// policies know agents by their account.
func (c *Cluster) GrantAsAgent(ctx context.Context, user string) error {
	objects, err := Shipped()
	if err != nil {
		return err
	}
	return c.GrantRolesOf(ctx, user, objects)
}

// GrantRolesOf lets a user do what the roles of a manifest grant, and where: it applies
// them with each of their bindings, with the user in place of the account. The API server
// hears of all by a watch of its own, a moment later.
func (c *Cluster) GrantRolesOf(ctx context.Context, user string, objects []*unstructured.Unstructured) error {
	objects = slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool {
		return !slices.Contains([]string{"Namespace", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}, object.GetKind())
	})
	for _, object := range objects {
		if _, isBinding := object.Object["subjects"]; isBinding {
			object.SetName(object.GetName() + "-" + user)
			object.Object["subjects"] = []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": user}}
		}
	}
	return c.apply(ctx, shippedFile, objects)
}

// shippedFile is the manifest for kubectl, seen from the root of the repository.
const shippedFile = "deploy/taintlet.yaml"

// Shipped returns the objects of deploy/taintlet.yaml.
func Shipped() ([]*unstructured.Unstructured, error) {
	module, err := findModule()
	if err != nil {
		return nil, err
	}
	return ReadManifest(filepath.Join(module, "..", "..", shippedFile))
}

// Token asks for a token of a service account, as a kubelet does. It is bound to
// the object, or to none, and valid for that long; 0: as long as the API server
// likes.
func (c *Cluster) Token(ctx context.Context, namespace, account string, boundTo *authenticationv1.BoundObjectReference, valid time.Duration) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: boundTo}}
	if valid > 0 {
		request.Spec.ExpirationSeconds = new(int64(valid.Seconds()))
	}
	answer, err := c.admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of %s/%s: %w", namespace, account, err)
	}
	return answer.Status.Token, nil
}

// TokenOn asks for a token that says on which Node its bearer is.
func (c *Cluster) TokenOn(ctx context.Context, namespace, account, node string, valid time.Duration) (string, error) {
	object, err := c.admin.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return c.Token(ctx, namespace, account, &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: object.UID}, valid)
}
