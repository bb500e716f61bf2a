package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/measure"
)

// render is the result as people read it.
func render(f *figures, lines []line) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("# %d nodes, %s\n\n", f.Nodes, f.Date)
	p("%s\n", f.Origin)
	p("Written by `make scale NODES=%d`; [docs/scale.md](../../../../docs/scale.md) says what it means.\n", f.Nodes)
	p("\n## Must hold\n\n| demand | measured | holds |\n|---|---|---|\n")
	for _, l := range lines {
		p("| %s | %s | %s |\n", l.what, l.measured, l.verdict)
	}
	renderIdle(p, f)
	renderCost(p, f)
	renderIncidents(p, f)
	renderAdmission(p, f)
	renderHeld(p, f)
	renderRestarts(p, f)
	p("\n## kubectl taintlet status over all nodes\n\n| run | time | most RSS | lines |\n|---|---|---|---|\n")
	for _, s := range f.Status {
		p("| %s | %s | %.1f MiB | %d |\n", s.Args, milliseconds(s.Took), s.RSS, s.Lines)
	}
	return b.String()
}

type printer func(format string, args ...any)

func renderIdle(p printer, f *figures) {
	q := f.Quiet
	p("\n## Idle\n\nRequests per node and hour, by the audit log over %s. Heartbeats: %.2f by the time between two of one node.\n\n", seconds(duration(q.Seconds)), q.Heartbeats)
	p("| request | per node and hour |\n|---|---|\n")
	for _, kind := range slices.Sorted(maps.Keys(q.PerHour)) {
		p("| %s | %.2f |\n", kind, q.PerHour[kind])
	}
	p("| **all** | **%.2f** |\n", total(q.PerHour))
	p("\nBodies per node and hour: %.1f kB sent, %.1f kB received. Answers 429: %d.\n", q.Sent/1000, q.Received/1000, q.TooMany)
	p("A foreign client meanwhile: %s. Node leases: %s.\n", latencyText(q.Foreign), leaseText(q.Leases))
}

func renderCost(p printer, f *figures) {
	p("\n## What it costs\n\nCores are CPU seconds a second, live memory is the API server's heap after a collection, and its stacks.\n")
	p("The harness, the foreign client and the hollow agents are this program's own: what stands in for the hosts.\n\n")
	p("| process | nodes alone | with a bare watch each | with an agent each |\n|---|---|---|---|\n")
	names := []string{cluster.APIServer, cluster.Etcd, cluster.ControllerManager, cluster.Scheduler, harnessName, foreignName, agentsName, othersName}
	for _, name := range names {
		p("| %s, cores | %.4f | %.4f | %.4f |\n", name, f.Base.Cores[name], f.Watches.Cores[name], f.Idle.Cores[name])
	}
	p("| kube-apiserver, RSS | %.0f MiB | %.0f MiB | %.0f MiB |\n", f.Base.RSS[cluster.APIServer], f.Watches.RSS[cluster.APIServer], f.Idle.RSS[cluster.APIServer])
	p("| kube-apiserver, live memory | %.1f MiB | %.1f MiB | %.1f MiB |\n", f.Base.Live, f.Watches.Live, f.Idle.Live)
	p("| kube-apiserver, goroutines | %.0f | %.0f | %.0f |\n", f.Base.Goroutines, f.Watches.Goroutines, f.Idle.Goroutines)
	p("| etcd, RSS | %.0f MiB | %.0f MiB | %.0f MiB |\n", f.Base.RSS[cluster.Etcd], f.Watches.RSS[cluster.Etcd], f.Idle.RSS[cluster.Etcd])
	renderPerThousand(p, f)
}

// tellingNodes are so many that what they cost is not lost in the noise.
const tellingNodes = 500

func renderPerThousand(p printer, f *figures) {
	const apiEverySeconds = int(apiEvery / time.Second)
	p("\nA TLS connection costs the API server %.3f ms of CPU. 1,000 agents make one every %d s each, which is %.4f cores.\n",
		f.Handshake, apiEverySeconds, f.Handshake/apiEvery.Seconds())
	if f.Nodes < tellingNodes {
		p("\nWith fewer than %d nodes the differences between the columns are noise.\n", tellingNodes)
		return
	}
	per := 1000 / float64(f.Nodes)
	p("\nSo 1,000 of them cost the API server, beside the cluster with nodes alone:\n\n| | cores | RSS | live memory | goroutines |\n|---|---|---|---|---|\n")
	for _, of := range []struct {
		name string
		c    cost
	}{{"bare watches", f.Watches}, {"agents", f.Idle}} {
		p("| %s | %.4f | %.0f MiB | %.1f MiB | %.0f |\n", of.name, per*(of.c.Cores[cluster.APIServer]-f.Base.Cores[cluster.APIServer]),
			per*(of.c.RSS[cluster.APIServer]-f.Base.RSS[cluster.APIServer]), per*(of.c.Live-f.Base.Live), per*(of.c.Goroutines-f.Base.Goroutines))
	}
}

