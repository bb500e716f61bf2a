package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// divided is a period of the defaults, at the pace of this run.
func divided(seconds float64) string {
	return (time.Duration(seconds / pace * float64(time.Second)).Round(time.Microsecond)).String()
}

// variants are what configurations that follow one another differ in: some make new
// probes, some do not.
func variants() []string {
	return []string{"stalledPercent: 15", "stalledPercent: 20", "stalledPercent: 15, availablePercent: 6", "stalledPercent: 16"}
}

// refused are configurations that are not valid.
func refused() []string {
	return []string{"stalledPercent: many", "noSuchField: 1", "availablePercent: 400", "period: [", "badSamples: 2"}
}

// configure writes the agent's configuration: the defaults with all periods divided,
// a rule that evicts, and that for memory.
func (w *week) configure(memory string) error {
	debounce := fmt.Sprintf("debounce: {clearAfter: %s, maxClearAfter: %s, criticalAfter: %s}",
		divided(120), divided(3600), divided(60))
	text := "apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\n" +
		fmt.Sprintf("memory: {period: %s, %s, %s}\n", divided(1), memory, debounce) +
		fmt.Sprintf("disk: {period: %s, paths: [/, /scratch], writeProbe: {directory: /scratch}, %s}\n", divided(4), debounce) +
		fmt.Sprintf("pid: {period: %s, %s}\n", divided(4), debounce) +
		fmt.Sprintf("network: {period: %s, %s}\n", divided(networkPeriod), debounce) +
		fmt.Sprintf("writeBudget: {interval: %s}\n", divided(600)) +
		fmt.Sprintf("heartbeat: %s\n", divided(heartbeatPeriod)) +
		fmt.Sprintf("eviction: {slots: 2, cooldown: 2s, interval: %s}\n", divided(3600)) + rules()
	return w.writeConfig(text)
}

// rules are the built-in ones, and one that evicts.
func rules() string {
	text := "rules:\n"
	for _, r := range [][3]string{
		{"MemoryPressure", "Degraded", "memory-pressure, effect: NoSchedule"}, {"DiskPressure", "Degraded", "disk-pressure, effect: NoSchedule"},
		{"PIDPressure", "Degraded", "pid-pressure, effect: NoSchedule"}, {"NetworkUnavailable", "Degraded", "network-unavailable, effect: NoSchedule"},
		{"PIDPressure", "Critical", "pid-pressure, effect: NoExecute"},
	} {
		text += fmt.Sprintf("- {condition: %s, level: %s, taint: {key: node.kubernetes.io/%s}}\n", r[0], r[1], r[2])
	}
	return text
}

// writeConfig puts a file in place of the agent's at once, as a ConfigMap's volume
// does.
func (w *week) writeConfig(text string) error {
	next := filepath.Join(filepath.Dir(w.own), "next-"+strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(next, []byte(text), 0o644); err != nil { //nolint:gosec // the agent is another user
		return err
	}
	return os.Rename(next, w.own)
}
