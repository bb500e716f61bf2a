package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/problems"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

func (s *scene) checkConfiguration(ctx context.Context) answer {
	cfg, err := s.inUse(ctx)
	var refused installation.RefusedError
	switch {
	case errors.As(err, &refused):
		return fail("the agents refuse their configuration: %v", err)
	case apierrors.IsForbidden(err):
		return skip("whether the configuration is valid: you may not get configmaps in namespace %s", s.namespace)
	case apierrors.IsNotFound(err):
		return fail("the ConfigMap %s is missing in namespace %s", account, s.namespace).but("apply the manifest or upgrade the chart again")
	case err != nil:
		return fail("the configuration cannot be read: %v", err).but("apply the manifest or upgrade the chart again")
	}
	if refusing := s.refusing(ctx); len(refusing) > 0 {
		return warn("the ConfigMap is valid now; in the last hour agents refused a configuration: %s", terminal.Listed(refusing)).but("look whether the Event ConfigurationReloaded follows, or read the agents' log")
	}
	return ok("the configuration is valid: %s", ruledIn(cfg))
}

// checkInForce compares the configuration that each agent uses with that of the ConfigMap.
func (s *scene) checkInForce(ctx context.Context) answer {
	all, err := s.allNodes(ctx)
	if err != nil {
		return skip("whether all agents use the configuration: %v", err)
	}
	for _, p := range all.report.Problems {
		if p.Kind == problems.ConfigurationNotInForce {
			return warn("%s", p.Text)
		}
	}
	return ok("all agents use the configuration of the ConfigMap")
}

// ruledIn says how many taints a configuration asks for.
func ruledIn(cfg *config.Config) string {
	count := map[probes.Level]int{}
	for _, rule := range cfg.Policy().Rules {
		count[rule.Level]++
	}
	text := fmt.Sprintf("%d rules for %s, %d for %s", count[probes.Degraded], probes.Degraded, count[probes.Critical], probes.Critical)
	if soft := len(cfg.SoftRules); soft > 0 {
		text += fmt.Sprintf(", %d soft", soft)
	}
	return text
}

// maxEvents is how many Events are read.
const maxEvents = 500

// refusing are the Nodes whose agent has told that it refuses a configuration, and
// nothing of another one since. Who may not list Events learns nothing.
func (s *scene) refusing(ctx context.Context) []string {
	const refused = "ConfigurationRefused"
	last, err := s.lastEvents(ctx, refused, "ConfigurationReloaded")
	if err != nil {
		return nil
	}
	pods, err := s.agentPods(ctx)
	if err != nil {
		return nil
	}
	maps.DeleteFunc(last, func(_ string, e corev1.Event) bool { return e.Reason != refused || installation.IsOver(&e, pods) })
	return slices.Sorted(maps.Keys(last))
}

// lastEvents returns the newest Event of these reasons about each Node. The API server
// keeps Events for an hour, unless it is configured otherwise.
func (s *scene) lastEvents(ctx context.Context, reasons ...string) (map[string]corev1.Event, error) {
	last := map[string]corev1.Event{}
	for _, reason := range reasons {
		options := metav1.ListOptions{FieldSelector: "involvedObject.kind=Node,reason=" + reason, Limit: maxEvents}
		events, err := s.me.CoreV1().Events(metav1.NamespaceDefault).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for _, e := range events.Items {
			name := e.InvolvedObject.Name
			if known, found := last[name]; !found || !e.LastTimestamp.Time.Before(known.LastTimestamp.Time) {
				last[name] = e
			}
		}
	}
	return last, nil
}

func (s *scene) checkRules(ctx context.Context) answer {
	cfg, err := s.inUse(ctx)
	if err != nil {
		return skip("whether each condition has a taint: the configuration is not known")
	}
	if without := cfg.WithoutTaint(); len(without) > 0 {
		var names []string
		for _, name := range without {
			names = append(names, string(name))
		}
		return warn("no taint is ever set for %s", terminal.Listed(names))
	}
	return ok("each condition has a rule that sets a taint")
}

// checkSlots compares the Leases with the configuration.
func (s *scene) checkSlots(ctx context.Context) answer {
	cfg, err := s.inUse(ctx)
	if err != nil {
		return skip("whether the eviction slots are there: the configuration is not known")
	}
	var missing []string
	for i := range cfg.Eviction.Slots {
		name := fmt.Sprint(apiserver.SlotPrefix, i)
		_, err := s.me.CoordinationV1().Leases(s.namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, name)
		case apierrors.IsForbidden(err):
			return skip("whether the eviction slots are there: you may not get leases in namespace %s", s.namespace)
		case err != nil:
			return fail("the eviction slots cannot be read: %v", err)
		}
	}
	evicts := slices.ContainsFunc(cfg.Policy().Rules, func(r decide.Rule) bool { return r.Level == probes.Critical })
	switch {
	case len(missing) > 0:
		return fail("%d of %d eviction slots are missing: %s", len(missing), cfg.Eviction.Slots, terminal.Listed(missing))
	case !evicts:
		return ok("eviction is off: no rule for level Critical")
	}
	return ok("eviction is on: at most %s at the same time", terminal.Count(cfg.Eviction.Slots, "Node"))
}

