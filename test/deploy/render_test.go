package deploy

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/fixtures"
)

// deploy/taintlet.yaml and deploy/keep.yaml are what the chart renders.
func TestManifestsAreGenerated(t *testing.T) {
	bed.Helm(t)
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "../../deploy/generate", dir).CombinedOutput(); err != nil {
		t.Fatalf("deploy/generate: %v\n%s", err, out)
	}
	for _, name := range []string{"taintlet.yaml", "keep.yaml"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../../deploy", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("deploy/%s is not what the chart renders: run `make manifests`", name)
		}
	}
}

func TestLint(t *testing.T) {
	values := bed.ValuesFile(t, map[string]any{
		"namespace": map[string]any{"create": true}, "evict": map[string]any{"slots": 2},
		"monitoring": map[string]any{"podMonitor": true, "prometheusRules": true},
	})
	for _, args := range [][]string{nil, {"-f", values}} {
		args = append([]string{"lint", bed.ChartFolder, "--strict", "--kube-version", "1.37"}, args...)
		if out, err := exec.CommandContext(t.Context(), bed.Helm(t), args...).CombinedOutput(); err != nil {
			t.Errorf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// Values that cannot be meant are refused before anything is installed, with a
// message that says where they are.
func TestBadValuesAreRefused(t *testing.T) {
	rule := func(key, effect, level string) string {
		return `config.rules=[{"condition": "DiskPressure", "level": "` + level + `", "taint": {"key": "` + key + `", "effect": "` + effect + `"}}]`
	}
	for values, says := range map[string]string{
		`config.maintenance={"conditions": "DrainInProgress"}`: "/config/maintenance/conditions",
		`replicas=3`:                                   "additional properties 'replicas' not allowed",
		`image.digest="sha256:12"`:                     "/image/digest",
		`image.tag="a tag"`:                            "/image/tag",
		`image.repository=""`:                          "/image/repository",
		`image.pullPolicy="Sometimes"`:                 "/image/pullPolicy",
		`config.keys="Private"`:                        "/config/keys",
		`evict.slots=-1`:                               "/evict/slots",
		`evict.slots=1.5`:                              "/evict/slots",
		`port=70000`:                                   "/port",
		`listen="0.0.0.0"`:                             "/listen",
		`dnsPods.namespace="Kube"`:                     "/dnsPods/namespace",
		`dnsPods.labelSelector=""`:                     "/dnsPods/labelSelector",
		`listen="loopback",monitoring.podMonitor=true`: "set listen to all or host",
		`monitoring.serviceMonitor=true`:               "'serviceMonitor' not allowed",
		`tolerations={}`:                               "/tolerations",
		`config=null`:                                  "missing property 'config'",
		`config.memory.availabelPercent=5`:             "'availabelPercent' not allowed",
		`config.memory.availablePercent=101`:           "/config/memory/availablePercent",
		`config.disk.paths=[]`:                         "/config/disk/paths",
		`config.disk.paths=["scratch"]`:                "/config/disk/paths/0",
		`config.heartbeat=300`:                         "/config/heartbeat",
		`config.heartbeat="5 minutes"`:                 "/config/heartbeat",
		`config.keyPrefix="example.com/"`:              "/config/keyPrefix",
		`config.network.debounce.samples=33`:           "/config/network/debounce/samples",
		`config.kind="TaintletConfiguration"`:          "'kind' not allowed",
		`config.rules=[{"condition": "DiskPresure", "level": "Degraded", "taint": {"key": "example.com/disk", "effect": "NoSchedule"}}]`:                         "DiskPresure is no condition of taintlet, nor in config.conditions; known are MemoryPressure, DiskPressure",
		`config.rules=[{"condition": "DiskPressure", "level": "Degraded", "clear": "never", "taint": {"key": "example.com/disk", "effect": "NoSchedule"}}]`:      "/config/rules/0/clear",
		`config.rules=[{"condition": "DiskPressure", "level": "Degraded", "reasons": ["low space"], "taint": {"key": "example.com/d", "effect": "NoSchedule"}}]`: "/config/rules/0/reasons/0",
		`config.conditions=[{"type": "kernel deadlock"}]`:                "/config/conditions/0/type",
		`config.conditions=[{"type": "Deadlock", "badStatus": "maybe"}]`: "/config/conditions/0/badStatus",
		`config.rules=[{"condition": "DiskPressure", "level": "Degraded", "severity": 50, "taint": {"key": "example.com/d", "effect": "NoSchedule"}}]`:        "/config/rules/0/severity",
		`config.rules=[{"condition": "DiskPressure", "level": "Degraded", "severity": 75, "clear": "manual", "taint": {"key": "a", "effect": "NoSchedule"}}]`: "/config/rules/0/clear",
		rule("it's", "NoSchedule", "Degraded"):             "/config/rules/0/taint/key",
		rule("example.com/disk", "NoExecute", "Degraded"):  "/config/rules/0/taint/effect",
		rule("example.com/disk", "NoSchedule", "Critical"): "/config/rules/0/taint/effect",
		rule("example.com/disk", "NoExecute", "Critical"):  "set evict.slots",
		`evict.slots=1,config.rules=[{"condition": "DiskPressure", "level": "Degraded", "taint": {"effect": "None"}}, {"condition": "DiskPressure", "level": "Critical", "taint": {"key": "example.com/disk", "effect": "NoExecute"}}]`: "DiskPressure Critical needs one for DiskPressure Degraded",
		rule("example.com/disk", "None", "Degraded"):                                                           "/config/rules/0/taint",
		`config.rules=[{"condition": "DiskPressure", "level": "Degraded", "taint": {"effect": "NoSchedule"}}]`: "missing property 'key'",
		`config.keyPrefix="node.kubernetes.io"`:                                                                "/config/keyPrefix",
		`image.pullSecrets="one"`:                                                                              "/image/pullSecrets",
		rule("example.com/disk", "NoSchedule", "Fatal"):                                                        "/config/rules/0/level",
		`cleanup.all=true`: "'all' not allowed",
		rule("node.kubernetes.io/not-ready", "NoSchedule", "Degraded"):                  "node.kubernetes.io/not-ready belongs to the control plane",
		`retired=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]`: "belongs to the control plane or to administrators",
		`disk.mounts=["data"]`:                  "/disk/mounts/0",
		`disk.mounts=["/"]`:                     "/disk/mounts/0",
		`disk.mounts=["/data/../etc"]`:          "/disk/mounts/0",
		`disk.mounts=["/etc/taintlet"]`:         "/disk/mounts/0",
		`extraArgs=["debug"]`:                   "/extraArgs/0",
		`podLabels={"a": "b c"}`:                "/podLabels/a",
		`retired=[{"key": "example.com/disk"}]`: "missing property 'effect'",
	} {
		if out, err := bed.TryRender(t, "--set-json", values); err == nil || !strings.Contains(out, says) {
			t.Errorf("%s: %v, without %q:\n%s", values, err, says, out)
		}
	}
}

// The schema knows the fields of the configuration that the agent knows.
func TestSchemaHasTheConfiguration(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(bed.ChartFolder, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct{ Definitions map[string]*schemaObject }
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	whole := schema.Definitions["config"]
	for _, c := range config.Default().Conditions {
		section := whole.Properties[c.Field]
		if section == nil {
			t.Errorf("config.%s is not in the schema", c.Field)
			continue
		}
		compareFields(t, schema.Definitions, "config."+c.Field, section, reflect.TypeOf(c.Section).Elem())
		delete(whole.Properties, c.Field)
	}
	overrides := whole.Properties["overrides"].Items
	delete(whole.Properties, "overrides")
	if got, want := len(overrides.Properties), len(whole.Properties)+len(config.Default().Conditions)+1-6; got != want || overrides.Properties["nodeSelector"] == nil {
		t.Errorf("config.overrides have %d fields in the schema, want %d", got, want)
	}
	compareFields(t, schema.Definitions, "config", whole, reflect.TypeFor[config.Config]())
}

// The chart has a list of the conditions and their keys, which is the agent's.
func TestChartHasTheConditions(t *testing.T) {
	var types, keys []string
	for _, c := range config.HostSchema() {
		types, keys = append(types, "Host"+string(c.Name)), append(keys, c.TaintKey)
	}
	types = append(types, decide.RepairType)
	policy := &admissionv1.ValidatingAdmissionPolicy{}
	decodeFirst(t, bed.Render(t, "--show-only", "templates/admission.yaml"), policy)
	for _, v := range policy.Spec.Variables {
		if v.Name == "ownConditions" {
			if got := quoted(v.Expression); !slices.Equal(got, types) {
				t.Errorf("the policy's conditions are %q, want %q", got, types)
			}
		}
	}
	keep := &admissionv1.MutatingAdmissionPolicy{}
	decodeFirst(t, bed.Render(t, bed.KeepServed, "--show-only", "templates/keep.yaml"), keep)
	for _, v := range keep.Spec.Variables {
		if v.Name == "heldKeys" {
			list, _, _ := strings.Cut(v.Expression, ".filter")
			if got := quoted(list); !slices.Equal(got, keys) {
				t.Errorf("keep.yaml holds %q, want %q", got, keys)
			}
		}
	}
}

// decodeFirst reads the first document of a manifest.
func decodeFirst(t *testing.T, manifest string, into any) {
	t.Helper()
	first, _, _ := strings.Cut(manifest, "\n---\n")
	if err := yaml.UnmarshalStrict([]byte(first), into); err != nil {
		t.Fatal(err)
	}
}

// quoted returns what stands in single quotes.
func quoted(text string) (words []string) {
	for _, match := range regexp.MustCompile(`'([^']*)'`).FindAllStringSubmatch(text, -1) {
		words = append(words, match[1])
	}
	return words
}

type schemaObject struct {
	Properties map[string]*schemaObject
	Items      *schemaObject
	Ref        string `json:"$ref"`
}

func compareFields(t *testing.T, definitions map[string]*schemaObject, path string, schema *schemaObject, of reflect.Type) {
	t.Helper()
	if name, ok := strings.CutPrefix(schema.Ref, "#/definitions/"); ok {
		schema = definitions[name]
	}
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if schema.Items != nil && of.Kind() == reflect.Slice {
		compareFields(t, definitions, path+"[]", schema.Items, of.Elem())
		return
	}
	if of.Kind() != reflect.Struct || !strings.HasSuffix(of.PkgPath(), "agent/config") {
		return
	}
	var known []string
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch name {
		case "", "-", "apiVersion", "kind", "overrides": // what is embedded, or not in the file; what the chart writes
			continue
		}
		known = append(known, name)
		if path == "config.eviction" && name == "slots" { // said by evict.slots, which makes the Leases too
			continue
		}
		if of := schema.Properties[name]; of == nil {
			t.Errorf("%s.%s is not in the schema", path, name)
		} else {
			compareFields(t, definitions, path+"."+name, of, field.Type)
		}
	}
	for name := range schema.Properties {
		if !slices.Contains(known, name) {
			t.Errorf("%s.%s is not in the configuration", path, name)
		}
	}
}

// With whatever rules, the policy lets the agent set the pairs that it may want
// and remove those that it may find, and no other.
func TestPairsOfThePolicy(t *testing.T) {
	type settings map[string]any
	taint := func(key, effect string) settings { return settings{"key": key, "effect": effect} }
	rules := []any{
		settings{"condition": "MemoryPressure", "level": "Degraded", "taint": taint("node.kubernetes.io/memory-pressure", "NoSchedule")},
		settings{"condition": "DiskPressure", "level": "Degraded", "taint": taint("example.com/slow-disk", "PreferNoSchedule")},
		settings{"condition": "PIDPressure", "level": "Degraded", "taint": taint("no-prefix", "NoSchedule")},
	}
	critical := settings{"condition": "MemoryPressure", "level": "Critical", "taint": taint("node.kubernetes.io/memory-pressure", "NoExecute")}
	for name, values := range map[string]settings{
		"defaults":   {},
		"own rules":  {"config": settings{"rules": rules}},
		"own prefix": {"config": settings{"keyPrefix": "status-taint.example.com"}},
		"both":       {"config": settings{"rules": rules, "keyPrefix": "status-taint.example.com"}},
		"no rules":   {"config": settings{"rules": []any{}}},
		"for a reason": {"config": settings{"rules": []any{settings{"condition": "DiskPressure", "level": "Degraded", "reasons": []any{"FileSystemReadOnly"},
			"taint": taint("example.com/look", "NoSchedule")}}}},
		"a value": {"config": settings{"keys": "Own", "rules": []any{settings{"condition": "DiskPressure", "level": "Degraded", "severity": 75,
			"taint": settings{"key": "taintlet.dev/disk-pressure", "value": "75", "effect": "NoSchedule"}}}}},
		"evicting":   {"config": settings{"rules": []any{critical}}, "evict": settings{"slots": 3}},
		"start-up":   {"config": settings{"startup": settings{"taint": "example.com/starting"}}},
		"own keys":   {"config": settings{"keys": "Own"}},
		"autoscaler": {"config": settings{"keys": "Own", "keyPrefix": taints.AutoscalerPrefix}},
		"own keys, prefix and rule": {"config": settings{"keys": "Own", "keyPrefix": "status-taint.example.com",
			"rules": []any{settings{"condition": "DiskPressure", "level": "Degraded", "taint": taint("node.kubernetes.io/disk-pressure", "NoSchedule")}}}},
		"one off": {"config": settings{"rules": []any{settings{"condition": "DiskPressure", "level": "Degraded", "taint": settings{"effect": "None"}}}}},
		"overrides": {"config": settings{"rules": rules, "overrides": []any{
			settings{"nodeSelector": settings{"a": "b"}, "rules": []any{}, "disk": settings{"earlyPercent": 20}},
			settings{"nodeSelector": settings{"a": "c"}, "rules": []any{settings{"condition": "DiskPressure", "level": "Degraded", "taint": taint("example.com/pool", "NoSchedule")}}},
			settings{"nodeSelector": settings{"a": "d"}, "memory": settings{"availablePercent": 7}},
		}}},
		"early":      {"config": settings{"memory": settings{"earlyPercent": 10}, "keyPrefix": "example.com"}},
		"early only": {"config": settings{"rules": []any{}, "pid": settings{"earlyPercent": 75}}},
		"retired":    {"retired": []any{taint("example.com/old", "NoSchedule"), taint("node.kubernetes.io/disk-pressure", "NoSchedule")}},
	} {
		file := bed.ValuesFile(t, values)
		wanted, former := pairsOfPolicy(t, bed.Render(t, "-f", file, "--show-only", "templates/admission.yaml"))
		cfg := configOf(t, bed.Render(t, "-f", file, "--show-only", "templates/configmap.yaml"))

		mayWant, mayFind := []string(nil), pairsOf(cfg, cfg.Policy().BuiltInRules())
		for _, policy := range append(cfg.Policy().Elsewhere, cfg.Policy()) {
			for _, rule := range policy.Rules {
				if rule.Level > probes.OK {
					mayWant = append(mayWant, pairsOf(cfg, []decide.Rule{rule})...)
				} else { // which has no stand-in
					mayFind = append(mayFind, rule.Taint.Pair().String())
				}
			}
		}
		for section, c := range map[string]probes.Condition{"memory": probes.MemoryPressure, "disk": probes.DiskPressure, "pid": probes.PIDPressure} {
			if text, _ := json.Marshal(values); regexp.MustCompile(`"` + section + `":{"earlyPercent"`).Match(text) {
				condition, _ := cfg.Policy().Condition(c)
				mayWant = append(mayWant, taints.StandInFor(taints.Pair{Key: condition.TaintKey}, cfg.KeyPrefix).Key+"-early:PreferNoSchedule")
			}
		}
		for _, rule := range cfg.Policy().BuiltInRules() { // as the setting autoscaler had them
			mayFind = append(mayFind, taints.StandInFor(rule.Taint.Pair(), taints.AutoscalerPrefix).String())
		}
		if name == "start-up" {
			mayFind = append(mayFind, "example.com/starting:NoSchedule", "example.com/starting:NoExecute")
		}
		if name == "retired" {
			mayFind = append(mayFind, "example.com/old:NoSchedule", "taintlet.dev/old:NoSchedule")
		}
		mayFind = slices.DeleteFunc(mayFind, func(pair string) bool { return slices.Contains(mayWant, pair) })
		for what, lists := range map[string][2][]string{"wanted": {wanted, mayWant}, "former": {former, mayFind}} {
			got, want := slices.Sorted(slices.Values(lists[0])), slices.Compact(slices.Sorted(slices.Values(lists[1])))
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s pairs\n got %v\nwant %v", name, what, got, want)
			}
		}
	}
}

// pairsOf are the pairs that rules can lead to in any cluster.
func pairsOf(cfg *config.Config, rules []decide.Rule) []string {
	var pairs []string
	for _, rule := range rules {
		pair := rule.Taint.Pair()
		pairs = append(pairs, pair.String())
		for _, prefix := range []string{cfg.KeyPrefix, taints.DefaultStandInPrefix} {
			pairs = append(pairs, taints.StandInFor(pair, prefix).String())
		}
	}
	for _, text := range pairs {
		var pair taints.Pair
		if err := pair.UnmarshalText([]byte(text)); err != nil || !cfg.Policy().Produces(pair) {
			panic("the test has another idea of what is ours than the configuration: " + text)
		}
	}
	return pairs
}

// pairsOfPolicy reads the two lists of the first policy.
func pairsOfPolicy(t *testing.T, manifest string) (wanted, former []string) {
	t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{}
	for _, document := range strings.Split(manifest, "\n---\n") {
		if strings.Contains(document, "kind: ValidatingAdmissionPolicy\n") && strings.Contains(document, "name: taintlet-nodes\n") {
			if err := yaml.UnmarshalStrict([]byte(document), policy); err != nil {
				t.Fatal(err)
			}
		}
	}
	list := func(name string) (pairs []string) {
		i := slices.IndexFunc(policy.Spec.Variables, func(v admissionv1.Variable) bool { return v.Name == name })
		if i < 0 {
			t.Fatalf("no variable %s:\n%s", name, manifest)
		}
		for pair := range strings.SplitSeq(strings.Trim(policy.Spec.Variables[i].Expression, "[ ]"), ",") {
			if pair = strings.Trim(pair, " '"); pair != "" {
				pairs = append(pairs, pair)
			}
		}
		return pairs
	}
	return list("wantedPairs"), list("formerPairs")
}

// configOf reads the configuration that the ConfigMap holds as the agent does.
func configOf(t *testing.T, manifest string) *config.Config {
	t.Helper()
	object := &corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict([]byte(manifest), object); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.HostSchema().Decode([]byte(object.Data["config.yaml"]))
	if err != nil {
		t.Fatalf("%v in\n%s", err, object.Data["config.yaml"])
	}
	return cfg
}

// What the chart is told reaches the agent, large numbers and empty values
// included.
func TestConfiguration(t *testing.T) {
	cfg := configOf(t, bed.Render(t, "--show-only", "templates/configmap.yaml"))
	if disk := fixtures.Section[*config.Disk](cfg); !slices.Equal(disk.Paths, []string{"/", "/scratch"}) || disk.WriteProbe.Directory != "/scratch" {
		t.Errorf("disk = %+v", disk)
	}
	cfg = configOf(t, bed.Render(t, "--show-only", "templates/configmap.yaml", "--set-json",
		`config={"memory": {"availableBytes": 123456789}, "disk": {"paths": ["/"], "writeProbe": {"directory": ""}}, "heartbeat": "0"}`))
	memory, disk := fixtures.Section[*config.Memory](cfg), fixtures.Section[*config.Disk](cfg)
	if memory.AvailableBytes.Value() != 123456789 || len(disk.Paths) != 1 || disk.WriteProbe.Directory != "" || cfg.Heartbeat.Duration != 0 {
		t.Errorf("config = %+v", cfg)
	}
}

// The alerts ask for metrics that the agent has.
func TestRulesAskForMetricsThatExist(t *testing.T) {
	files, err := filepath.Glob("../../agent/metrics/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source []byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, content...)
	}
	rules := bed.Render(t, "--set", "monitoring.prometheusRules=true", "--show-only", "templates/monitoring.yaml")
	if withTaints := bed.Render(t, "--set", "monitoring.prometheusRules=true,monitoring.taintAlerts=true", "--show-only", "templates/monitoring.yaml"); strings.Contains(rules, "TaintletNodeTainted") || !strings.Contains(withTaints, "summary: '{{ $labels.node }} has the taint {{ $labels.key }}:{{ $labels.effect }}.'") {
		t.Errorf("the alert on taints is there without being asked for, or not with it:\n%s", withTaints)
	}
	names := regexp.MustCompile(`taintlet_(\w+)`).FindAllStringSubmatch(rules, -1)
	if len(names) == 0 {
		t.Fatalf("no metrics in\n%s", rules)
	}
	for _, name := range names {
		if !strings.Contains(string(source), `"`+name[1]+`"`) && !strings.Contains(string(source), `"`+name[0]+`"`) {
			t.Errorf("no metric %s", name[0])
		}
	}
}

// Where the DNS pods are is told to the agents, and they may read there and not in
// kube-system.
func TestDNSPodsElsewhere(t *testing.T) {
	text := bed.Render(t, "--set", "dnsPods.namespace=openshift-dns,dnsPods.labelSelector=a.b/c=default")
	for _, want := range []string{`- "--dns-pods=openshift-dns/a.b/c=default"`, "name: taintlet-dns\n  namespace: openshift-dns"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the manifests", want)
		}
	}
	if strings.Contains(text, "namespace: kube-system") {
		t.Error("the manifests grant something in kube-system")
	}
}

// A digest goes before a tag, and a tag before the chart's version.
func TestImage(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	for values, want := range map[string]string{
		"port=4808":                             "image: taintlet/taintlet:0.1.0\n",
		"image.tag=v2":                          "image: taintlet/taintlet:v2\n",
		"image.tag=v2,image.digest=" + digest:   "image: taintlet/taintlet@" + digest + "\n",
		"image.repository=images.example.com/a": "image: images.example.com/a:0.1.0\n",
	} {
		if manifest := bed.Render(t, "--set", values, "--show-only", "templates/daemonset.yaml"); !strings.Contains(manifest, want) {
			t.Errorf("%s: no %s in\n%s", values, want, manifest)
		}
	}
}

// What a pod needs to start at all is the same for the agents and for cleanups.
func TestPodsOfCleanupsStartWhereAgentsDo(t *testing.T) {
	values := `image.pullSecrets=["mine"],nodeSelector={"kubernetes.io/arch": "amd64"},cleanup.stale=true`
	for template, want := range map[string]int{"daemonset": 1, "cleanup": 2} {
		manifest := bed.Render(t, "--show-only", "templates/"+template+".yaml", "--set-json", values)
		for _, part := range []string{"imagePullSecrets:\n", "- name: mine\n", "kubernetes.io/arch: amd64\n"} {
			if got := strings.Count(manifest, part); got != want {
				t.Errorf("%s.yaml: %d pods have %q, want %d", template, got, part, want)
			}
		}
	}
}

// What people set of pods reaches the agents'. Their affinity is added to the exclusion of
// virtual nodes, and their labels do not take the agents out of the DaemonSet.
func TestOptionsOfPods(t *testing.T) {
	set := &appsv1.DaemonSet{}
	decodeFirst(t, bed.Render(t, "--show-only", "templates/daemonset.yaml", "--set-json", strings.ReplaceAll(`podLabels={"team": "nodes", "app.kubernetes.io/name": "other"},podAnnotations={"a": "1"},
priorityClassName="mine",updateStrategy={"type": "OnDelete"},extraArgs=["--verbosity=1"],extraEnv=[{"name": "E", "value": "e"}],
extraVolumes=[{"name": "v", "emptyDir": {}}],extraVolumeMounts=[{"name": "v", "mountPath": "/v"}],disk.mounts=["/data"],
affinity={"podAntiAffinity": {}, "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
{"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]}}}`, "\n", "")), set)
	pod := set.Spec.Template
	agent := pod.Spec.Containers[0]
	for what, ok := range map[string]bool{
		"podLabels":         pod.Labels["team"] == "nodes" && pod.Labels["app.kubernetes.io/name"] == "taintlet",
		"podAnnotations":    pod.Annotations["a"] == "1",
		"priorityClassName": pod.Spec.PriorityClassName == "mine",
		"updateStrategy":    set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType,
		"extraArgs":         slices.Contains(agent.Args, "--verbosity=1"),
		"extraEnv":          slices.ContainsFunc(agent.Env, func(e corev1.EnvVar) bool { return e.Name == "E" && e.Value == "e" }),
		"extraVolumes":      slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "v" && v.EmptyDir != nil }),
		"extraVolumeMounts": slices.ContainsFunc(agent.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "v" && m.MountPath == "/v" }),
		"disk.mounts":       slices.ContainsFunc(agent.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "disk-0" && m.MountPath == "/data" && m.ReadOnly }),
		"affinity":          pod.Spec.Affinity.PodAntiAffinity != nil,
	} {
		if !ok {
			t.Errorf("%s did not reach the pods: %+v", what, pod)
		}
	}
	terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i, own := range []int{1, 0} {
		if term := terms[i]; len(term.MatchExpressions) != own+2 || term.MatchExpressions[own].Key != "type" || len(term.MatchFields) != 1-own {
			t.Errorf("term %d of the affinity is %+v", i, term)
		}
	}
}

