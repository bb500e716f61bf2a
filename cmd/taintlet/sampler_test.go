package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/fixtures"
)

// Levels add up: what Degraded asks for stays at Critical. OK and Unknown ask for
// nothing.
func TestWhatIsAskedForAtEachLevel(t *testing.T) {
	t.Parallel()
	cfg, err := config.HostSchema().Load(fixtures.ConfigFile(t, `eviction: {slots: 1}
rules:
- {condition: MemoryPressure, level: Degraded, taint: {key: node.kubernetes.io/memory-pressure, effect: NoSchedule}}
- {condition: MemoryPressure, level: Critical, taint: {key: example.com/memory, value: "950", effect: NoExecute}}
- {condition: PIDPressure, level: Degraded, taint: {key: example.com/pids, effect: NoSchedule}}`))
	if err != nil {
		t.Fatal(err)
	}
	s := &sampler{cfg: cfg}
	const degraded = "{node.kubernetes.io/memory-pressure:NoSchedule kept taintlet.dev/memory-pressure:NoSchedule}"
	for level, want := range map[probes.Level]string{
		probes.Unknown: "[]", probes.OK: "[]", probes.Degraded: "[" + degraded + "]",
		probes.Critical: "[" + degraded + " {example.com/memory=950:NoExecute direct }]",
	} {
		c := s.ask(probes.Observation{Condition: probes.MemoryPressure, Level: level})
		if got := fmt.Sprint(c.Taints); got != want {
			t.Errorf("%s asks for %s, want %s", level, got, want)
		}
	}
}

// Conditions that others report have no probe: once names them, and samples the others.
func TestOnceNamesConditionsOfOthers(t *testing.T) {
	t.Parallel()
	s := &sampler{config: fixtures.ConfigFile(t, "conditions: [{type: KernelDeadlock}]\n"), host: probes.Host{Root: "/", Proc: "/proc", Sys: "/sys"}}
	if err := s.load(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r := report{Conditions: []condition{{Observation: probes.Observation{Condition: probes.MemoryPressure, Level: probes.OK}}}, Reported: s.reported}
	if err := r.print("table", &out); err != nil {
		t.Fatal(err)
	}
	if want := "KernelDeadlock is a Node condition of another program. Only the agent reads it."; !strings.Contains(out.String(), want) || len(s.probes) != 4 || !r.isWell() {
		t.Errorf("%d probes:\n%s", len(s.probes), out.String())
	}
}

// Many kernels have PSI and are told at boot not to keep it: once says so.
func TestOnceSaysThatStallsAreNotSeen(t *testing.T) {
	t.Parallel()
	const note = "This host has no PSI (/proc/pressure), so stalls are not detected."
	host := fixtures.NewHost(t)
	for _, name := range []string{"with", "without"} {
		if host.Write("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"); name == "without" {
			host.Remove("proc/pressure/memory")
		}
		s := &sampler{host: probes.Host{Root: host.Root, Proc: host.Dir + "/proc", Sys: host.Dir + "/sys"}, cfg: config.Default()}
		var out strings.Builder
		if err := s.sample(t.Context()).print("table", &out); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), note) != (name == "without") {
			t.Errorf("%s PSI:\n%s", name, out.String())
		}
	}
}
