package problems

import (
	"slices"
	"strings"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/taints"
)

// policies finds admission policies that are missing, not in force or changed by hand, by
// their objects. kubectl taintlet check tries them.
func policies(f Facts) []Problem {
	i := f.Installation
	if !i.Knows(installation.PartPolicies) {
		return nil
	}
	var all []Problem
	for _, name := range required(i) {
		all = append(all, policy(f, name, i.Validating, i.ValidatingBindings, true)...)
	}
	isKept := func(m installation.Meta) bool { return m.Name == taints.KeepPolicyName }
	hasPolicy := slices.ContainsFunc(i.Mutating, func(p installation.Policy) bool { return isKept(p.Metadata) })
	hasBinding := slices.ContainsFunc(i.MutatingBindings, func(b installation.Binding) bool { return isKept(b.Metadata) })
	if hasPolicy || hasBinding { // it may be left out, and not one of the two
		all = append(all, policy(f, taints.KeepPolicyName, i.Mutating, i.MutatingBindings, false)...)
	}
	return all
}

// required are the policies of each installation. That of the slots comes with slots.
func required(i *installation.Installation) []string {
	names := []string{"taintlet-nodes", "taintlet-events"}
	if i.Config == nil {
		return names
	}
	if cfg, err := config.HostSchema().Decode([]byte(*i.Config)); err == nil && usesSlots(cfg, *i.Config) {
		names = append(names, "taintlet-leases")
	}
	return names
}

// policy finds what is wrong with one policy and its binding. A policy that validates has to
// deny.
func policy(f Facts, name string, all []installation.Policy, bindings []installation.Binding, denies bool) []Problem {
	put := reinstall(f.Installation)
	at := slices.IndexFunc(all, func(p installation.Policy) bool { return p.Metadata.Name == name })
	if at < 0 {
		return []Problem{failure(PolicyMissing, "", put, "the admission policy %s is missing", name)}
	}
	bound := slices.IndexFunc(bindings, func(b installation.Binding) bool { return b.Spec.PolicyName == name })
	if bound < 0 {
		return []Problem{failure(PolicyNotInForce, "", put, "the admission policy %s is not in force: it has no binding", name)}
	}
	spec := bindings[bound].Spec
	switch {
	case denies && !slices.Contains(spec.ValidationActions, "Deny"):
		return []Problem{failure(PolicyNotInForce, "", put, "the admission policy %s is not in force: its binding does not deny (validationActions: %s)", name, strings.Join(spec.ValidationActions, ", "))}
	case len(spec.MatchResources) > 0 && string(spec.MatchResources) != "null" && string(spec.MatchResources) != "{}":
		return []Problem{failure(PolicyNotInForce, "", put, "the admission policy %s is not in force everywhere: its binding selects objects (matchResources)", name)}
	}
	var found []Problem
	if manager, when := all[at].Metadata.ChangedByHand(); manager != "" {
		found = append(found, warning(PolicyChanged, "", put, "the admission policy %s was changed by %s %s", name, manager, ago(f.Now, when)))
	}
	if manager, when := bindings[bound].Metadata.ChangedByHand(); manager != "" {
		found = append(found, warning(PolicyChanged, "", put, "the binding of the admission policy %s was changed by %s %s", name, manager, ago(f.Now, when)))
	}
	return found
}
