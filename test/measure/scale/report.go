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
	if f.Partial != "" {
		p("**Partial:** %s.\n\n", f.Partial)
	}
	p("%s\n", f.Origin)
	p("Written by `make scale NODES=%d`; [docs/scale.md](../../../../docs/scale.md) says what it means.\n", f.Nodes)
	p("\n## Must hold\n\n| demand | measured | holds |\n|---|---|---|\n")
	for _, l := range lines {
		p("| %s | %s | %s |\n", l.what, l.measured, l.verdict)
	}
	renderHarness(p, f)
	for _, section := range []struct {
		measured bool
		render   func(printer, *figures)
	}{
		{f.Quiet.Seconds > 0, renderIdle}, {f.Base.Seconds > 0 || f.Idle.Seconds > 0, renderCost}, {len(f.Incidents) > 0, renderIncidents},
		{len(f.Admission) > 0, renderAdmission}, {len(f.Held) > 0, renderHeld}, {f.Start.Seconds > 0, renderRestarts}, {len(f.Status) > 0, renderStatus},
	} {
		if section.measured {
			section.render(p, f)
		}
	}
	return b.String()
}

func renderStatus(p printer, f *figures) {
	p("\n## kubectl taintlet status over all nodes\n\n| run | time | most RSS | lines |\n|---|---|---|---|\n")
	for _, s := range f.Status {
		p("| %s | %s | %.1f MiB | %d |\n", s.Args, milliseconds(s.Took), s.RSS, s.Lines)
	}
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
	p("The harness, the kubelets, the foreign client and the hollow agents are this program's own: they stand in for the hosts.\n\n")
	p("| process | nodes alone | with a bare watch each | with an agent each |\n|---|---|---|---|\n")
	names := []string{cluster.APIServer, cluster.Etcd, cluster.ControllerManager, cluster.Scheduler, harnessName, kubeletsName, foreignName, agentsName, othersName}
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
	p("\n## Mass incidents\n\nThe memory of all hosts is bad at the same moment. Figures are those of the %s after it.\n\n", seconds(duration(f.Incidents[0].Cost.Seconds)))
	p("| | %s |\n|%s\n", strings.Join(column(f, func(in *incident) string { return in.Name }), " | "), strings.Repeat("---|", 1+len(f.Incidents)))
	for _, row := range []struct {
		name string
		of   func(in *incident) string
	}{
		{"tainted", func(in *incident) string { return fmt.Sprint(in.Tainted) }},
		{"last taint", func(in *incident) string { return seconds(in.Last) }},
		{"requests of agents", func(in *incident) string { return fmt.Sprint(in.Requests) }},
		{"most in one second", func(in *incident) string { return fmt.Sprint(in.Peak) }},
		{"429 and 5xx to agents", func(in *incident) string { return fmt.Sprintf("%d and %d", in.TooMany, in.Failed) }},
		{"bodies sent and received", func(in *incident) string {
			return fmt.Sprintf("%.1f and %.1f MB", float64(in.Sent)/1e6, float64(in.Received)/1e6)
		}},
		{"foreign client", func(in *incident) string { return latencyText(in.Foreign) }},
		{"node leases", func(in *incident) string { return leaseText(in.Leases) }},
		{"API server, cores", func(in *incident) string { return fmt.Sprintf("%.3f", in.Cost.Cores[cluster.APIServer]) }},
		{"hollow agents, cores", func(in *incident) string { return fmt.Sprintf("%.3f", in.Cost.Cores[agentsName]) }},
		{"other programs of the machine, cores", func(in *incident) string { return fmt.Sprintf("%.3f", in.Cost.Cores[othersName]) }},
		{"last taint gone after recovery", func(in *incident) string { return seconds(in.Cleared) }},
	} {
		p("| %s | %s |\n", row.name, strings.Join(column(f, row.of), " | "))
	}
	kinds := map[string]float64{}
	for _, in := range f.Incidents {
		maps.Copy(kinds, in.PerAgent)
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		p("| %s, per agent | %s |\n", kind, strings.Join(column(f, func(in *incident) string { return fmt.Sprintf("%.2f", in.PerAgent[kind]) }), " | "))
	}
}

