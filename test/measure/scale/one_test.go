package scale

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The hollow agents are those that cmd/taintlet runs: both are put together by
// assembly.New, and nothing else puts any part of an agent together. What this
// package has of its own are probes and a clock.
func TestThereIsNoSecondImplementation(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{".", "../../../cmd/taintlet"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		var source strings.Builder
		for _, path := range slices.DeleteFunc(files, func(path string) bool { return strings.HasSuffix(path, "_test.go") }) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(text)
		}
		if !strings.Contains(source.String(), "assembly.New(") || strings.Contains(source.String(), "agent.Agent") {
			t.Errorf("%s does not put its agents together by assembly.New", folder)
		}
		// Of fleet the type: what a peer answers.
		for _, use := range regexp.MustCompile(`\b(?:agent|decide|fleet|taints)\.[A-Z]\w*`).FindAllString(source.String(), -1) {
			if folder == "." && use != "decide.Boot" && use != "fleet.Fleet" {
				t.Errorf("the hollow fleet uses %s", use)
			}
		}
	}
}

// The scripted probe of the network asks the API server as often as the real one.
func TestTheAPIServerIsAskedAsOften(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../probes/network/probe.go")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("apiEvery = %d * time.Second", int(apiEvery.Seconds()))
	if !strings.Contains(string(text), want) {
		t.Errorf("probes/network/probe.go has no %q", want)
	}
}
