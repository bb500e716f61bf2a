package test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// README.md has the requests and limits of the chart.
func TestREADMEHasTheChartsResources(t *testing.T) {
	var values struct {
		Resources struct{ Requests, Limits map[string]string }
	}
	if err := yaml.Unmarshal([]byte(readText(t, "../deploy/helm/taintlet/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	r := values.Resources
	want := fmt.Sprintf("Each pod requests %s CPU and %s memory. Its memory limit is %s. It has no CPU limit.", r.Requests["cpu"], r.Requests["memory"], r.Limits["memory"])
	if r.Limits["cpu"] != "" {
		t.Errorf("the chart limits CPU to %s, README.md says that nothing does", r.Limits["cpu"])
	}
	if text := strings.Join(strings.Fields(readText(t, "../README.md")), " "); !strings.Contains(text, want) {
		t.Errorf("README.md lacks %q", want)
	}
}

// The picture of one incident in README.md is what kubectl shows of real agents: each paragraph
// of it is in a recording of test/integration, apart from times.
func TestREADMEShowsARecordedIncident(t *testing.T) {
	plain := func(text string) string {
		return strings.Join(strings.Fields(regexp.MustCompile(`\b\d\d:\d\d UTC|\b\d+ min\b`).ReplaceAllString(text, "…")), " ")
	}
	_, picture, _ := strings.Cut(readText(t, "../README.md"), "```\n")
	picture, _, _ = strings.Cut(picture, "```")
	states := strings.Split(picture, "\n\n")
	recordings := []string{"well", "bad-memory", "clearing", "well"}
	if len(states) != len(recordings) {
		t.Fatalf("%d states, want %d", len(states), len(recordings))
	}
	for i, state := range states {
		recorded := plain(readText(t, "integration/testdata/describe-"+recordings[i]+".txt"))
		taints, condition, _ := strings.Cut(state, "\n")
		for _, part := range []string{taints, condition} {
			if !strings.Contains(recorded, plain(part)) || plain(part) == "" {
				t.Errorf("%s does not show\n%s", recordings[i], part)
			}
		}
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
