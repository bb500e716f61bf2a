// Package words says in plain words what a configuration asks for.
package words

import (
	"fmt"
	"strings"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// NoRecall is the warning that an operator must read before turning eviction on.
const NoRecall = "An eviction that has begun cannot be undone: the control plane queues every pod that does not tolerate the taint as soon as it sees it. Removing the taint a moment later saves only pods whose tolerationSeconds have not passed."

// Rules describes the taint of each rule, how and why it stays on the Node, and lists the
// conditions without a rule.
func Rules(cfg *config.Config) []string {
	var words []string
	for _, rule := range cfg.Policy().Rules {
		pair := rule.Taint.Pair()
		switch {
		case rule.Level == probes.OK:
			words = append(words, fmt.Sprintf("%s asks for the early taint %s (%s) before it is Degraded.", rule.Condition, pair, taints.Direct))
			continue
		case rule.IsGraver():
			words = append(words, fmt.Sprintf("%s with severity %d or more gives this taint another value: %s.", rule.Condition, rule.Severity, pair.With(rule.Taint.Value)))
			continue
		}
		via, _ := taints.Resolve(pair, Complete(cfg))
		text := fmt.Sprintf("%s %s asks for %s%s, %s: %s.",
			rule.Condition, rule.Level, pair.With(rule.Taint.Value), forReasons(rule), via, whyVia(cfg, rule, via))
		if rule.Clear == decide.ClearManual {
			text += " It stays until an operator removes it."
		}
		words = append(words, text)
	}
	if len(words) == 0 {
		return []string{"No rule: no taint is ever set."}
	}
	for _, condition := range cfg.WithoutTaint() {
		words = append(words, fmt.Sprintf("WARNING: %s has no rule for Degraded: no taint is ever set for it.", condition))
	}
	return words
}

func forReasons(rule decide.Rule) string {
	if len(rule.Reasons) == 0 {
		return ""
	}
	return " for " + strings.Join(rule.Reasons, ", ") + " only"
}

// whyVia says why a rule's pair stays on the Node in this way.
func whyVia(cfg *config.Config, rule decide.Rule, via taints.Via) string {
	pair := rule.Taint.Pair()
	if via == taints.Kept {
		return fmt.Sprintf("the node-lifecycle-controller would delete this pair; the admission policy %s (deploy/keep.yaml) puts it back. Where the policy is absent, %s stands in for it",
			taints.KeepPolicyName, taints.StandInFor(pair, cfg.KeyPrefix).With(rule.Taint.Value))
	}
	return "no controller of Kubernetes deletes this pair"
}

// Eviction describes which conditions evict pods, the effect, and its bounds.
func Eviction(cfg *config.Config) []string {
	var words []string
	for _, rule := range cfg.Rules {
		if rule.Level == probes.Critical {
			condition, _ := cfg.Condition(rule.Condition)
			words = append(words, fmt.Sprintf("Eviction is ON for %s: after %s of critical samples, %s%s deletes every pod on the Node that does not tolerate it, including pods of DaemonSets, in spite of PodDisruptionBudgets.",
				rule.Condition, condition.Common().Debounce.CriticalAfter.Duration, rule.Taint.Pair().With(rule.Taint.Value), forReasons(rule)))
		}
	}
	if len(words) == 0 {
		return []string{"Eviction is off: no rule for level Critical."}
	}
	bound := fmt.Sprintf("Nodes that evict at the same time: at most %d, each at most once in %s; the cooldown of a slot is %s.", cfg.Eviction.Slots, cfg.Eviction.Interval.Duration, cfg.Eviction.Cooldown.Duration)
	if cfg.Eviction.ControlPlane {
		bound += " Nodes of the control plane evict too."
	} else {
		bound += " Nodes of the control plane never evict."
	}
	return append(words, bound, NoRecall)
}

// Complete returns the facts of a complete installation, for commands that do not ask an API
// server.
func Complete(cfg *config.Config) taints.Facts {
	return taints.Facts{KeepPolicy: true, StandInPrefix: cfg.KeyPrefix}
}
