package main

import (
	"fmt"
	"io"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
)

// printRules says in words what a configuration asks for.
func printRules(w io.Writer, cfg *config.Config) {
	fmt.Fprintln(w, "The configuration is valid.")
	for _, rule := range cfg.Rules {
		fmt.Fprintf(w, "%s %s asks for %s\n", rule.Condition, rule.Level, rule.Taint.Pair())
	}
	for _, line := range evictionInWords(cfg) {
		fmt.Fprintln(w, line)
	}
}

// evictionInWords says which conditions evict pods, what that does and what
// bounds it.
func evictionInWords(cfg *config.Config) []string {
	var words []string
	for _, rule := range cfg.Rules {
		if rule.Level == probes.Critical {
			condition, _ := cfg.Condition(rule.Condition)
			words = append(words, fmt.Sprintf("Eviction is ON for %s: after %s of critical samples, %s deletes every pod on the Node that does not tolerate it, DaemonSets' and whatever PodDisruptionBudgets say.",
				rule.Condition, condition.Common().Debounce.CriticalAfter.Duration, rule.Taint.Pair()))
		}
	}
	if len(words) == 0 {
		return []string{"Eviction is off: no rule for level Critical."}
	}
	bound := fmt.Sprintf("Nodes that evict at the same time: at most %d, each at most once in %s; the cooldown of a slot is %s.", cfg.Eviction.Slots, cfg.Eviction.Interval.Duration, cfg.Eviction.Cooldown.Duration)
	if cfg.Eviction.ControlPlane {
		return append(words, bound+" Nodes of the control plane evict too.")
	}
	return append(words, bound+" Nodes of the control plane never do.")
}
