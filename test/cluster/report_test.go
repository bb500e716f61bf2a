package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The report in report.md is what API servers do. When a release no
// longer does it, this fails: then report and map of the keep policy have had their time.
func TestReportOfObjectsInAPatch(t *testing.T) {
	SkipWithoutMutatingAdmissionPolicy(t)
	page, err := os.ReadFile("report.md")
	if err != nil {
		t.Fatal(err)
	}
	report := regexp.MustCompile("(?s)# Report: .*?```yaml\n(.*?)```.*?`kubectl (create [^`]*)`.*?```\n(.*?)```.*?```\n(.*?)```").FindStringSubmatch(string(page))
	if report == nil {
		t.Fatal("report.md has no report of a policy, a command and two outputs")
	}
	policy, command, works, fails := report[1], strings.Fields(report[2]), report[3], report[4]
	if !atLeast(chosenVersion(t), "1.37") {
		fails = works
	}
	c := New(t, Options{WithoutControllerManager: true, WithoutScheduler: true})
	wants := func(policy, want string) {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(path, []byte(policy), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		Eventually(t, "the API server's answer "+want, func() error {
			if out, _ := c.tryKubectl(t, command...); !slices.Equal(strings.Fields(out), strings.Fields(want)) {
				return errors.New(out)
			}
			return nil
		})
	}
	wants(policy, fails)
	wants(regexp.MustCompile(`(?m)^  matchConditions: .*\n`).ReplaceAllString(policy, ""), works)
}
