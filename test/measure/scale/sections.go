package scale

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
)

// pageSizes are those of the full runs that docs/scale.md rests on.
func pageSizes() []int { return []int{100, 1000, 5000} }

// results are what a page is made of: all runs, and those that its tables have a column for.
type results struct {
	all  []*figures
	full []*figures
}

// at returns the full run of a size; nil: there is none.
func (r *results) at(size int) *figures {
	for _, f := range r.full {
		if f.Nodes == size {
			return f
		}
	}
	return nil
}

// largest returns the full run of the largest size; nil: there is none.
func (r *results) largest() *figures {
	if len(r.full) == 0 {
		return nil
	}
	return r.full[len(r.full)-1]
}

// others are the full runs of other sizes.
func (r *results) others(f *figures) []*figures { return ofOtherSizes(r.full, f.Nodes) }

// sizesHead begins a table with a column for each size of a full run.
func (r *results) sizesHead(p printer, first string) {
	p("| %s |", first)
	for _, f := range r.full {
		p(" %s nodes |", thousands(f.Nodes))
	}
	p("\n|%s\n", strings.Repeat("---|", 1+strings.Count(first, " | ")+len(r.full)))
}

func (r *results) sizesRow(p printer, name string, of func(*figures) string) {
	p("| %s |", name)
	for _, f := range r.full {
		p(" %s |", cmp.Or(of(f), "-"))
	}
	p("\n")
}

// thousands writes a number as the page does: 5,000.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// link is one to the page of a run, from a page in this folder or in docs/.
func link(f *figures, folder string) string {
	return fmt.Sprintf("[%s](%sresults/%s.md)", f.Date, folder, f.file)
}

const fromDocs = "../test/measure/scale/"

// verdicts counts the demands of a full run that hold, those about growth apart, and names
// the others.
func (r *results) verdicts(f *figures) (demands, growing string, failed []string) {
	counts := map[bool]map[ruling]int{true: {}, false: {}}
	for _, l := range judge(f, r.others(f)) {
		counts[isGrowth(l)][l.verdict]++
		if l.verdict == no {
			failed = append(failed, l.what)
		}
	}
	of := func(c map[ruling]int) string { return fmt.Sprintf("%d of %d", c[yes], c[yes]+c[no]) }
	return of(counts[false]), of(counts[true]), failed
}

// short is what one wants to know of a fleet in a few lines.
func (r *results) short(p printer) {
	r.sizesHead(p, "")
	r.sizesRow(p, "run", func(f *figures) string { return link(f, fromDocs) + ", commit " + f.Commit })
	r.sizesRow(p, "API server, cores: nodes alone", func(f *figures) string { return fmt.Sprintf("%.3f", f.Base.Cores[cluster.APIServer]) })
	r.sizesRow(p, "with a bare watch for each node, the least that an agent can cost", func(f *figures) string { return fmt.Sprintf("%.3f", f.Watches.Cores[cluster.APIServer]) })
	r.sizesRow(p, "with an agent on each node", func(f *figures) string { return fmt.Sprintf("%.3f", f.Idle.Cores[cluster.APIServer]) })
	r.sizesRow(p, "API server, RSS: nodes alone, bare watches, agents", func(f *figures) string {
		return fmt.Sprintf("%.0f, %.0f, %.0f MiB", f.Base.RSS[cluster.APIServer], f.Watches.RSS[cluster.APIServer], f.Idle.RSS[cluster.APIServer])
	})
	r.sizesRow(p, "requests of an idle agent, per hour", func(f *figures) string { return fmt.Sprintf("%.2f", total(f.Quiet.PerHour)) })
	r.sizesRow(p, "memory of all hosts degrades at once, no brake: last taint", func(f *figures) string { return seconds(f.off().Last) })
	r.sizesRow(p, "meanwhile: p99 of a foreign client", func(f *figures) string { return milliseconds(f.off().Foreign.P99) })
	r.sizesRow(p, "meanwhile: Leases of kubelets that are late", func(f *figures) string {
		return fmt.Sprintf("%d of %s", f.off().Leases.Late, thousands(f.off().Leases.Requests))
	})
	r.sizesRow(p, "demands that hold", func(f *figures) string { demands, _, _ := r.verdicts(f); return demands })
	r.sizesRow(p, "demands about growth that hold", func(f *figures) string { _, growing, _ := r.verdicts(f); return growing })
	r.sizesRow(p, "that do not hold", func(f *figures) string { _, _, failed := r.verdicts(f); return strings.Join(failed, "; ") })
}