func renderAdmission(p printer, f *figures) {
	p("\n## Admission\n\n| | time |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(f.Admission)) {
		p("| %s | %.3f ms |\n", name, f.Admission[name])
	}
}

func column(f *figures, of func(*incident) string) []string {
	var all []string
	for _, in := range f.Incidents {
		all = append(all, of(in))
	}
	return all
}

func renderHeld(p printer, f *figures) {
	p("\n## What kept pairs cost the controller manager\n\nThe client of its node controller makes at most 20 requests a second.\n\n")
	p("The policy's time is its mean for each write of the controller, and for %d dry runs of such a write; the medians are of these dry runs.\n\n", admissionTries)
	p("| held nodes | patches of nodes a minute | kube-controller-manager, cores | API server, cores | keep policy | keep policy, dry runs | dry run as the controller | as an administrator |\n|---|---|---|---|---|---|---|---|\n")
	p("| 0, no incident | | %.4f | %.4f | | | | |\n", f.Idle.Cores[cluster.ControllerManager], f.Idle.Cores[cluster.APIServer])
	for _, h := range f.Held {
		p("| %d | %.1f | %.4f | %.4f | %s | %s | %s | %s |\n", h.Nodes, h.Patches, h.Cores, h.APIServer, inMs(h.Policy), inMs(h.Timed), inMs(h.WithPolicy), inMs(h.WithoutPolicy))
	}
}

// inMs is a time in ms; 0: it was not measured, or nothing was judged.
func inMs(ms float64) string {
	if ms == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f ms", ms)
}

// event is something of which it is known how agents and others fared. said is its result
// beside that.
type event struct {
	name, said string
	spell      spell
}

// events are those that were measured.
func (f *figures) events() []event {
	s, o, c, e := f.Restart, f.Outage, f.Rollout, f.Slices
	all := []event{
		{"agents start", fmt.Sprintf("It took %s.", seconds(duration(f.Start.Seconds))), f.Start},
		{"rolling restart", fmt.Sprintf("It took %s with %d nodes tainted, and %d writes of EndpointSlices. The most patches by one agent, but for heartbeats, "+
			"were %d of the Node, %d of the status, %d in all.", seconds(s.Took), s.Held, s.SliceWrites, s.MostWrites, s.MostStatus, s.MostInAll), s.spell},
		{"configuration rolled out", fmt.Sprintf("It was in force on all after %s.", seconds(c.InForce)), c.spell},
		{"EndpointSlices rewritten", fmt.Sprintf("There were %d writes, in %s with the time after them.", e.Writes, seconds(duration(e.Seconds))), e.spell},
		{"crash of the API server", fmt.Sprintf("It was ready after %s, and all agents watched after %s.", seconds(o.Down), seconds(o.Back)), o.spell},
	}
	return slices.DeleteFunc(all, func(e event) bool { return e.spell.Leases.Requests == 0 })
}

func renderRestarts(p printer, f *figures) {
	all := f.events()
	p("\n## Restarts and a configuration\n\n")
	for _, e := range all {
		p("- **%s**: %s\n", e.name, e.said)
	}
	row := func(name string, of func(event) string) {
		p("| %s |", name)
		for _, e := range all {
			p(" %s |", of(e))
		}
		p("\n")
	}
	p("\n")
	row("", func(e event) string { return e.name })
	p("|%s\n", strings.Repeat("---|", 1+len(all)))
	row("changes of taints", func(e event) string { return fmt.Sprint(e.spell.TaintChanges) })
	row("requests of agents", func(e event) string { return fmt.Sprint(e.spell.Requests) })
	row("most in one second", func(e event) string { return fmt.Sprint(e.spell.Peak) })
	row("429 and 5xx to agents", func(e event) string { return fmt.Sprintf("%d and %d", e.spell.TooMany, e.spell.Failed) })
	row("foreign client", func(e event) string { return latencyText(e.spell.Foreign) })
	row("node leases", func(e event) string { return leaseText(e.spell.Leases) })
	row("API server, cores", func(e event) string { return fmt.Sprintf("%.3f", e.spell.Cost.Cores[cluster.APIServer]) })
	row("hollow agents, cores", func(e event) string { return fmt.Sprintf("%.3f", e.spell.Cost.Cores[agentsName]) })
	kinds := map[string]float64{}
	for _, e := range all {
		maps.Copy(kinds, e.spell.PerAgent)
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		row(kind+", per agent", func(e event) string { return fmt.Sprintf("%.2f", e.spell.PerAgent[kind]) })
	}
}

