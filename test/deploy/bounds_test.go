package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/fixtures"
)

// The chart's list of bounds is the agent's. TAINTLET_UPDATE_GOLDEN=1 writes it.
func TestBoundsAreTheAgents(t *testing.T) {
	var lines []string
	for _, bound := range fixtures.Bounds() {
		line, err := json.Marshal(bound)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, "  "+string(line))
	}
	fixtures.CompareGolden(t, os.Getenv("TAINTLET_UPDATE_GOLDEN") != "", filepath.Join(bed.ChartFolder, "bounds.json"), "[\n"+strings.Join(lines, ",\n")+"\n]\n")
}

// The chart refuses of each field what the agent refuses, and nothing else: values at the ends
// of its bounds and beyond them, and values that are none.
func TestChartRefusesWhatTheAgentRefuses(t *testing.T) {
	count, refused := 0, 0
	for round := range 7 {
		values := map[string]any{}
		for _, bound := range fixtures.Bounds() {
			if bound.Field != "eviction.slots" { // in the chart evict.slots, which makes the Leases too
				values[bound.Field] = candidates(bound)[round]
			}
		}
		byChart := refusedByChart(t, values)
		for name, value := range values {
			count++
			byAgent := refusedByAgent(t, name, value)
			if byAgent != nil {
				refused++
			}
			if (byAgent != nil) != byChart[name] {
				t.Errorf("%s: %#v is refused by the chart: %t, by the agent: %v", name, value, byChart[name], byAgent)
			}
		}
	}
	if count < 300 || refused < 200 {
		t.Errorf("only %d values, of which the agent refuses %d", count, refused)
	}
}

// candidates are values of a field: two good ones, and then bad ones.
func candidates(bound fixtures.Bound) []any {
	var low, high float64
	if json.Unmarshal([]byte(bound.Low), &low) == nil && json.Unmarshal([]byte(bound.High), &high) == nil {
		return []any{low, high, low - 1, high + 1, "lots", true, []any{}}
	}
	return []any{bound.Low, bound.High, "-1s", "lots", "2Ei", true, []any{}}
}

// refusedByAgent is what the agent says of a file with this value. Other fields are such that
// the value goes with them.
func refusedByAgent(t *testing.T, name string, value any) error {
	t.Helper()
	file := map[string]any{"apiVersion": config.APIVersion, "kind": config.Kind}
	section, leaf := "", name
	if at := strings.LastIndex(name, "."); at >= 0 {
		section, leaf = name[:at+1], name[at+1:]
	}
	never := map[string]any{"debounce": map[string]any{"clearFactor": 1}}
	for other, beside := range map[string]map[string]any{
		"samples": {"badSamples": 1}, "badSamples": {"samples": 32}, "clearAfter": {"maxClearAfter": "24h"}, "maxClearAfter": {"clearAfter": "0s"},
		"availablePercent": never, "inodesPercent": never, "usedPercent": never,
	}[leaf] {
		put(file, section+other, beside)
	}
	if name == "pid.earlyPercent" {
		put(file, "pid.usedPercent", 100)
	}
	if leaf == "clearFactor" {
		put(file, "pid.usedPercent", 99)
	}
	put(file, name, value)
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = config.HostSchema().Decode(text)
	return err
}

// put sets a value in a configuration. Lists get one entry, with what it needs.
func put(section map[string]any, name string, value any) {
	first, rest, isDeep := strings.Cut(name, ".")
	if !isDeep {
		section[first] = value
		return
	}
	list, isList := strings.CutSuffix(first, "[]")
	if section[list] == nil && isList {
		section[list] = []any{map[string]map[string]any{
			"conditions": {"type": "KernelDeadlock"},
		}[list]}
	} else if section[list] == nil {
		section[list] = map[string]any{}
	}
	if isList {
		put(section[list].([]any)[0].(map[string]any), rest, value)
	} else {
		put(section[list].(map[string]any), rest, value)
	}
}

// refusedByChart returns the fields that the chart refuses. It names those that its schema
// refuses first, so they are left out then.
func refusedByChart(t *testing.T, values map[string]any) map[string]bool {
	t.Helper()
	refused := map[string]bool{}
	for {
		file := map[string]any{}
		for name, value := range values {
			if !refused[name] {
				put(file, name, value)
			}
		}
		out, err := bed.TryRender(t, "-f", bed.ValuesFile(t, map[string]any{"config": file}), "--show-only", "templates/configmap.yaml")
		if err == nil {
			return refused
		}
		before := len(refused)
		for _, at := range regexp.MustCompile(`'/config/(\S+)'|config\.(\S+): `).FindAllStringSubmatch(out, -1) {
			name := regexp.MustCompile(`/0|\[0\]`).ReplaceAllString(at[1]+at[2], "[]")
			name = strings.ReplaceAll(name, "/", ".")
			if _, found := values[name]; found {
				refused[name] = true
			}
		}
		if len(refused) == before {
			t.Fatalf("helm: %v\n%s", err, out)
		}
	}
}
