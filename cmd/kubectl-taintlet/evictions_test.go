package main

import (
	"slices"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
)

// Where no rule evicts, those are shown that could: one for each condition that becomes
// Critical, of whatever schema.
func TestEvictingRulesAreOfWhatBecomesCritical(t *testing.T) {
	schema := append(config.HostSchema(), config.Definition{
		Name: "Frost", Field: "frost", TaintKey: "example.com/frost", BecomesCritical: true, NewSection: config.HostSchema()[0].NewSection,
	})
	rules, err := evictingRules(schema.Default(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	var got []probes.Condition
	for _, rule := range rules {
		if rule.Level != probes.Critical {
			t.Errorf("%+v", rule)
		}
		got = append(got, rule.Condition)
	}
	if want := []probes.Condition{probes.MemoryPressure, probes.PIDPressure, "Frost"}; !slices.Equal(got, want) {
		t.Errorf("rules for %v, want %v", got, want)
	}
}