func (r *results) runs(p printer) {
	p("| nodes | run | commit | machine | demands that hold | of growth |\n|---|---|---|---|---|---|\n")
	for _, size := range pageSizes() {
		f := r.at(size)
		if f == nil {
			p("| %s | no full run | - | - | - | - |\n", thousands(size))
			continue
		}
		demands, growing, _ := r.verdicts(f)
		p("| %s | %s | %s | %s | %s | %s |\n", thousands(size), link(f, ""), f.Commit, f.Machine, demands, growing)
	}
}

// demands has all of each run but for those about growth, which are about all runs.
func (r *results) demands(p printer) {
	var names []string
	lines := map[int]map[string]line{}
	for _, f := range r.full {
		own := map[string]line{}
		for _, l := range slices.Concat(judge(f, nil), []line{judgeEqual(f, r.others(f))}) {
			if isGrowth(l) {
				continue
			}
			if _, known := own[l.what]; !known && !slices.Contains(names, l.what) {
				names = append(names, l.what)
			}
			own[l.what] = l
		}
		lines[f.Nodes] = own
	}
	r.sizesHead(p, "demand")
	for _, name := range names {
		r.sizesRow(p, name, func(f *figures) string { return ruled(lines[f.Nodes][name]) })
	}
}

// ruled is what became of a demand, in a cell.
func ruled(l line) string {
	switch l.verdict {
	case "":
		return "not measured"
	case no:
		return "**no**: " + l.measured
	}
	return string(l.verdict) + ": " + l.measured
}

func isGrowth(l line) bool {
	return slices.ContainsFunc(growths(), func(g growth) bool { return strings.HasPrefix(l.what, g.what+": ") })
}

func (r *results) growth(p printer) {
	f := r.largest()
	if len(r.full) < 2 {
		p("An exponent needs full runs of two sizes.\n")
		return
	}
	r.sizesHead(p, "what | exponent | at most | holds")
	for i, l := range judgeGrowth(f, r.others(f)) {
		g, most := growths()[i], mostGrowth
		if g.perAgent {
			most = constant
		}
		verdict := string(l.verdict)
		if l.verdict == no {
			verdict = "**no**"
		}
		r.sizesRow(p, fmt.Sprintf("%s | %s | %.2f | %s", g.what, l.measured, most, verdict), func(f *figures) string { return amount(g.of(f)) })
	}
}

// amount is a number without more digits than say something.
func amount(x float64) string {
	switch {
	case x == 0:
		return ""
	case x < 100:
		return fmt.Sprintf("%.2f", x)
	}
	return thousands(int(x + 0.5))
}

// larger computes what fleets of other sizes ask for, from the largest that was measured.
func (r *results) larger(p printer) {
	f := r.largest()
	if f == nil {
		p("There is no full run.\n")
		return
	}
	n, writes := float64(f.Nodes), 0.0
	for kind, count := range f.Quiet.PerHour {
		if verb, _, _ := strings.Cut(kind, " "); verb != "get" && verb != "list" && verb != "watch" {
			writes += count
		}
	}
	sizes := []int{1000, 5000, 15000}
	p("From the run of %s nodes, in proportion:\n\n| what | 1,000 nodes | 5,000 | 15,000 |\n|---|---|---|---|\n", thousands(f.Nodes))
	for _, row := range []struct {
		name, unit string
		each       float64 // of one agent
	}{
		{"requests of idle agents", " a second", total(f.Quiet.PerHour) / 3600},
		{"writes of idle agents", " a second", writes / 3600},
		{"TLS connections of the network's probe", " a second", 1 / apiEvery.Seconds()},
		{"requests of a mass incident", "", float64(f.off().Requests) / n},
		{"requests of a rolling restart", "", float64(f.Restart.Requests) / n},
	} {
		p("| %s |", row.name)
		for _, size := range sizes {
			p(" %s |", cmp.Or(amount(row.each*float64(size)), "-")+row.unit)
		}
		p("\n")
	}
}

