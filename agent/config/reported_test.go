package config_test

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
)

const reported = header + `conditions:
- {type: KernelDeadlock}
- {type: GPUHealthy, badStatus: false, staleAfter: 0s, period: 5s, debounce: {badSamples: 1, samples: 1}}
eviction: {slots: 1}
rules:
- {condition: KernelDeadlock, level: Degraded, taint: {key: example.com/deadlock, effect: NoSchedule}, clear: manual}
- {condition: GPUHealthy, level: Degraded, reasons: [XID13], taint: {key: example.com/gpu-slow, effect: PreferNoSchedule}}
- {condition: GPUHealthy, level: Degraded, reasons: [XID79, XID48], taint: {key: example.com/gpu, effect: NoSchedule}}
- {condition: GPUHealthy, level: Critical, reasons: [XID79], taint: {key: example.com/gpu, effect: NoExecute}}
- {condition: DiskPressure, level: Critical, reasons: [FileSystemReadOnly], taint: {key: node.kubernetes.io/disk-pressure, effect: NoExecute}}
`

func TestReportedConditions(t *testing.T) {
	cfg, err := config.HostSchema().Decode([]byte(reported))
	if err != nil {
		t.Fatal(err)
	}
	deadlock, _ := cfg.Condition("KernelDeadlock")
	gpu, _ := cfg.Condition("GPUHealthy")
	d, g := deadlock.Section.(*config.Reported), gpu.Section.(*config.Reported)
	if !d.BadStatus || d.StaleAfter.Duration != 15*time.Minute || d.Period.Duration != 10*time.Second || d.FollowUp != 0 || d.Debounce.BadSamples != 2 {
		t.Errorf("defaults: %+v", d)
	}
	if g.BadStatus || g.StaleAfter.Duration != 0 || g.Period.Duration != 5*time.Second || g.Debounce.Samples != 1 || g.Debounce.ClearAfter.Duration != 2*time.Minute {
		t.Errorf("given: %+v", g)
	}
	policy := cfg.Policy()
	if c, _ := policy.Condition("GPUHealthy"); !c.Reported || c.TaintKey != "" || len(policy.Conditions) != 6 {
		t.Errorf("policy: %+v", policy.Conditions)
	}
	if len(cfg.WithoutTaint()) != 0 {
		t.Errorf("without a taint: %q", cfg.WithoutTaint())
	}
	if got := config.Changes(config.Default(), cfg); !strings.Contains(got, "conditions[GPUHealthy] unset → {\"badStatus\":false,") || !strings.Contains(got, "rules[GPUHealthy Degraded XID79 XID48] unset → example.com/gpu:NoSchedule") {
		t.Error(got)
	}
	other, err := config.HostSchema().Decode([]byte(strings.Replace(reported, "{type: KernelDeadlock}", "{type: KernelDeadlock, staleAfter: 1h}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Changes(cfg, other); got != "conditions[KernelDeadlock].staleAfter 15m0s → 1h0m0s" {
		t.Error(got)
	}
	text := config.HostSchema().Effective(cfg)
	again, err := config.HostSchema().Decode([]byte(text))
	if err != nil || everything(t, again) != everything(t, cfg) {
		t.Errorf("%v: the effective configuration means something else:\n%s", err, text)
	}
}

func TestReportedConditionsAreRefused(t *testing.T) {
	many := header + "conditions:\n"
	for i := range 21 {
		many += fmt.Sprintf("- {type: Type%d}\n", i)
	}
	reasons := func(condition, level, names string) string {
		return header + "eviction: {slots: 1}\nconditions: [{type: Deadlock}]\nrules:\n- {condition: " + condition + ", level: " + level + ", reasons: [" + names + "], taint: {key: example.com/a, effect: " + map[string]string{"Degraded": "NoSchedule", "Critical": "NoExecute"}[level] + "}}\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"no list":          {header + "conditions: KernelDeadlock\n", `conditions: Invalid value: "KernelDeadlock": must be a list`},
		"no section":       {header + "conditions: [KernelDeadlock]\n", `conditions[0]: Invalid value: "KernelDeadlock": must be a section with fields`},
		"unknown field":    {header + "conditions: [{type: Deadlock, stale: 5m}]\n", `conditions[0].stale: Forbidden: unknown field`},
		"no type":          {header + "conditions: [{badStatus: false}]\n", `conditions[0].type: Invalid value: "": must be at most 63 letters and digits that begin with a capital, such as KernelDeadlock`},
		"no type's form":   {header + "conditions: [{type: kernel-deadlock}]\n", `conditions[0].type: Invalid value: "kernel-deadlock": must be at most 63 letters and digits that begin with a capital`},
		"the kubelet's":    {header + "conditions: [{type: Ready}, {type: DiskPressure}]\n", "conditions[1].type: Forbidden: DiskPressure has its taint from the control plane"},
		"ours":             {header + "conditions: [{type: HostDiskPressure}, {type: RepairNeeded}]\n", "conditions[1].type: Forbidden: RepairNeeded may be one of taintlet's own conditions"},
		"twice":            {header + "conditions: [{type: A}, {type: A}]\n", `conditions[1]: Duplicate value: "A"`},
		"too many":         {many, "conditions: Too many: 21: must have at most 20 items"},
		"a bad bad status": {header + "conditions: [{type: A, badStatus: Unknown}]\n", `conditions[0].badStatus: Invalid value: "Unknown": must be true or false`},
		"stale at once":    {header + "conditions: [{type: A, staleAfter: 1s}]\n", `conditions[0].staleAfter: Invalid value: "1s": must be 0 (never), or 1m to 24h`},
		"a debounce":       {header + "conditions: [{type: A, debounce: {samples: 40}}]\n", "conditions[0].debounce.samples: Invalid value: 40: must be 1 to 32"},
		"a type's typo":    {header + "conditions: [{type: A, period: fast}]\n", `conditions[0].period: Invalid value: "fast": must be a duration such as 30s, 5m or 1h`},

		"a reason of no probe": {reasons("DiskPressure", "Degraded", "ReadOnly"), `rules[0].reasons[0]: Unsupported value: "ReadOnly": supported values: "FileSystemReadOnly"`},
		"a good reason":        {reasons("DiskPressure", "Degraded", "SpaceSufficient"), `rules[0].reasons[0]: Unsupported value: "SpaceSufficient"`},
		"a reason twice":       {reasons("Deadlock", "Degraded", "A, A"), `rules[0].reasons[1]: Duplicate value: "A"`},
		"a reason's form":      {reasons("Deadlock", "Degraded", `"low space"`), `rules[0].reasons[0]: Invalid value: "low space": must be a reason`},
		"too many reasons":     {reasons("Deadlock", "Degraded", strings.Repeat("A, ", 17)), "rules[0].reasons: Too many: 17: must have at most 16 items"},
		"no rule to step down": {strings.Replace(reasons("Deadlock", "Degraded", "A"), "rules:", "rules:\n- {condition: Deadlock, level: Critical, reasons: [A, B], taint: {key: example.com/b, effect: NoExecute}}", 1),
			"rules[0].level: Required value: Critical comes after Degraded: a rule for Deadlock Degraded is needed too, for B"},
		"two criticals": {reasons("MemoryPressure", "Critical", "MemoryLow") + "- {condition: MemoryPressure, level: Critical, reasons: [MemoryStalled], taint: {key: example.com/b, effect: NoExecute}}\n",
			`rules[1]: Duplicate value: "MemoryPressure Critical"`},
		"some way to clear":   {header + "rules: [{condition: DiskPressure, level: Degraded, taint: {key: example.com/a, effect: NoSchedule}, clear: never}]\n", `rules[0].clear: Unsupported value: "never": supported values: "manual"`},
		"manual eviction":     {header + "eviction: {slots: 1}\nrules: [{condition: MemoryPressure, level: Critical, taint: {key: example.com/a, effect: NoExecute}, clear: manual}]\n", "rules[0].clear: Forbidden: manual goes with level Degraded only"},
		"manual and reserved": {header + "rules: [{condition: DiskPressure, level: Degraded, taint: {key: node.kubernetes.io/disk-pressure, effect: NoSchedule}, clear: manual}]\n", "rules[0].clear: Forbidden: manual needs a key of your own"},
		"manual and none":     {header + "rules: [{condition: DiskPressure, level: Degraded, taint: {effect: None}, clear: manual}]\n", "rules[0].taint: Forbidden: the effect None"},
		"none for a reason":   {header + "rules: [{condition: DiskPressure, level: Degraded, reasons: [SpaceLow], taint: {effect: None}}]\n", "rules[0].taint: Forbidden: the effect None"},
		"manual twice": {strings.Replace(reasons("Deadlock", "Degraded", "A"), "}}\n", "}, clear: manual}\n", 1) + "- {condition: Deadlock, level: Degraded, reasons: [B], taint: {key: example.com/b, effect: NoSchedule}, clear: manual}\n",
			"rules[1].clear: Forbidden: another rule for Deadlock has manual too; one may have it"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := config.HostSchema().Decode([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nlacks %s", err, c.want)
			}
		})
	}
}

// Rules of files name reasons. testdata/reasons.txt has those of all releases with what they
// mean, in the first sentence of docs/reasons.md: a line of it may be added, none may go or
// change.
func TestReasonsAreAnInterface(t *testing.T) {
	page, err := os.ReadFile("../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	means := map[string]string{}
	for _, match := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (?:Bad|Critical)\\. (.*?\\.)[ |]").FindAllStringSubmatch(string(page), -1) {
		means[match[1]] = match[2]
	}
	kept := map[string]bool{}
	file, err := os.Open("testdata/reasons.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, meaning, _ := strings.Cut(lines.Text(), ": ")
		condition, reason, _ := strings.Cut(name, " ")
		kept[name] = true
		if means[reason] != meaning {
			t.Errorf("%s of %s means %q now; rules were written for %q", reason, condition, means[reason], meaning)
		}
	}
	for _, definition := range config.HostSchema() {
		for _, reason := range definition.Reasons {
			name := string(definition.Name) + " " + reason
			if means[reason] == "" {
				t.Errorf("docs/reasons.md does not have %s as bad or critical", name)
			}
			if !kept[name] {
				t.Errorf("testdata/reasons.txt lacks %s: %s", name, means[reason])
			}
			delete(kept, name)
			delete(means, reason)
		}
	}
	for name := range kept {
		t.Errorf("no rule can name %s any more", name)
	}
	for reason := range means {
		t.Errorf("docs/reasons.md has %s as bad, and no rule can name it", reason)
	}
}

// What once shows follows the rules that cover the reason of the sample.
func TestRulesForASample(t *testing.T) {
	cfg, err := config.HostSchema().Decode([]byte(reported))
	if err != nil {
		t.Fatal(err)
	}
	for reason, want := range map[string]string{"SpaceLow": "NoSchedule", "FileSystemReadOnly": "NoExecute NoSchedule"} {
		var got []string
		for _, rule := range cfg.Policy().RulesFor(probes.Observation{Condition: probes.DiskPressure, Level: probes.Degraded, Reason: reason}) {
			got = append(got, string(rule.Taint.Effect))
		}
		if all := strings.Join(got, " "); all != want {
			t.Errorf("%s: %s, want %s", reason, all, want)
		}
	}
	if rules := cfg.Policy().RulesFor(probes.Observation{Condition: "GPUHealthy", Level: probes.Degraded, Reason: "XID31"}); len(rules) != 0 {
		t.Errorf("a reason that no rule names: %+v", rules)
	}
	if rules := cfg.Policy().RulesFor(probes.Observation{Condition: "KernelDeadlock", Level: probes.Degraded, Reason: "AnyReason"}); len(rules) != 1 || rules[0].Clear != decide.ClearManual {
		t.Errorf("%+v", rules)
	}
}