// checkRulesAllowed tries, as an agent, to set all taints that the configuration asks
// for: the policies name them, and are changed apart from the ConfigMap where there is no
// chart.
func (s *scene) checkRulesAllowed(ctx context.Context) answer {
	cfg, err := s.inUse(ctx)
	if err != nil {
		return skip("whether the policies allow the taints of the rules: the configuration is not known")
	}
	all, err := s.allNodes(ctx)
	if err != nil {
		return skip("whether the policies allow the taints of the rules: %v", err)
	}
	wanted := wantedBy(cfg)
	err = s.trySet(ctx, all.names[0], wanted)
	switch {
	case mayNotImpersonate(err):
		return skip("whether the policies allow the taints of the rules: you may not impersonate the agents' account")
	case denied(err, "taintlet-nodes"):
		return fail("the policy taintlet-nodes refuses taints of the configuration: %v", err)
	case err != nil:
		return fail("an agent cannot set the taints of the configuration: %v", err).but("find out who refuses it: permissions, another admission policy or a webhook")
	}
	return ok("the agents may set the taints of the configuration, and their stand-ins: %d", len(wanted))
}

// wantedBy are the taints that a configuration can lead to.
func wantedBy(cfg *config.Config) []taints.Taint {
	var wanted []taints.Taint
	add := func(taint taints.Taint) {
		if !slices.ContainsFunc(wanted, func(t taints.Taint) bool { return t.Pair() == taint.Pair() }) {
			wanted = append(wanted, taint)
		}
	}
	for _, rule := range cfg.Policy().Rules {
		pair := rule.Taint.Pair()
		add(pair.With(rule.Taint.Value))
		add(taints.StandInFor(pair, cfg.StandInPrefix).With(rule.Taint.Value))
	}
	for _, rule := range cfg.SoftRules {
		add(rule.Taint.Pair().With(rule.Taint.Value))
	}
	return wanted
}

// trySet tries, as the agent of a Node, to set taints beside those that are there.
func (s *scene) trySet(ctx context.Context, node string, wanted []taints.Taint) error {
	read, err := s.me.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := apiserver.NodeOf(read)
	after := slices.Clone(now.Taints)
	for _, taint := range wanted {
		if !now.Has(taint.Pair()) {
			after = append(after, taint)
		}
	}
	agent, err := s.agent(node)
	if err != nil {
		return err
	}
	_, err = tryPatch(ctx, agent, account, node, setsTaints(after))
	return err
}

// byHand are the managers of commands by which people change a single object.
func byHand(manager string) bool { return manager == "kubectl-edit" || manager == "kubectl-patch" }

// checkUnchanged finds policies of which somebody changed the spec by hand. What else
// changes them, such as Helm or a GitOps controller, is how they were installed.
func (s *scene) checkUnchanged(ctx context.Context) answer {
	var changed []string
	for _, name := range []string{"taintlet-nodes", "taintlet-events", "taintlet-leases", taints.KeepPolicyName} {
		kinds := []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"}
		if name == taints.KeepPolicyName {
			kinds = []string{installation.MutatingPolicies, installation.MutatingBindings}
		}
		for _, kind := range kinds {
			policy, err := s.policyObject(ctx, kind, name)
			switch {
			case apierrors.IsNotFound(err):
			case apierrors.IsForbidden(err):
				return skip("whether the policies were changed by hand: you may not get %s", kind)
			case err != nil:
				return fail("the policies cannot be read: %v", err)
			default:
				changed = append(changed, changes(singular(kind)+" "+name, policy.GetManagedFields())...)
			}
		}
	}
	if len(changed) > 0 {
		return warn("changed by hand: %s", terminal.Listed(changed))
	}
	return ok("nobody changed the policies by hand")
}

// singular is of the kinds of policies.
func singular(kinds string) string {
	return strings.NewReplacer("policies", "policy", "bindings", "binding").Replace(kinds)
}

// changes says who changed the spec of the object by hand, and when.
func changes(name string, managed []metav1.ManagedFieldsEntry) (all []string) {
	for _, entry := range managed {
		if byHand(entry.Manager) && installation.WritesSpec(entry) {
			all = append(all, fmt.Sprintf("%s (%s, %s)", name, entry.Manager, cmp.Or(entry.Time, &metav1.Time{}).UTC().Format("2006-01-02 15:04 UTC")))
		}
	}
	return all
}