func (r *results) idle(p printer) {
	kinds := map[string]bool{}
	for _, f := range r.full {
		for kind := range f.Quiet.PerHour {
			kinds[kind] = true
		}
	}
	r.sizesHead(p, "request")
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		r.sizesRow(p, kind, func(f *figures) string { return fmt.Sprintf("%.2f", f.Quiet.PerHour[kind]) })
	}
	r.sizesRow(p, "**all**", func(f *figures) string { return fmt.Sprintf("**%.2f**", total(f.Quiet.PerHour)) })
	r.sizesRow(p, "kB sent", func(f *figures) string { return fmt.Sprintf("%.1f", f.Quiet.Sent/1000) })
	r.sizesRow(p, "kB received", func(f *figures) string { return fmt.Sprintf("%.1f", f.Quiet.Received/1000) })
}

func (r *results) cost(p printer) {
	r.sizesHead(p, "API server")
	for _, with := range []struct {
		name string
		of   func(*figures) cost
	}{
		{"nodes alone", func(f *figures) cost { return f.Base }},
		{"a bare watch of each", func(f *figures) cost { return f.Watches }},
		{"an agent on each", func(f *figures) cost { return f.Idle }},
	} {
		r.sizesRow(p, with.name+", cores", func(f *figures) string { return fmt.Sprintf("%.3f", with.of(f).Cores[cluster.APIServer]) })
		r.sizesRow(p, with.name+", RSS", func(f *figures) string { return fmt.Sprintf("%.0f MiB", with.of(f).RSS[cluster.APIServer]) })
		r.sizesRow(p, with.name+", live memory", func(f *figures) string { return fmt.Sprintf("%.0f MiB", with.of(f).Live) })
	}
	r.sizesRow(p, "other programs of the machine, cores, at most", func(f *figures) string {
		return fmt.Sprintf("%.2f", max(f.Base.Cores[othersName], f.Watches.Cores[othersName], f.Idle.Cores[othersName]))
	})
}

// incidentsHead and incidentRow are the columns of a mass incident.
func incidentHead(p printer, first string) {
	p("| %s | tainted | last taint | requests of agents | most in one second | 429 and 5xx to agents | 429 at a foreign client | its p99 | leases late | their p99 |\n|%s\n",
		first, strings.Repeat("---|", 10+strings.Count(first, "|")))
}

func incidentRow(p printer, first string, f *figures, in *incident) {
	p("| %s | %s of %s | %s | %s | %s | %d and %d | %d of %s | %s | %d of %s | %s |\n", first, thousands(in.Tainted), thousands(cmp.Or(in.Bad, f.Nodes)), seconds(in.Last),
		thousands(in.Requests), thousands(in.Peak), in.TooMany, in.Failed, in.Foreign.TooMany, thousands(in.Foreign.Requests), milliseconds(in.Foreign.P99),
		in.Leases.Late, thousands(in.Leases.Requests), milliseconds(in.Leases.P99))
}

func (r *results) incidents(p printer) {
	var names []string
	for _, f := range r.full {
		for _, in := range f.Incidents {
			if !slices.Contains(names, in.Name) {
				names = append(names, in.Name)
			}
		}
	}
	incidentHead(p, "incident | nodes")
	for _, name := range names {
		for _, f := range r.full {
			for _, in := range f.Incidents {
				if in.Name == name {
					incidentRow(p, name+" | "+thousands(f.Nodes), f, in)
				}
			}
		}
	}
}

func (r *results) incidentRequests(p printer) {
	r.kinds(p, func(f *figures) map[string]float64 { return f.off().PerAgent })
}

func (r *results) restartRequests(p printer) {
	r.kinds(p, func(f *figures) map[string]float64 { return f.Restart.PerAgent })
}

