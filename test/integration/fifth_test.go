package integration

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	taintlet "github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/hostprobes"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// A fifth condition is a probe ...
type thermometer struct {
	probes.PeriodOnly

	file  string
	below float64
}

func (*thermometer) Condition() probes.Condition { return "Frost" }

func (p *thermometer) Observe(context.Context) probes.Observation {
	o := probes.Observation{Condition: "Frost", Level: probes.OK, Reason: "WarmEnough"}
	text, err := os.ReadFile(p.file)
	if err != nil {
		return probes.UnknownBecause("Frost", err)
	}
	degrees, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	if err != nil {
		return probes.UnknownBecause("Frost", err)
	}
	if degrees < p.below {
		o.Level, o.Reason = probes.Degraded, "TooCold"
	}
	o.Message = fmt.Sprintf("%g °C, threshold %g °C", degrees, p.below)
	return o
}

// ... a section ...
type frost struct {
	config.Sampling

	Below float64 `json:"below"`
}

func (f *frost) Validate(at *field.Path) field.ErrorList {
	if f.Below < -100 {
		return field.ErrorList{field.Invalid(at.Child("below"), f.Below, "must be -100 or more")}
	}
	return nil
}

// ... an entry ...
func frostSchema() config.Schema {
	return append(config.HostSchema(), config.Definition{
		Name: "Frost", Field: "frost", TaintKey: "example.com/frost",
		NewSection: func() config.Section { return &frost{Sampling: config.DefaultSampling(time.Second, 2, 3), Below: 3} },
	})
}

// chartWith returns a copy of the chart that knows one condition more, in the one list
// that its policies read.
func chartWith(t *testing.T, added config.Definition) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(bed.ChartFolder)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "templates/_helpers.tpl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, list, found := strings.Cut(string(text), "{{- define \"taintlet.conditions\" -}}\n[\n")
	list, after, ends := strings.Cut(list, "\n]\n")
	if !found || !ends {
		t.Fatal("the chart's list of conditions is not found")
	}
	entry := fmt.Sprintf(",\n  {\"name\": %q, \"key\": %q}", added.Name, added.TaintKey)
	extended := before + "{{- define \"taintlet.conditions\" -}}\n[\n" + list + entry + "\n]\n" + after
	if err := os.WriteFile(file, []byte(extended), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// ... and its probe of a host.
func probesWithFrost(host probes.Host) func(config.Condition) probes.Probe {
	return func(c config.Condition) probes.Probe {
		if f, ok := c.Section.(*frost); ok {
			return &thermometer{file: filepath.Join(host.Proc, "temperature"), below: f.Below}
		}
		return hostprobes.NewProbe(host)(c)
	}
}

// A condition that this project does not know goes from its observation to its
// taint, its Node condition and back, beside the four others. The agent has the
// permissions that the chart gives and runs under its policies, which know the
// condition by the chart's list.
func TestFifthCondition(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	node, host := c.Register(t, "fifth"), fixtures.NewHost(t)
	temperature := func(degrees string) { host.Write("proc/temperature", degrees+"\n") }
	temperature("20")

	schema := frostSchema()
	cfg, err := schema.Decode([]byte("apiVersion: " + config.APIVersion + "\nkind: " + config.Kind +
		"\nfrost: {below: 5, debounce: {clearAfter: 1s}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Decode([]byte("frost: {belw: 5}")); err == nil || !strings.Contains(err.Error(), `frost.belw: Forbidden: unknown field; did you mean below?`) {
		t.Errorf("a wrong field of the section: %v", err)
	}
	const namespace = "fifth"
	createNamespace(t, c, namespace)
	bed.InstallRules(t.Context(), t, c, chartWith(t, schema[len(schema)-1]), namespace, map[string]any{})
	runInProcess(t, identityIn(t, c, namespace, node.Name), namespace, node.Name, host, cfg)

	is := func(status corev1.ConditionStatus) func(*corev1.Node) bool {
		return func(n *corev1.Node) bool {
			condition := cluster.Condition(n, "HostFrost")
			return condition != nil && condition.Status == status
		}
	}
	waitNode(t, c, node.Name, is(corev1.ConditionFalse))
	temperature("-4")
	cold := waitNode(t, c, node.Name, cluster.HasTaint("example.com/frost", corev1.TaintEffectNoSchedule))
	if len(cold.Spec.Taints) != 1 {
		t.Errorf("taints %v", cold.Spec.Taints)
	}
	waitNode(t, c, node.Name, is(corev1.ConditionTrue))
	c.WaitAgentEvent(t, node.Name, "HostFrostDegraded", "-4 °C, threshold 5 °C; sets taint example.com/frost:NoSchedule")
	temperature("20")
	waitNode(t, c, node.Name, func(n *corev1.Node) bool {
		return len(n.Spec.Taints) == 0 && is(corev1.ConditionFalse)(n)
	})
}

// runInProcess runs an agent in this process until the test ends.
func runInProcess(t *testing.T, as *rest.Config, namespace, node string, host *fixtures.Host, cfg *config.Config) {
	t.Helper()
	client, err := apiserver.NewClient(as, node)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	recorder, stop := client.StartRecorder(ctx, func() time.Duration { return 0 }, slog.New(slog.DiscardHandler))
	a := &taintlet.Agent{
		Config: cfg, Client: client, Slots: client.Slots(namespace), Log: slog.New(slog.DiscardHandler),
		NewProbe: probesWithFrost(probes.Host{Root: host.Root, Proc: filepath.Join(host.Dir, "proc"), Sys: filepath.Join(host.Dir, "sys")}),
		Recorder: recorder,
		Instance: "in-process", Boot: decide.Boot{ID: "boot", At: time.Now()}, Now: time.Now,
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		stop()
	})
}
