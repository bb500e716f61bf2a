package test

import (
	"fmt"
	"os"
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

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