// kinds shows requests of one agent by kind.
func (r *results) kinds(p printer, of func(*figures) map[string]float64) {
	kinds := map[string]float64{}
	for _, f := range r.full {
		maps.Copy(kinds, of(f))
	}
	r.sizesHead(p, "requests of one agent")
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		r.sizesRow(p, kind, func(f *figures) string { return fmt.Sprintf("%.2f", of(f)[kind]) })
	}
	r.sizesRow(p, "**all**", func(f *figures) string { return fmt.Sprintf("**%.2f**", total(of(f))) })
}

func (r *results) restarts(p printer) {
	p("| event | nodes | done after | taint changes | requests of agents | most in one second | 429 to agents | p99 of a foreign client | leases late |\n|%s\n", strings.Repeat("---|", 9))
	for _, event := range []struct {
		name  string
		after func(*figures) time.Duration
		of    func(*figures) *spell
	}{
		{"all agents start", func(f *figures) time.Duration { return duration(f.Start.Seconds) }, func(f *figures) *spell { return &f.Start }},
		{"rolling restart, all tainted", func(f *figures) time.Duration { return f.Restart.Took }, func(f *figures) *spell { return &f.Restart.spell }},
		{"configuration rolled out", func(f *figures) time.Duration { return f.Rollout.InForce }, func(f *figures) *spell { return &f.Rollout.spell }},
		{"EndpointSlices rewritten", func(f *figures) time.Duration { return duration(f.Slices.Seconds) }, func(f *figures) *spell { return &f.Slices.spell }},
		{"crash of the API server", func(f *figures) time.Duration { return f.Outage.Back }, func(f *figures) *spell { return &f.Outage.spell }},
	} {
		for _, f := range r.full {
			s := event.of(f)
			if s.Leases.Requests == 0 {
				p("| %s | %s | not measured | - | - | - | - | - | - |\n", event.name, thousands(f.Nodes))
				continue
			}
			p("| %s | %s | %s | %d | %s | %s | %d | %s | %d of %s |\n", event.name, thousands(f.Nodes), seconds(event.after(f)), s.TaintChanges, thousands(s.Requests),
				thousands(s.Peak), s.TooMany, milliseconds(s.Foreign.P99), s.Leases.Late, thousands(s.Leases.Requests))
		}
	}
}

func (r *results) held(p printer) {
	p("| nodes | held | patches of nodes a minute | controller manager, cores | API server, cores | keep policy, each write | dry run with the policy | without |\n|%s\n", strings.Repeat("---|", 8))
	for _, f := range r.full {
		for _, h := range f.Held {
			p("| %s | %s | %.0f | %.3f | %.3f | %s | %s | %s |\n", thousands(f.Nodes), thousands(h.Nodes), h.Patches, h.Cores, h.APIServer,
				inMs(cmp.Or(h.Policy, h.Timed)), inMs(h.WithPolicy), inMs(h.WithoutPolicy))
		}
	}
}

// admission is how long writes took, and what a TLS connection costs the API server.
func (r *results) admission(p printer) {
	r.sizesHead(p, "")
	r.sizesRow(p, "CPU of the API server for a TLS connection", func(f *figures) string { return fmt.Sprintf("%.3f", f.Handshake) })
	kinds := map[string]float64{}
	for _, f := range r.full {
		maps.Copy(kinds, f.Admission)
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		r.sizesRow(p, name, func(f *figures) string { return fmt.Sprintf("%.3f", f.Admission[name]) })
	}
}

// inMs is a time in ms; 0: it was not measured, or nothing was judged.
func inMs(ms float64) string {
	if ms == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f ms", ms)
}

func (r *results) status(p printer) {
	p("| nodes | run | time | most RSS |\n|---|---|---|---|\n")
	for _, f := range r.full {
		for _, s := range f.Status {
			p("| %s | `%s` | %s | %.0f MiB |\n", thousands(f.Nodes), s.Args, milliseconds(s.Took), s.RSS)
		}
	}
}