func renderIncidents(p printer, f *figures) {
	if len(f.Incidents) == 0 {
		return
	}
	p("\n## Mass incidents\n\nThe memory of all hosts is bad at the same moment. Figures are those of the %s after it.\n\n", seconds(duration(f.Incidents[0].Cost.Seconds)))
	p("| | %s |\n|%s\n", strings.Join(column(f, func(in incident) string { return in.Name }), " | "), strings.Repeat("---|", 1+len(f.Incidents)))
	for _, row := range []struct {
		name string
		of   func(in incident) string
	}{
		{"tainted", func(in incident) string { return fmt.Sprint(in.Tainted) }},
		{"last taint", func(in incident) string { return seconds(in.Last) }},
		{"requests of agents", func(in incident) string { return fmt.Sprint(in.Requests) }},
		{"most in one second", func(in incident) string { return fmt.Sprint(in.Peak) }},
		{"429 and 5xx to agents", func(in incident) string { return fmt.Sprintf("%d and %d", in.TooMany, in.Failed) }},
		{"bodies sent and received", func(in incident) string {
			return fmt.Sprintf("%.1f and %.1f MB", float64(in.Sent)/1e6, float64(in.Received)/1e6)
		}},
		{"foreign client", func(in incident) string { return latencyText(in.Foreign) }},
		{"node leases", func(in incident) string { return leaseText(in.Leases) }},
		{"API server, cores", func(in incident) string { return fmt.Sprintf("%.3f", in.Cost.Cores[cluster.APIServer]) }},
		{"hollow agents, cores", func(in incident) string { return fmt.Sprintf("%.3f", in.Cost.Cores[agentsName]) }},
		{"other programs of the machine, cores", func(in incident) string { return fmt.Sprintf("%.3f", in.Cost.Cores[othersName]) }},
		{"last taint gone after recovery", func(in incident) string { return seconds(in.Cleared) }},
	} {
		p("| %s | %s |\n", row.name, strings.Join(column(f, row.of), " | "))
	}
	kinds := map[string]float64{}
	for _, in := range f.Incidents {
		maps.Copy(kinds, in.PerAgent)
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		p("| %s, per agent | %s |\n", kind, strings.Join(column(f, func(in incident) string { return fmt.Sprintf("%.2f", in.PerAgent[kind]) }), " | "))
	}
}

func renderAdmission(p printer, f *figures) {
	p("\n## Admission\n\n| | time |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(f.Admission)) {
		p("| %s | %.3f ms |\n", name, f.Admission[name])
	}
}

func column(f *figures, of func(incident) string) []string {
	var all []string
	for _, in := range f.Incidents {
		all = append(all, of(in))
	}
	return all
}

func renderHeld(p printer, f *figures) {
	p("\n## What kept pairs cost the controller manager\n\nThe client of its node controller makes at most 20 requests a second.\n\n")
	p("| held nodes | patches of nodes a minute | kube-controller-manager, cores | API server, cores |\n|---|---|---|---|\n")
	p("| 0, no incident | | %.4f | %.4f |\n", f.Idle.Cores[cluster.ControllerManager], f.Idle.Cores[cluster.APIServer])
	for _, h := range f.Held {
		p("| %d | %.1f | %.4f | %.4f |\n", h.Nodes, h.Patches, h.Cores, h.APIServer)
	}
}

func renderRestarts(p printer, f *figures) {
	s, o, c := f.Restart, f.Outage, f.Rollout
	p("\n## Restarts and a configuration\n\n| | rolling restart, %d nodes tainted | crash of the API server | configuration rolled out |\n|---|---|---|---|\n", s.Held)
	p("| took | %s | %s until ready; %s until all agents watch | %s until in force on all |\n", seconds(s.Took), seconds(o.Down), seconds(o.Back), seconds(c.InForce))
	p("| changes of taints | %d | %d | |\n", s.TaintChanges, o.TaintChanges)
	p("| most patches by one agent but for heartbeats: Node, status, in all | %d, %d, %d | | |\n", s.MostWrites, s.MostStatus, s.MostInAll)
	p("| requests of agents | %d | %d | %d |\n", s.Requests, o.Requests, c.Requests)
	p("| most in one second | %d | %d | %d |\n", s.Peak, o.Peak, c.Peak)
	p("| 429 to agents | %d | %d | |\n", s.TooMany, o.TooMany)
	p("| foreign client | %s | %s | %s |\n", latencyText(s.Foreign), latencyText(o.Foreign), latencyText(c.Foreign))
	p("| node leases | %s | %s | %s |\n", leaseText(s.Leases), leaseText(o.Leases), leaseText(c.Leases))
	p("\nRequests per agent, on average:\n\n| request | rolling restart | crash of the API server |\n|---|---|---|\n")
	kinds := maps.Clone(s.PerAgent)
	maps.Copy(kinds, o.PerAgent)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		p("| %s | %.2f | %.2f |\n", kind, s.PerAgent[kind], o.PerAgent[kind])
	}
}

func latencyText(l latency) string {
	return fmt.Sprintf("%d requests, %d × 429, %d failed, p50 %s, p99 %s, most %s", l.Requests, l.TooMany, l.Failed, milliseconds(l.P50), milliseconds(l.P99), milliseconds(l.Max))
}

func leaseText(l leaseReport) string {
	return fmt.Sprintf("%d renewals, %d late, p99 %s, most %s", l.Requests, l.Late, milliseconds(l.P99), milliseconds(l.Max))
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// writeResults writes the text and, for runs of other sizes, the figures.
func writeResults(folder string, f *figures, text string) error {
	path, err := measure.Write(folder, fmt.Sprintf("%s-%d", f.Date, f.Nodes), f, text)
	if err == nil {
		measure.Say("written to %s", path)
	}
	return err
}

// readResults returns the newest figures of each other size, by size.
func readResults(folder string, own *figures) ([]*figures, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	newest := map[int]*figures{}
	for _, path := range paths {
		text, err := os.ReadFile(path) //nolint:gosec // our own file
		if err != nil {
			return nil, err
		}
		f := &figures{}
		if err := json.Unmarshal(text, f); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if old := newest[f.Nodes]; f.Nodes != own.Nodes && (old == nil || old.Date < f.Date) {
			newest[f.Nodes] = f
		}
	}
	var all []*figures
	for _, size := range slices.Sorted(maps.Keys(newest)) {
		all = append(all, newest[size])
	}
	return all, nil
}
