package cluster

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Grant lets a user do what the rules say, by a ClusterRole and its binding of
// that name. The API server hears of both by a watch of its own, a moment later.
func (c *Cluster) Grant(ctx context.Context, name, user string, rules ...rbacv1.PolicyRule) error {
	roles, meta := c.admin.RbacV1(), metav1.ObjectMeta{Name: name}
	if _, err := roles.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("grant %s its rights: %w", user, err)
	}
	_, err := roles.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("grant %s its rights: %w", user, err)
	}
	return nil
}