// limits has the newest run of each size with a mass incident, also of partial runs, and
// the laws that fit them.
func (r *results) limits(p printer) {
	newest := map[int]*figures{}
	for _, f := range r.all {
		if f.off().Leases.Requests > 0 && f.Cores == 0 {
			newest[f.Nodes] = f
		}
	}
	sizes := slices.Sorted(maps.Keys(newest))
	incidentHead(p, "nodes | run")
	var last, requests, server, agents []point
	for _, size := range sizes {
		f := newest[size]
		in, kind := f.off(), "full"
		if !f.isFull() {
			kind = "partial"
		}
		incidentRow(p, fmt.Sprintf("%s | %s, %s", thousands(size), link(f, fromDocs), kind), f, in)
		x := float64(size)
		requests = append(requests, point{x, float64(in.Requests)})
		server = append(server, point{x, in.Cost.Cores[cluster.APIServer] * in.Cost.Seconds})
		agents = append(agents, point{x, in.Cost.Cores[agentsName] * in.Cost.Seconds})
		if in.Tainted == size {
			last = append(last, point{x, in.Last.Seconds()})
		}
	}
	p("\nExponents over these runs: ")
	for _, law := range []struct {
		what   string
		points []point
		end    string
	}{
		{"time of the last taint, where all were tainted", last, ", "}, {"requests of the agents", requests, ", "},
		{"CPU seconds of the API server", server, ", "}, {"CPU seconds of the agents", agents, ".\n"},
	} {
		fitted, ok := fit(law.points)
		if ok {
			p("%s %.2f%s", law.what, fitted.exponent, law.end)
		} else {
			p("%s -%s", law.what, law.end)
		}
	}
}

// cores has the newest mass incident of each size beside an API server with few processors, and what
// follows for larger machines and fleets.
func (r *results) cores(p printer) {
	newest := map[[2]float64]*figures{}
	for _, f := range r.all {
		if f.off().Leases.Requests > 0 && f.Cores > 0 {
			newest[[2]float64{float64(f.Nodes), f.Cores}] = f
		}
	}
	incidentHead(p, "nodes | processors | run")
	var loads []point // Nodes for each processor, and seconds until the last taint
	for _, at := range slices.SortedFunc(maps.Keys(newest), func(a, b [2]float64) int { return slices.Compare(a[:], b[:]) }) {
		f := newest[at]
		in := f.off()
		incidentRow(p, fmt.Sprintf("%s | %g | %s", thousands(f.Nodes), f.Cores, link(f, "")), f, in)
		if in.Tainted == f.Nodes {
			loads = append(loads, point{at[0] / at[1], in.Last.Seconds()})
		}
	}
	law, ok := fit(loads)
	if !ok {
		return
	}
	apart := 1.0
	for _, load := range loads {
		apart = max(apart, load.y/law.at(load.x), law.at(load.x)/load.y)
	}
	p("\nThe last taint comes with the power %.2f of the Nodes for each processor. A run is up to %.1f times later or sooner than this law says. ", law.exponent, apart)
	p("It makes, if nothing else is the limit:\n\n")
	p("| nodes | 2 processors | 8 | 32 |\n|---|---|---|---|\n")
	for _, nodes := range []float64{2000, 5000, 15000} {
		p("| %s |", thousands(int(nodes)))
		for _, cores := range []float64{2, 8, 32} {
			p(" %s |", seconds(duration(law.at(nodes/cores))))
		}
		p("\n")
	}
}

func (r *results) own(p printer) {
	p("| nodes | phase | API server, cores | hollow agents, cores | own work, cores | latest timer of own work, p99 |\n|%s\n", strings.Repeat("---|", 6))
	for _, f := range r.full {
		for _, ph := range f.phases() {
			if ph.cost.Late == nil {
				continue
			}
			latest := time.Duration(0)
			for _, name := range own() {
				latest = max(latest, ph.cost.Late[name].P99)
			}
			p("| %s | %s | %.2f | %.2f | %.2f | %s |\n", thousands(f.Nodes), ph.name, ph.cost.Cores[cluster.APIServer], ph.cost.Cores[agentsName], ph.cost.ownCores(), milliseconds(latest))
		}
	}
}
