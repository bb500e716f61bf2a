package monitoring

import (
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// TestMonitoring plays an incident and asks Prometheus all that the dashboards and
// the alerts ask. With TAINTLET_MONITORING_PICTURES it also draws the dashboards
// into that folder.
func TestMonitoring(t *testing.T) {
	SkipUnlessRequired(t)
	i := newIncident(t)
	i.run()
	t.Run("dashboards", func(t *testing.T) {
		for _, name := range []string{"fleet.json", "node.json"} {
			checkQueries(t, i, name)
		}
	})
	t.Run("metrics of the alerts", func(t *testing.T) { checkMetrics(t, i) })
	t.Run("alerts", func(t *testing.T) { checkAlerts(t, i) })
	t.Run("documentation", func(t *testing.T) { checkDocumented(t, i) })
	if into := os.Getenv("TAINTLET_MONITORING_PICTURES"); into != "" && !t.Failed() {
		draw(t, i, "fleet.json", filepath.Join(into, "monitoring-fleet.svg"), i.sick, "")
		draw(t, i, "node.json", filepath.Join(into, "monitoring-node.svg"), i.end, worker(1))
	}
}

// checkQueries fails for each query that has no data on any of the sick nodes.
func checkQueries(t *testing.T, i *incident, name string) {
	d := ReadDashboard(t, name)
	for _, panel := range d.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("%s: %s asks nothing", name, panel.Title)
		}
		for _, query := range panel.Targets {
			found := 0
			for n := range workers {
				expr := query.On(worker(n + 1))
				if left := variablePattern.FindString(expr); left != "" {
					t.Fatalf("%s: %s: the variable %s is not known: %s", name, panel.Title, left, query.Expr)
				}
				series, err := i.prometheus.Range(expr, i.start, i.end)
				if err != nil {
					t.Fatalf("%s: %s: %v", name, panel.Title, err)
				}
				for _, s := range series {
					found += len(slices.DeleteFunc(s.Points, func(p Point) bool { return math.IsNaN(p.Value) }))
				}
			}
			if found == 0 {
				t.Errorf("%s: %s: no data for %s", name, panel.Title, query.Expr)
			}
		}
	}
	for _, variable := range d.Templating.List {
		label := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(variable.Query)
		if variable.Type != "query" {
			continue
		}
		if label == nil {
			t.Fatalf("%s: the variable %s asks %q", name, variable.Name, variable.Query)
		}
		values, err := i.prometheus.Query("count by ("+label[2]+") ("+label[1]+")", i.sick)
		if err != nil || len(values) < workers-1 {
			t.Errorf("%s: the variable %s has the values %v (%v)", name, variable.Name, values, err)
		}
	}
}

// rule is what is tested of an alert.
type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	text, err := os.ReadFile(folder + "rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("no rules")
	}
	return all
}

var metricPattern = regexp.MustCompile(`\b(taintlet_\w+|up)\b(\{[^}]*\})?`)

// checkMetrics fails for each metric of a rule that no agent has.
func checkMetrics(t *testing.T, i *incident) {
	for _, r := range rules(t) {
		metrics := metricPattern.FindAllStringSubmatch(r.Expr, -1)
		if len(metrics) == 0 {
			t.Errorf("%s asks for no metric", r.Alert)
		}
		for _, metric := range metrics {
			if series, err := i.prometheus.Range(metric[0], i.start, i.end); err != nil || len(series) == 0 {
				t.Errorf("%s: no %s (%v)", r.Alert, metric[0], err)
			}
		}
		if _, err := i.prometheus.Query(r.Expr, i.end); err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
	}
}

// checkAlerts compares the alerts that fired with what happened.
func checkAlerts(t *testing.T, i *incident) {
	series, err := i.prometheus.Range(`count by (alertname, node, condition, severity) (ALERTS{alertstate="firing"})`, i.start, i.end)
	if err != nil {
		t.Fatal(err)
	}
	fired := map[string]bool{}
	for _, s := range series {
		fired[strings.TrimSpace(s.Labels["alertname"]+" "+s.Labels["severity"]+" "+s.Labels["node"])] = true
	}
	want := []string{
		"TaintletAgentDown warning worker-5", "TaintletConditionUnknown warning worker-3", "TaintletConfigurationRefused warning worker-4",
		"TaintletManyAgentsDown critical", "TaintletWriteBudgetSpent warning worker-1", "TaintletWriteBudgetSpent warning worker-2",
	}
	if got := slices.Sorted(maps.Keys(fired)); !slices.Equal(got, want) {
		t.Errorf("fired: %q\nwant: %q", got, want)
	}
}

