package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

func (s *scene) checkConfiguration(ctx context.Context) answer {
	cfg, err := s.inUse(ctx)
	if err != nil {
		return skip("whether the configuration is valid: %v", err)
	}
	return ok("the configuration is valid: %s", ruledIn(cfg))
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

// checkOverrides finds overrides that apply to no Node: its labels are others, or an earlier
// override has them too.
func (s *scene) checkOverrides(ctx context.Context) answer {
	all, err := s.allNodes(ctx)
	if err != nil || all.config == nil {
		return skip("whether each override applies to a Node: the configuration is not known")
	}
	var unused []string
	for i, override := range all.config.Overrides {
		if place := fmt.Sprintf("overrides[%d]", i); !all.overrides[place] {
			selector, _ := override["nodeSelector"].(map[string]any)
			labels := make([]string, 0, len(selector))
			for _, key := range slices.Sorted(maps.Keys(selector)) {
				labels = append(labels, fmt.Sprintf("%s: %v", key, selector[key]))
			}
			unused = append(unused, fmt.Sprintf("%s {%s}", place, strings.Join(labels, ", ")))
		}
	}
	if len(unused) > 0 {
		return warn("overrides apply to no Node: %s", terminal.Listed(unused))
	}
	return ok("each override applies to a Node: %d", len(all.config.Overrides))
}

// checkSlots says how many Nodes may evict.
func (s *scene) checkSlots(ctx context.Context) answer {
	cfg, err := s.inUse(ctx)
	if err != nil {
		return skip("whether the eviction slots are there: the configuration is not known")
	}
	if !slices.ContainsFunc(cfg.Policy().Rules, func(r decide.Rule) bool { return r.Level == probes.Critical }) {
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
