package status

import (
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/taints"
)

// policies finds admission policies that are missing, not in force or changed by hand, by
// their objects. kubectl taintlet check tries them.
func policies(f facts, cfg *config.Config) []Finding {
	i := f.installation
	if !i.Knows(installation.PartPolicies) {
		return nil
	}
	var all []Finding
	for _, name := range required(i, cfg) {
		all = append(all, policy(f, name, i.Validating, i.ValidatingBindings, true)...)
	}
	if i.HasKeep() { // it may be left out, and not one of its two objects
		all = append(all, policy(f, taints.KeepPolicyName, i.Mutating, i.MutatingBindings, false)...)
	}
	return all
}

// keepFails finds out whether agents have noticed that the policy which keeps taints fails.
// It is one policy, and so one Finding. What a silent agent noticed may be over.
func keepFails(f facts) []Finding {
	text := ""
	var nodes []string
	for _, n := range f.nodes {
		if n.keepFails != "" && !n.isSilent {
			text, nodes = n.keepFails, append(nodes, n.Name)
		}
	}
	if text == "" {
		return nil
	}
	return []Finding{failure(KeepPolicyFails, "", "kubectl taintlet check", "%s. Noticed on %s", text, terminal.Listed(nodes))}
}

// required are the policies of each installation. That of the slots comes with slots.
func required(i *installation.Installation, cfg *config.Config) []string {
	names := []string{"taintlet-nodes", "taintlet-events"}
	if cfg != nil && usesSlots(cfg, *i.Config) {
		names = append(names, "taintlet-leases")
	}
	return names
}

// policy finds what is wrong with one policy and its binding. A policy that validates has to
// deny.
func policy(f facts, name string, all []*admissionv1.ValidatingAdmissionPolicy, bindings []*admissionv1.ValidatingAdmissionPolicyBinding, denies bool) []Finding {
	put := reinstall(f.installation)
	at := slices.IndexFunc(all, func(p *admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == name })
	if at < 0 {
		return []Finding{failure(PolicyMissing, "", put, "the admission policy %s is missing", name)}
	}
	bound := slices.IndexFunc(bindings, func(b *admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Spec.PolicyName == name })
	if bound < 0 {
		return []Finding{failure(PolicyNotInForce, "", put, "the admission policy %s is not in force: it has no binding", name)}
	}
	spec := bindings[bound].Spec
	var actions []string
	for _, action := range spec.ValidationActions {
		actions = append(actions, string(action))
	}
	switch {
	case denies && !slices.Contains(actions, string(admissionv1.Deny)):
		return []Finding{failure(PolicyNotInForce, "", put, "the admission policy %s is not in force: its binding does not deny (validationActions: %s)", name, strings.Join(actions, ", "))}
	case spec.MatchResources != nil && !reflect.DeepEqual(*spec.MatchResources, admissionv1.MatchResources{}):
		return []Finding{failure(PolicyNotInForce, "", put, "the admission policy %s is not in force everywhere: its binding selects objects (matchResources)", name)}
	}
	var found []Finding
	for number, managed := range [][]metav1.ManagedFieldsEntry{all[at].ManagedFields, bindings[bound].ManagedFields} {
		what := []string{"the", "the binding of the"}[number]
		if manager, when := installation.ChangedByHand(managed); manager != "" {
			found = append(found, warning(PolicyChanged, "", put, "%s admission policy %s was changed by %s %s", what, name, manager, ago(f.now, when)))
		}
	}
	return found
}