// renderHarness shows what this program itself took, in each phase.
func renderHarness(p printer, f *figures) {
	p("\n## This program's own work\n\nThe harness watches all Nodes, the kubelets renew Leases and write statuses, and the foreign client asks %d times a second.\n", time.Second/foreignEvery)
	p("Lateness is that of timers, p99. The hollow agents are what is measured, and do not count as own work.\n\n")
	p("| phase | harness, cores | kubelets, cores | foreign client, cores | own work, cores | hollow agents, cores | latest timer of own work | of the hollow agents |\n|---|---|---|---|---|---|---|---|\n")
	for _, ph := range f.phases() {
		c, latest := ph.cost, time.Duration(0)
		for _, name := range own() {
			latest = max(latest, c.Late[name].P99)
		}
		p("| %s | %.3f | %.3f | %.3f | %.3f | %.3f | %s | %s |\n", ph.name, c.Cores[harnessName], c.Cores[kubeletsName], c.Cores[foreignName],
			c.ownCores(), c.Cores[agentsName], milliseconds(latest), milliseconds(c.Late[agentsName].P99))
	}
}

func latencyText(l latency) string {
	return fmt.Sprintf("%d requests, %d × 429, %d failed, p50 %s, p99 %s, most %s", l.Requests, l.TooMany, l.Failed, milliseconds(l.P50), milliseconds(l.P99), milliseconds(l.Max))
}

func leaseText(l leaseReport) string {
	return fmt.Sprintf("%d renewals, %d late, p99 %s, most %s", l.Requests, l.Late, milliseconds(l.P99), milliseconds(l.Max))
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// writeResults writes the text and, for runs of other sizes, the figures. The name of a
// partial run says so, and a full run is not overwritten by it.
func writeResults(folder string, f *figures, text string) error {
	name := fmt.Sprintf("%s-%d", f.Date, f.Nodes)
	if !f.isFull() {
		name += "-partial"
		if len(f.Parts) > 0 && len(f.Parts) < len(parts()) {
			name += "-" + strings.Join(f.Parts, "-")
		}
	}
	path, err := measure.Write(folder, name, f, text)
	if err == nil {
		measure.Say("written to %s", path)
	}
	return err
}

// readResults returns all figures in a folder, from the oldest to the newest.
func readResults(folder string) ([]*figures, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []*figures
	for _, path := range paths {
		text, err := os.ReadFile(path) //nolint:gosec // our own file
		if err != nil {
			return nil, err
		}
		f := &figures{file: strings.TrimSuffix(filepath.Base(path), ".json")}
		if err := json.Unmarshal(text, f); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, f)
	}
	slices.SortStableFunc(all, func(a, b *figures) int { return strings.Compare(a.Date, b.Date) })
	return all, nil
}

// newestFull returns the newest full run of each size, from the smallest on.
func newestFull(all []*figures) []*figures {
	newest := map[int]*figures{}
	for _, f := range all {
		if f.isFull() {
			newest[f.Nodes] = f
		}
	}
	var some []*figures
	for _, size := range slices.Sorted(maps.Keys(newest)) {
		some = append(some, newest[size])
	}
	return some
}

// ofOtherSizes returns those that have not so many nodes.
func ofOtherSizes(all []*figures, nodes int) []*figures {
	return slices.DeleteFunc(slices.Clone(all), func(f *figures) bool { return f.Nodes == nodes })
}
