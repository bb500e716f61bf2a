package cluster

import (
	"context"
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BreakKeep makes a slip of the pen in the policy of deploy/keep.yaml that the API server
// accepts: an expression asks for an annotation that no Node has. It returns when the policy
// keeps nothing any more. InstallKeep mends it.
func (c *Cluster) BreakKeep(ctx context.Context) error {
	policies := c.admin.AdmissionregistrationV1().MutatingAdmissionPolicies()
	policy, err := policies.Get(ctx, keepPolicy, metav1.GetOptions{})
	if err != nil {
		return err
	}
	const asked, slip = "annotations['taintlet.dev/held'].split", "annotations['taintlet.dev/hold'].split"
	isBroken := false
	for i := range policy.Spec.Variables {
		v := &policy.Spec.Variables[i]
		isBroken = isBroken || strings.Contains(v.Expression, asked)
		v.Expression = strings.ReplaceAll(v.Expression, asked, slip)
	}
	if !isBroken {
		return errors.New("break keep.yaml: no variable has " + asked)
	}
	if _, err := policies.Update(ctx, policy, metav1.UpdateOptions{FieldManager: "taintlet-test"}); err != nil {
		return err
	}
	return c.WaitKeep(ctx, false)
}
