package monitoring

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/fixtures"
	"github.com/taintlet/taintlet/test/process"
)

var update = flag.Bool("update", false, "write the table of alerts into docs/monitoring.md")

// TestMonitoring plays an incident and asks Prometheus all that the dashboards and
// the alerts ask.
func TestMonitoring(t *testing.T) {
	SkipUnlessRequired(t)
	i := newIncident(t)
	t.Run("dashboards", func(t *testing.T) {
		for _, name := range []string{"fleet.json", "node.json"} {
			checkQueries(t, i, name)
		}
	})
	t.Run("classes of the network", func(t *testing.T) { checkClasses(t, i) })
	t.Run("metrics of the alerts", func(t *testing.T) { checkMetrics(t, i) })
	t.Run("alerts", func(t *testing.T) { checkAlerts(t, i) })
	t.Run("thresholds", func(t *testing.T) { checkThresholds(t, i) })
	t.Run("documentation", func(t *testing.T) { checkDocumented(t, i) })
}

// checkQueries fails for each query that has no data on any of the sick nodes.
func checkQueries(t *testing.T, i *incident, name string) {
	d := ReadDashboard(t, name)
	for _, panel := range d.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("%s: %s asks nothing", name, panel.Title)
		}
		for _, query := range panel.Targets {
			if query.isOfProcess() {
				continue
			}
			found := 0
			for n := range workers {
				expr := query.On(nodeName(n + 1))
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

// checkClasses fails for each class of network checks that is known and has no metric.
func checkClasses(t *testing.T, i *incident) {
	for _, class := range verdict.Classes() {
		series, err := i.prometheus.Query(fmt.Sprintf("count(taintlet_network_class{class=%q})", class), i.sick)
		if err != nil || len(series) != 1 || series[0].Points[0].Value != workers-1 { // one agent is silent
			t.Errorf("the class %s is shown by %v (%v), want %d agents", class, series, err, workers-1)
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
	text := read(t, folder+"rules.yaml")
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	if err := yaml.UnmarshalStrict([]byte(text), &file); err != nil {
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
			if strings.Contains(metric[0], `by="Observe"`) {
				continue // nothing is observed in this incident
			}
			if series, err := i.prometheus.Range(metric[0], i.start, i.end); err != nil || len(series) == 0 {
				t.Errorf("%s: no %s (%v)", r.Alert, metric[0], err)
			}
		}
		if _, err := i.prometheus.Query(r.Expr, i.end); err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
	}
}

// checkAlerts compares the alerts that would have fired with what happened.
func checkAlerts(t *testing.T, i *incident) {
	fired := map[string]bool{}
	for _, r := range rules(t) {
		wait, err := time.ParseDuration(r.For)
		if err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		series, err := i.prometheus.Range(r.Expr, i.start, i.end)
		if err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		for _, s := range series {
			if s.longest() >= wait {
				fired[strings.TrimSpace(r.Alert+" "+r.Labels["severity"]+" "+s.Labels["node"])] = true
			}
		}
	}
	want := []string{
		"TaintletAgentDown warning worker-5", "TaintletConditionUnknown warning worker-3", "TaintletConfigurationRefused warning worker-4",
		"TaintletFleetBrakeOn critical", "TaintletTaintContested warning worker-6", "TaintletTaintHeld warning worker-6", "TaintletTaintHeld warning worker-7",
		"TaintletWriteBudgetSpent warning worker-2",
	}
	if got := slices.Sorted(maps.Keys(fired)); !slices.Equal(got, want) {
		t.Errorf("fired: %q\nwant: %q", got, want)
	}
}

// longest is the longest time for which a series had a value in each scrape.
func (s Series) longest() (longest time.Duration) {
	var since, before time.Time
	for _, point := range s.Points {
		if point.At.Sub(before) > scrapeInterval {
			since = point.At
		}
		before = point.At
		longest = max(longest, before.Sub(since))
	}
	return longest
}

// servedByAProcess is what an agent serves that runs as on a host.
func servedByAProcess(t *testing.T) string {
	t.Helper()
	program, err := process.BuildAgent(t.Context(), t.TempDir(), process.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a := bed.StartAgent(t, program, append(fixtures.NewHost(t).Flags(), "--dry-run=client", "--node-name=worker-1", "--listen=127.0.0.1:0")...)
	a.WaitLog(`msg="probe runs"`) // a sample was taken
	_, page := a.Get("/metrics")
	return page
}

// checkDocumented fails for each metric of the agents that docs/metrics.md lacks, and
// for what promtool finds wrong with a scrape of a real process.
func checkDocumented(t *testing.T, i *incident) {
	scraped := servedByAProcess(t)
	for _, metric := range processMetrics() {
		if !regexp.MustCompile(`(?m)^` + metric + `[ {]`).MatchString(scraped) {
			t.Errorf("an agent does not serve %s", metric)
		}
	}
	lint := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	lint.Stdin = strings.NewReader(scraped)
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
	page := read(t, "../../docs/metrics.md")
	series, err := i.prometheus.Query(`count by (__name__) ({__name__=~"taintlet_.*"})`, i.end)
	if err != nil || len(series) == 0 {
		t.Fatalf("the metrics: %v (%v)", series, err)
	}
	for _, s := range series {
		name := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(s.Labels["__name__"], "")
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/metrics.md lacks %s", name)
		}
	}
}

// checkThresholds fails for each query of "Find your thresholds" that has no number for a
// node whose memory, tasks or disk the incident changed, or that finds a healthy node to be
// in more trouble.
func checkThresholds(t *testing.T, i *incident) {
	page := read(t, "../../docs/configuration.md")
	_, section, _ := strings.Cut(page, "\n## Find your thresholds\n")
	section, _, _ = strings.Cut(section, "\n## ")
	queries := regexp.MustCompile("(?s)```promql\n(.*?)\n```").FindAllStringSubmatch(section, -1)
	if len(queries) < 6 {
		t.Fatalf("%d queries", len(queries))
	}
	for _, query := range queries {
		series, err := i.prometheus.Query(query[1], i.end)
		if err != nil {
			t.Errorf("%s: %v", query[1], err)
			continue
		}
		worst := map[string]float64{} // of each node; less is worse where the least is asked for
		for _, s := range series {
			value, node := s.Points[0].Value, s.Labels["node"]
			if strings.Contains(query[1], "min_over_time") {
				value = -value
			}
			if before, found := worst[node]; !found || value > before || math.IsNaN(value) {
				worst[node] = value
			}
		}
		sick := nodeName(1) // without memory
		if strings.Contains(query[1], "_items") {
			sick = nodeName(2) // with fork bombs
		}
		if healthy := nodeName(workers); len(worst) != workers || !(worst[sick] > worst[healthy]) {
			t.Errorf("%s: %v, want all nodes and %s worse than %s", query[1], worst, sick, healthy)
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

// Whoever sees a Node in the fleet gets to its own dashboard, in the same time and with the
// same data source, and back.
func TestDashboardsLinkToOneAnother(t *testing.T) {
	fleet, node := ReadDashboard(t, "fleet.json"), ReadDashboard(t, "node.json")
	named := map[string]bool{}
	for _, variable := range node.Templating.List {
		named[variable.Name] = true
	}
	leads := func(panel, url string, to *Dashboard) {
		t.Helper()
		path, query, _ := strings.Cut(url, "?")
		if path != "/d/"+to.UID {
			t.Errorf("%s: the link %q does not lead to /d/%s", panel, url, to.UID)
		}
		for parameter := range strings.SplitSeq(query, "&") {
			name, _, _ := strings.Cut(parameter, "=")
			if variable, ok := strings.CutPrefix(name, "var-"); ok && !named[variable] {
				t.Errorf("%s: the link sets the variable %s, which the dashboard lacks", panel, variable)
			}
		}
	}
	for _, panel := range fleet.Panels {
		switch {
		case panel.Type == "table":
			link := panel.linkOf("node")
			leads(panel.Title, link, node)
			for _, needed := range []string{"var-node=${__value.text}", "var-datasource=${datasource}", "${__url_time_range}"} {
				if !strings.Contains(link, needed) {
					t.Errorf("%s: the link of a node lacks %s", panel.Title, needed)
				}
			}
		case strings.Contains(panel.Targets[0].LegendFormat, "{{node}}"):
			if len(panel.FieldConfig.Defaults.Links) != 1 {
				t.Fatalf("%s: the series of a node have no link", panel.Title)
			}
			leads(panel.Title, panel.FieldConfig.Defaults.Links[0].URL, node)
		}
	}
	if len(node.Links) != 1 {
		t.Fatalf("the dashboard of a node has %d links, want that to the fleet", len(node.Links))
	}
	leads(node.Title, node.Links[0].URL, fleet)
}

// Each alert says how bad it is, what happened, and where to read what to do.
func TestAlertsHaveRunbooks(t *testing.T) {
	const page = "https://github.com/taintlet/taintlet/blob/main/docs/troubleshooting.md#"
	text := read(t, "../../docs/troubleshooting.md")
	anchors := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(text, -1) {
		anchor := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		anchors[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	for _, r := range rules(t) {
		if severity := r.Labels["severity"]; !slices.Contains([]string{"info", "warning", "critical"}, severity) {
			t.Errorf("%s has the severity %q", r.Alert, severity)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.For == "" {
			t.Errorf("%s lacks a summary, a description or a time to wait", r.Alert)
		}
		if anchor, ok := strings.CutPrefix(r.Annotations["runbook_url"], page); !ok || !anchors[anchor] {
			t.Errorf("%s: no heading for %q", r.Alert, r.Annotations["runbook_url"])
		}
	}
}

// The table in docs/monitoring.md has each alert with its severity, the time that it waits, and its summary.
func TestAlertsAreDocumented(t *testing.T) {
	const page, begin, end = "../../docs/monitoring.md", "<!-- generated: go test ./test/monitoring -run TestAlertsAreDocumented -update -->\n", "<!-- end -->"
	named := strings.NewReplacer("{{ $labels.node }}", "NODE", "{{ $labels.condition }}", "CONDITION", "{{ $labels.by }}", "CAUSE")
	table := "| alert | severity | after | summary |\n|---|---|---|---|\n"
	for _, r := range rules(t) {
		table += "| `" + r.Alert + "` | " + r.Labels["severity"] + " | " + r.For + " | " + named.Replace(r.Annotations["summary"]) + " |\n"
	}
	before, rest, hasBegin := strings.Cut(read(t, page), begin)
	_, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		t.Fatalf("%s has no table of the alerts", page)
	}
	fixtures.CompareGolden(t, *update, page, before+begin+table+end+after)
}

// Helm reads no file beside the chart, so the chart has a copy.
func TestChartHasTheRules(t *testing.T) {
	rules := read(t, folder+"rules.yaml")
	if copied, err := os.ReadFile("../../deploy/helm/taintlet/rules.yaml"); err != nil || string(copied) != rules {
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
	tests := read(t, folder+"rules_test.yaml")
	for _, r := range rules(t) {
		if !strings.Contains(tests, "alertname: "+r.Alert+"\n    exp_alerts:\n") {
			t.Errorf("no unit test in which %s fires", r.Alert)
		}
	}
}
