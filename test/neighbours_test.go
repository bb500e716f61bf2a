package test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/taints"
)

var yamlBlocks = regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```\n")

// namesIn calls found for each value of an example that names a condition of a Node
// ("type" of a list of unhealthy conditions, "nodeConditions") or the key of a taint
// ("startupTaints", "excludedTaints").
func namesIn(value any, found func(field, name string)) {
	switch value := value.(type) {
	case map[string]any:
		for field, inner := range value {
			for _, name := range namesOf(field, inner) {
				found(field, name)
			}
			namesIn(inner, found)
		}
	case []any:
		for _, inner := range value {
			namesIn(inner, found)
		}
	}
}

func namesOf(field string, value any) (names []string) {
	list, _ := value.([]any)
	for _, entry := range list {
		object, _ := entry.(map[string]any)
		switch field {
		case "unhealthyConditions", "unhealthyNodeConditions":
			names = append(names, object["type"].(string))
		case "startupTaints":
			names = append(names, object["key"].(string))
		case "excludedTaints":
			names = append(names, entry.(string))
		}
	}
	if text, isText := value.(string); isText && field == "nodeConditions" {
		names = strings.Split(text, ",")
	}
	return names
}

// knownNames are the conditions and the keys that an example may name: of the kubelet and of
// Gardener's default, HostRepairNeeded as the only one of taintlet, the keys of the built-in
// rules and their stand-ins, and the start-up taint of docs/configuration.md.
func knownNames(t *testing.T) (conditions, keys map[string]bool) {
	t.Helper()
	conditions = map[string]bool{decide.RepairType: true}
	for _, name := range []string{"Ready", "KernelDeadlock", "ReadonlyFilesystem", "DiskPressure", "NetworkUnavailable"} {
		conditions[name] = true
	}
	keys = map[string]bool{}
	for _, rule := range config.Default().Rules {
		pair := taints.Pair{Key: rule.Taint.Key, Effect: rule.Taint.Effect}
		keys[pair.Key], keys[taints.StandInFor(pair, taints.DefaultStandInPrefix).Key] = true, true
	}
	startup := regexp.MustCompile(`(?m)^ +taint: (\S+)$`).FindStringSubmatch(readText(t, "../docs/configuration.md"))
	if startup == nil {
		t.Fatal("docs/configuration.md configures no start-up taint")
	}
	keys[startup[1]] = true
	return conditions, keys
}

// Each example for a neighbour can be read, and names only conditions and taints that exist.
// An example for a program that repairs names HostRepairNeeded, and no other condition of
// taintlet. An example that excludes taints from a descheduler excludes them all.
func TestExamplesForNeighbours(t *testing.T) {
	conditions, keys := knownNames(t)
	kinds := map[string]bool{}
	for _, block := range yamlBlocks.FindAllStringSubmatch(readText(t, "../docs/neighbours.md"), -1) {
		var example map[string]any
		if err := yaml.UnmarshalStrict([]byte(block[1]), &example); err != nil {
			t.Errorf("%v in\n%s", err, block[1])
			continue
		}
		kind, _ := example["kind"].(string)
		kinds[kind] = true
		if kind == config.Kind {
			if _, err := config.HostSchema().Decode([]byte(block[1])); err != nil {
				t.Errorf("%v in\n%s", err, block[1])
			}
		}
		repairs, excluded := map[string]bool{}, 0
		namesIn(example, func(field, name string) {
			known := keys
			if strings.HasSuffix(field, "Conditions") {
				known, repairs[name] = conditions, true
			}
			if !known[name] {
				t.Errorf("%s: %s names %s, which is not there or must not be watched", kind, field, name)
			}
			if field == "excludedTaints" {
				excluded++
			}
		})
		if len(repairs) > 0 && !repairs[decide.RepairType] {
			t.Errorf("%s does not watch %s", kind, decide.RepairType)
		}
		if excluded > 0 && excluded != len(keys)-1 { // not the start-up taint
			t.Errorf("%s excludes %d of %d keys", kind, excluded, len(keys)-1)
		}
	}
	for _, kind := range []string{config.Kind, "NodePool", "DeschedulerPolicy", "NodeHealthCheck", "MachineHealthCheck"} {
		if !kinds[kind] {
			t.Errorf("no example of a %s, only of %v", kind, slices.Sorted(maps.Keys(kinds)))
		}
	}
}
