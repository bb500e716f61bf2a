package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// excessive is what an agent's stolen token must not allow.
func excessive() []installation.Permission {
	return []installation.Permission{
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

func (s *scene) exceeding(ctx context.Context) (allowed []string, err error) {
	allowed, _, err = s.me.Review(ctx, s.Namespace, excessive())
	return allowed, err
}

const (
	policyLink   = "deploy/README.md#permissions"
	policyRemedy = "apply the manifest or upgrade the chart again: without its policies a stolen token can change every Node"
	keepLink     = "docs/living-with-kubernetes.md#who-owns-a-taint"
)

// checkRefused tries, as an agent, a write that each of the policies has to refuse.
func (s *scene) checkRefused(ctx context.Context) (Line, error) {
	name := s.names[0]
	agent, err := s.as(s.Namespace, account, name)
	if err != nil {
		return Line{}, err
	}
	var wrong, refused []string
	for _, try := range []struct {
		policy, what string
		do           func() error
	}{
		{"taintlet-nodes", "an agent's write of another program's annotation", func() error {
			_, err := tryPatch(ctx, agent, account, name, map[string]any{"metadata": map[string]any{"annotations": map[string]string{"example.com/taintlet-check": "1"}}})
			return err
		}},
		{"taintlet-events", "an agent's Event about another Node", func() error {
			event := &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Name: "taintlet-check", Namespace: metav1.NamespaceDefault},
				InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: name + "-other"},
			}
			_, err := agent.CoreV1().Events(metav1.NamespaceDefault).Create(ctx, event, tryCreate(account))
			return err
		}},
		{"taintlet-leases", "an agent's claim of a slot for another Node", func() error {
			lease, err := s.me.CoordinationV1().Leases(s.Namespace).Get(ctx, apiserver.SlotPrefix+"0", metav1.GetOptions{})
			if err == nil {
				lease.Spec.HolderIdentity = new(name + "-other")
				_, err = agent.CoordinationV1().Leases(s.Namespace).Update(ctx, lease, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: account})
			}
			return err
		}},
	} {
		switch err := try.do(); {
		case mayNotImpersonate(err):
			return Line{}, err
		case err == nil:
			wrong = append(wrong, fmt.Sprintf("the policy %s is not in force: %s is accepted", try.policy, try.what))
		case denied(err, try.policy):
			refused = append(refused, try.what)
		case !apierrors.IsNotFound(err): // without slots no Node evicts
			wrong = append(wrong, fmt.Sprintf("the policy %s is not in force: %s is refused by something else: %v", try.policy, try.what, err))
		}
	}
	if len(wrong) > 0 {
		return line(Failed, "%s", strings.Join(wrong, "; ")), nil
	}
	return line(OK, "the policies are in force: they refuse %s", strings.Join(refused, ", ")), nil
}

// checkKeep tries the policy that keeps taints before a Node has one, with a write in the name of the
// node-lifecycle-controller. Without the permission for that, it reports what the agents have noticed.
func (s *scene) checkKeep(ctx context.Context) (Line, error) {
	switch {
	case s.fleet.Installation.Served[installation.MutatingPolicies].Empty():
		return line(OK, "stand-ins are used: this API server does not serve MutatingAdmissionPolicy, which deploy/keep.yaml needs"), nil
	case !s.fleet.Installation.HasKeep():
		return line(Warning, "deploy/keep.yaml is not installed").but("apply deploy/keep.yaml, or upgrade the chart; without it, stand-ins replace the well-known taints"), nil
	}
	noticed := slices.IndexFunc(s.report.Findings, func(p status.Finding) bool { return p.Code == status.KeepPolicyFails })
	keeps, err := s.keeps(ctx, s.untainted)
	switch {
	case err == nil && !keeps:
		return line(Failed, "the policy %s fails: it lets the node-lifecycle-controller remove %s, as a dry run on Node %s shows; stand-ins are used until it works", taints.KeepPolicyName, keptPair(), s.untainted), nil
	case noticed >= 0 && err == nil:
		return line(Warning, "the policy %s works now, and agents do not use it yet: %s", taints.KeepPolicyName, s.report.Findings[noticed].Text).
			but("wait: an agent looks for changes to the policy every 5 minutes, and tries an unchanged policy again after a day"), nil
	case noticed >= 0:
		return line(Failed, "%s", s.report.Findings[noticed].Text), nil
	case err != nil:
		return Line{}, err
	}
	return line(OK, "the policy %s works: a dry run as the node-lifecycle-controller keeps %s on Node %s", taints.KeepPolicyName, keptPair(), s.untainted), nil
}

// keptPair is a pair that the policy must keep.
func keptPair() taints.Pair {
	return taints.Pair{Key: corev1.TaintNodeMemoryPressure, Effect: taints.NoSchedule}
}

// keeps reports whether the policy puts the pair back into a write of the
// node-lifecycle-controller. In a dry run the policy reads the annotation of the write, so any Node
// without the pair is suitable. A taint of another program passes through as well.
func (s *scene) keeps(ctx context.Context, node string) (bool, error) {
	if node == "" {
		return false, untold("every Node already has the taint of the dry run")
	}
	controller, err := s.as(metav1.NamespaceSystem, "node-controller", "")
	if err != nil {
		return false, err
	}
	others := taints.Taint{Key: "taintlet.dev/check", Effect: taints.NoExecute, TimeAdded: time.Now().UTC().Truncate(time.Second)}
	after, err := tryPatch(ctx, controller, tellsWhoAsks, node, map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{taints.HeldAnnotation: keptPair().Key}},
		"spec":     map[string]any{"taints": []taints.Taint{others}},
	})
	return err == nil && after.Has(keptPair()) && after.Has(others.Pair()), err
}

// tryCreate are the options of a creation of which nothing is kept.
func tryCreate(manager string) metav1.CreateOptions {
	return metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: manager}
}

// serves asks whether a resource is served: it is that line, or the other one.
func serves(resource string, served, not Line) func(*scene, context.Context) (Line, error) {
	return func(s *scene, _ context.Context) (Line, error) {
		switch {
		case s.fleet.Installation.Served == nil:
			return Line{}, untold("the API server does not list the resources that it serves")
		case s.fleet.Installation.Served[resource].Empty():
			return not, nil
		}
		return served, nil
	}
}
