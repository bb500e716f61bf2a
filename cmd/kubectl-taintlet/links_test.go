package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/taintlet/taintlet/"

// linked returns the packages that a program links on a platform.
func linked(t *testing.T, goos, program string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", module+program) //nolint:gosec // a program of ours
	command.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// What people run links nothing that reads a host, and no agent. It could not be built
// for their machines, or would bring what they cannot use.
func TestPeoplesProgramLinksNoAgent(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		packages := linked(t, goos, "cmd/kubectl-taintlet")
		for _, other := range []string{"agent", "agent/assembly", "agent/fleet", "agent/hostprobes", "probes/network", "cmd/taintlet"} {
			if slices.Contains(packages, module+other) {
				t.Errorf("%s: it links %s", goos, other)
			}
		}
		if goos == "linux" {
			continue // the folders of the probes hold what reads a host, too
		}
		for _, other := range []string{module + "probes/hostfile", "github.com/shirou/gopsutil/v3/mem"} {
			if slices.Contains(packages, other) {
				t.Errorf("%s: it links %s", goos, other)
			}
		}
	}
}

// What people run is not on every host, nor is the typed clientset, which only they need.
func TestAgentLinksNoneOfThePeoplesPackages(t *testing.T) {
	for _, name := range linked(t, "linux", "cmd/taintlet") {
		if strings.HasPrefix(name, module+"cmd/kubectl-taintlet") || strings.HasPrefix(name, "k8s.io/client-go/kubernetes") {
			t.Errorf("taintlet links %s", name)
		}
	}
}
