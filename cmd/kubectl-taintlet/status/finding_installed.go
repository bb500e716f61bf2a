package status

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

func configuration(f facts, cfg *config.Config, invalid error) []Finding {
	i := f.installation
	all := refused(f)
	if !i.Knows(installation.PartConfig) {
		return all
	}
	edit := commandOn("kubectl --namespace=%s edit configmap "+installation.Account, i.Namespace)
	if i.Release != "" { // the next upgrade would undo an edit
		edit = commandOn("helm --namespace=%s get values %s", i.Namespace, i.Release)
	}
	if i.Config == nil {
		if len(i.DaemonSets) == 0 {
			return all // nothing is installed here, which is told
		}
		return append(all, failure(ConfigurationMissing, "", reinstall(i), "the ConfigMap %s/%s has no %s: new agents have no configuration",
			i.Namespace, installation.Account, installation.ConfigKey))
	}
	if invalid != nil {
		return append(all, failure(ConfigurationInvalid, "", edit, "the ConfigMap %s/%s is invalid, so running agents keep their configuration, and new agents do not start: %v",
			i.Namespace, installation.Account, invalid))
	}
	all = append(all, notInForce(f)...)
	var without []string
	for _, name := range cfg.WithoutTaint() {
		without = append(without, string(name))
	}
	if len(without) > 0 {
		all = append(all, warning(ConditionWithoutRule, "", edit, "no rule sets a taint for %s: taintlet only reports what it finds", strings.Join(without, ", ")))
	}
	return all
}

// notInForce finds the agents that use another configuration than that of the ConfigMap. They read
// a change within about a minute. The configuration of a silent agent is not known.
func notInForce(f facts) []Finding {
	newest, agents, late := config.HashOf([]byte(*f.installation.Config)), 0, 0
	var old []string
	for _, n := range f.nodes {
		if n.Config == "" || n.isSilent {
			continue
		}
		agents++
		if n.Config != newest {
			late++
			old = append(old, n.Config)
		}
	}
	if late == 0 {
		return nil
	}
	slices.Sort(old)
	return []Finding{warning(ConfigurationNotInForce, "", commandOn("kubectl taintlet check --wait --namespace=%s", f.installation.Namespace),
		"%d of %d agents use configuration %s, newest is %s", late, agents, terminal.Listed(slices.Compact(old)), newest)}
}

// refused finds the agents whose newest Event about their configuration is a refusal. The end of
// the agent that wrote it ends it too. Agents read the file up to a minute after the ConfigMap has
// changed.
func refused(f facts) (all []Finding) {
	newest := map[string]*corev1.Event{}
	for _, e := range f.installation.Events {
		node := e.InvolvedObject.Name
		isOurs := e.Reason == string(ConfigurationRefused) || e.Reason == "ConfigurationReloaded"
		if isOurs && (newest[node] == nil || !installation.At(e).Before(installation.At(newest[node]))) {
			newest[node] = e
		}
	}
	for node, e := range newest {
		if e.Reason == string(ConfigurationRefused) && !installation.IsOver(e, f.installation.Pods) {
			all = append(all, failure(ConfigurationRefused, node, EventsOf(node), "%s: %s", ago(f.now, installation.At(e)), e.Message))
		}
	}
	return all
}

func slots(f facts, cfg *config.Config) []Finding {
	i := f.installation
	if !i.Knows(installation.PartSlots) || cfg == nil || !usesSlots(cfg, *i.Config) {
		return nil
	}
	there := map[string]bool{}
	for _, lease := range i.Slots {
		there[lease.Name] = true
	}
	var missing []string
	for number := range cfg.Eviction.Slots {
		if name := fmt.Sprint(apiserver.SlotPrefix, number); !there[name] {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []Finding{failure(SlotMissing, "", reinstall(i), "%d of %d eviction slots are missing in namespace %s, so fewer Nodes can evict: the Leases %s",
		len(missing), cfg.Eviction.Slots, i.Namespace, strings.Join(missing, ", "))}
}

// usesSlots: a rule evicts, or the file asks for slots as the chart does.
func usesSlots(cfg *config.Config, text string) bool {
	policy := cfg.Policy()
	return slices.ContainsFunc(policy.Conditions, func(c decide.Condition) bool { return policy.HasRule(c.Name, probes.Critical) }) || strings.Contains(text, "slots:")
}

// versions finds agents of several versions, and another version than that of this program.
func versions(f facts) []Finding {
	i := f.installation
	images, counted := installation.Images(i.Pods)
	switch {
	case len(images) > 1:
		return []Finding{warning(VersionsDiffer, "", commandOn("kubectl --namespace=%s rollout status daemonset "+installation.Account, i.Namespace), "agents are of %d versions: %s", len(images), counted)}
	case len(images) == 1:
		agents, program := installation.ReleaseOf(images[0]), installation.ReleaseOf(f.version)
		if agents != "" && program != "" && agents != program {
			return []Finding{warning(ProgramVersionDiffers, "", "kubectl taintlet version", "the agents are of version %s and this program is of version %s", agents, program)}
		}
	}
	return nil
}

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

// keepFails finds out whether agents have noticed that the policy which keeps taints fails. It
// returns one Finding, because it is one policy. It ignores silent agents, whose reports may be
// outdated.
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
	why := ""
	if bound < 0 {
		why = ": it has no binding"
	} else if spec := bindings[bound].Spec; denies && !slices.Contains(spec.ValidationActions, admissionv1.Deny) {
		why = fmt.Sprintf(": its binding does not deny (validationActions: %v)", spec.ValidationActions)
	} else if spec.MatchResources != nil && !reflect.DeepEqual(*spec.MatchResources, admissionv1.MatchResources{}) {
		why = " everywhere: its binding selects objects (matchResources)"
	}
	if why != "" {
		return []Finding{failure(PolicyNotInForce, "", put, "the admission policy %s is not in force%s", name, why)}
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
