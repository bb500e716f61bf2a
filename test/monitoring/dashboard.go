package monitoring

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Dashboard is what the pictures need of Grafana's JSON.
type Dashboard struct {
	Title      string
	Panels     []Panel
	Templating struct{ List []Variable }
}

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
			Unit     string
			Min, Max *float64
			Custom   struct {
				LineInterpolation string
				// ScaleDistribution has the base of a logarithmic scale; 0: it is linear.
				ScaleDistribution struct{ Log float64 }
			}
			Mappings []struct{ Options map[string]Shown }
			// Thresholds of a stat, the lowest first.
			Thresholds struct {
				Steps []struct {
					Color string
					Value *float64
				}
			}
		}
		Overrides []struct {
			Matcher    struct{ ID, Options string }
			Properties []struct {
				ID    string
				Value any
			}
		}
	}
	Transformations []struct {
		ID      string
		Options struct{ RenameByName map[string]string }
	}
}

// Shown is how a value is shown in place of its number.
type Shown struct{ Text, Color string }

// Query is one query of a panel.
type Query struct {
	RefID, Expr, LegendFormat string
	Instant                   bool
}

// The dashboards give two queries a meaning by their refID: what begins with
// threshold is a dashed line, and band shades the time in which it is 1.
func (q Query) isThreshold() bool { return strings.HasPrefix(q.RefID, "threshold") }
func (q Query) isBand() bool      { return q.RefID == "band" }

// folder has what is tested here.
const folder = "../../deploy/monitoring/"

// ReadDashboard reads one of the dashboards.
func ReadDashboard(t testing.TB, name string) *Dashboard {
	t.Helper()
	text, err := os.ReadFile(folder + name)
	if err != nil {
		t.Fatal(err)
	}
	d := &Dashboard{}
	if err := json.Unmarshal(text, d); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

// On puts in what Grafana puts in for a node.
func (q Query) On(node string) string {
	return strings.NewReplacer("$node", node, "$__rate_interval", "20s").Replace(q.Expr)
}

var variablePattern = regexp.MustCompile(`\$\w+`)

// legend is the name of a series.
func (q Query) legend(labels map[string]string) string {
	if q.LegendFormat == "" {
		return labels["node"]
	}
	text := regexp.MustCompile(`{{\s*(\w+)\s*}}`).ReplaceAllStringFunc(q.LegendFormat, func(found string) string {
		return labels[strings.Trim(found, "{} ")]
	})
	if text = strings.TrimSpace(text); text == "" {
		return "not known"
	}
	return text
}