// checkDocumented fails for each metric of the agents that docs/metrics.md lacks, and
// for what promtool finds wrong with a scrape.
func checkDocumented(t *testing.T, i *incident) {
	_, scraped := i.agents[worker(1)].Get("/metrics")
	lint := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	lint.Stdin = strings.NewReader(scraped)
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	series, err := i.prometheus.Query(`count by (__name__) ({__name__=~"taintlet_.*"})`, i.end)
	if err != nil || len(series) == 0 {
		t.Fatalf("the metrics: %v (%v)", series, err)
	}
	for _, s := range series {
		name := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(s.Labels["__name__"], "")
		if !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("docs/metrics.md lacks %s", name)
		}
	}
}

// Grafana puts panels that overlap or share an ID somewhere else.
func TestPanelsLieSideBySide(t *testing.T) {
	for _, name := range []string{"fleet.json", "node.json"} {
		taken, ids := map[[2]int]string{}, map[int]bool{}
		for _, p := range ReadDashboard(t, name).Panels {
			if p.Title == "" || p.Description == "" || p.Datasource.UID != "${datasource}" || ids[p.ID] {
				t.Errorf("%s: %s lacks a title, a description, the data source or an ID of its own", name, p.Title)
			}
			ids[p.ID] = true
			for x := range p.GridPos.W {
				for y := range p.GridPos.H {
					at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
					if other := taken[at]; other != "" || at[0] >= 24 {
						t.Fatalf("%s: %s lies on %q or outside", name, p.Title, other)
					}
					taken[at] = p.Title
				}
			}
		}
	}
}

// Each alert says how bad it is, what happened, and where to read what to do.
func TestAlertsHaveRunbooks(t *testing.T) {
	const page = "https://github.com/taintlet/taintlet/blob/main/docs/troubleshooting.md#"
	text, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	explained, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(string(text), -1) {
		anchor := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		anchors[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	for _, r := range rules(t) {
		if severity := r.Labels["severity"]; severity != "warning" && severity != "critical" {
			t.Errorf("%s has the severity %q", r.Alert, severity)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.For == "" {
			t.Errorf("%s lacks a summary, a description or a time to wait", r.Alert)
		}
		if anchor, ok := strings.CutPrefix(r.Annotations["runbook_url"], page); !ok || !anchors[anchor] {
			t.Errorf("%s: no heading for %q", r.Alert, r.Annotations["runbook_url"])
		}
		if !strings.Contains(string(explained), "| `"+r.Alert+"` | "+r.Labels["severity"]+" |") {
			t.Errorf("docs/monitoring.md lacks a row of %s, %s", r.Alert, r.Labels["severity"])
		}
	}
}

// Helm reads no file beside the chart, so the chart has a copy.
func TestChartHasTheRules(t *testing.T) {
	rules, err := os.ReadFile(folder + "rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if copied, err := os.ReadFile("../../deploy/helm/taintlet/rules.yaml"); err != nil || string(copied) != string(rules) {
		t.Errorf("deploy/helm/taintlet/rules.yaml is not deploy/monitoring/rules.yaml (%v): run make manifests", err)
	}
}

// The rules are valid, and their unit tests pass. Each alert has one.
func TestRules(t *testing.T) {
	SkipUnlessRequired(t)
	for _, args := range [][]string{{"check", "rules", folder + "rules.yaml"}, {"test", "rules", folder + "rules_test.yaml"}} {
		if out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput(); err != nil { //nolint:gosec // our own files
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	tests, err := os.ReadFile(folder + "rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules(t) {
		if !strings.Contains(string(tests), "alertname: "+r.Alert+"\n    exp_alerts:\n") {
			t.Errorf("no unit test in which %s fires", r.Alert)
		}
	}
}

// draw writes the picture of a dashboard as it looks at a moment of the incident.
func draw(t *testing.T, i *incident, name, path string, at time.Time, node string) {
	t.Helper()
	svg, err := view{i.prometheus, i.start, at, node}.picture(ReadDashboard(t, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, svg, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Logf("wrote %s", path)
}