// A mounted disk of the host is watched. Without one, no part of the host is mounted.
func TestDisksOfHosts(t *testing.T) {
	cfg := configOf(t, bed.Render(t, "--show-only", "templates/configmap.yaml", "--set-json", `disk.mounts=["/data","/var/log"]`))
	if disk := fixtures.Section[*config.Disk](cfg); !slices.Equal(disk.Paths, []string{"/", "/scratch", "/data", "/var/log"}) {
		t.Errorf("paths are %v", disk.Paths)
	}
	if text := bed.Render(t, "--show-only", "templates/daemonset.yaml"); strings.Contains(text, "hostPath") {
		t.Error("the default DaemonSet mounts a part of the host")
	}
}

// Where every Node carries our taints, a cleanup can be scheduled all the same.
func TestCleanupToleratesWhatItRemoves(t *testing.T) {
	manifest := bed.Render(t, "--show-only", "templates/cleanup.yaml", "--set-json", `retired=[{"key": "example.com/former", "effect": "NoSchedule"}, {"key": "on", "effect": "NoSchedule"}]`,
		"--set-json", `config={"keyPrefix": "example.org", "rules": [{"condition": "PIDPressure", "level": "Degraded", "taint": {"key": "example.com/own", "effect": "NoSchedule"}}]}`)
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		job := &batchv1.Job{}
		if !strings.Contains(document, "\nkind: Job\n") {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(document), job); err != nil {
			t.Fatal(err)
		}
		for key, wanted := range map[string]bool{
			"example.com/own": true, "example.org/own": true, "taintlet.dev/own": true, "example.com/former": true, "on": true, "dedicated": false,
			corev1.TaintNodeMemoryPressure: true, "taintlet.dev/memory-pressure": true, corev1.TaintNodeNotReady: false,
		} {
			for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
				taint := &corev1.Taint{Key: key, Value: "any", Effect: effect}
				if slices.ContainsFunc(job.Spec.Template.Spec.Tolerations, func(toleration corev1.Toleration) bool {
					return toleration.ToleratesTaint(klog.Background(), taint, false)
				}) != wanted {
					t.Errorf("%s:%s tolerated: %t, want %t", key, effect, !wanted, wanted)
				}
			}
		}
		return
	}
	t.Fatalf("no Job in:\n%s", manifest)
}
