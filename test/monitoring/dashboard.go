package monitoring

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Dashboard is what the tests need of Grafana's JSON.
type Dashboard struct {
	UID, Title string
	Panels     []Panel
	Links      []Link
	Templating struct{ List []Variable }
}

// Link leads to another dashboard.
type Link struct{ Title, URL string }

// Variable is what people choose above a dashboard.
type Variable struct{ Name, Type, Query string }

// Panel is one panel of a dashboard.
type Panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ UID string }
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []Query
	FieldConfig              struct {
		Defaults struct {
			Links []Link
		}
		Overrides []struct {
			Matcher    struct{ ID, Options string }
			Properties []struct {
				ID    string
				Value any
			}
		}
	}
	Options struct {
		SortBy []struct{ DisplayName string }
	}
	Transformations []struct {
		ID      string
		Options struct {
			RenameByName  map[string]string
			ExcludeByName map[string]bool
		}
	}
}

// Query is one query of a panel.
type Query struct {
	RefID, Expr, LegendFormat string
	Instant                   bool
}

// processMetrics are the metrics of an agent's process that the dashboards show. In
// synthetic time they say nothing.
func processMetrics() []string {
	return []string{"process_cpu_seconds_total", "process_resident_memory_bytes"}
}

// isOfProcess reports whether the query asks for one of these.
func (q Query) isOfProcess() bool {
	return slices.ContainsFunc(processMetrics(), func(metric string) bool { return strings.Contains(q.Expr, metric) })
}

// folder has what is tested here.
const folder = "../../deploy/monitoring/"

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // a file of the checkout
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ReadDashboard reads one of the dashboards.
func ReadDashboard(t testing.TB, name string) *Dashboard {
	t.Helper()
	text := read(t, folder+name)
	d := &Dashboard{}
	if err := json.Unmarshal([]byte(text), d); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

// On puts in what Grafana puts in for a node.
func (q Query) On(node string) string {
	return strings.NewReplacer("$node", node, "$__rate_interval", (4 * scrapeInterval).String()).Replace(q.Expr)
}

var variablePattern = regexp.MustCompile(`\$\w+`)
