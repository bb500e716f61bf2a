package scale

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Demands.
const (
	mostHeartbeats = 12
	// heartbeatNoise is what the ±10 % of a heartbeat may make of a window.
	heartbeatNoise = 0.02
	// mostDifference is by how much more one agent may ask for in a larger fleet.
	mostDifference = 0.05
	// The last taint of a mass incident comes within soonTaint up to soonNodes nodes, and
	// within lateTaint at lateNodes; in between the bound is a straight line.
	soonNodes, soonTaint = 1000, 15 * time.Second
	lateNodes, lateTaint = 5000, 90 * time.Second
	foreignP99           = time.Second
	mostGrowth           = 1.1
	// constant is the exponent up to which something does not grow.
	constant = 0.05
	// wholeIdle is how long agents must be idle for their requests to be judged.
	wholeIdle = 9 * time.Minute
	// ownShare of the machine is what this program's own work may take.
	ownShare = 0.25
	// latestTimer is how late the timers of this program may be, p99.
	latestTimer = 100 * time.Millisecond
)

// ruling is what became of a demand.
type ruling string

const (
	yes       ruling = "yes"
	no        ruling = "no"
	notJudged ruling = "not judged"
)

func rulingOf(holds bool) ruling {
	if holds {
		return yes
	}
	return no
}

// line is one thing that has to hold.
type line struct {
	what, measured string
	verdict        ruling
}

// judge says of each demand whether it holds, by this run and the others of other
// sizes.
func judge(f *figures, others []*figures) []line {
	end := line{"every part was measured", "all", yes}
	if f.Stopped != "" {
		end.measured, end.verdict = f.Stopped, no
	}
	if f.Partial != "" {
		end.measured, end.verdict = "partial: "+f.Partial, notJudged
	}
	lines := slices.Concat([]line{end}, judgeHarness(f), []line{judgeIdle(f), judgeEqual(f, others)})
	for _, in := range f.Incidents {
		lines = append(lines, judgeIncident(f, in)...)
	}
	lines = append(lines, judgeRestart(f)...)
	if f.Outage.Leases.Requests > 0 {
		lines = append(lines, line{
			"crash of the API server: no taint changes", fmt.Sprintf("%d changes", f.Outage.TaintChanges), rulingOf(f.Outage.TaintChanges == 0),
		})
	}
	return append(lines, judgeGrowth(f, others)...)
}

// judgeHarness says whether this program measured the API server, and not itself.
func judgeHarness(f *figures) []line {
	share := line{"this program's own work takes less than a quarter of the machine", "in no phase", notJudged}
	late := line{"its timers are at most 100 ms late, p99", "in no phase", notJudged}
	most, latest := -1.0, time.Duration(-1)
	for _, p := range f.phases() {
		if cores := p.cost.ownCores(); cores > most && f.CPUs > 0 {
			most = cores
			share.measured = fmt.Sprintf("%.2f of %d cores, in the phase %q", cores, f.CPUs, p.name)
			share.verdict = rulingOf(cores < ownShare*float64(f.CPUs))
		}
		for _, name := range slices.Sorted(maps.Keys(p.cost.Late)) {
			if l := p.cost.Late[name]; l.P99 > latest {
				latest = l.P99
				late.measured = fmt.Sprintf("%s, %s, in the phase %q", milliseconds(l.P99), name, p.name)
				late.verdict = rulingOf(l.P99 <= latestTimer)
			}
		}
	}
	return []line{share, late}
}

func judgeIdle(f *figures) line {
	l := line{
		what:     "idle: at most 12.24 heartbeats per node and hour (12, and 2 % for the jitter of the intervals)",
		measured: fmt.Sprintf("%.2f", f.Quiet.Heartbeats),
		verdict:  rulingOf(f.Quiet.Heartbeats <= mostHeartbeats*(1+heartbeatNoise)),
	}
	if f.Quiet.Seconds < wholeIdle.Seconds() || f.Quiet.Heartbeats == 0 {
		l.verdict = notJudged
	}
	return l
}

// judgeEqual compares what one agent asks for with what it asks for in fleets of other
// sizes: in the larger of two it may ask for less, but not for more.
func judgeEqual(f *figures, others []*figures) line {
	l := line{what: "idle: an agent of a larger fleet makes at most 5 % more requests", verdict: notJudged, measured: "no run of another size"}
	if f.Quiet.Seconds < wholeIdle.Seconds() {
		l.measured = "it was idle for " + seconds(duration(f.Quiet.Seconds))
		return l
	}
	worst := math.Inf(-1)
	for _, o := range others {
		own, other := total(f.Quiet.PerHour), total(o.Quiet.PerHour)
		if o.Quiet.Seconds < wholeIdle.Seconds() || other == 0 {
			continue
		}
		difference := own/other - 1
		if o.Nodes > f.Nodes {
			difference = other/own - 1
		}
		if difference > worst {
			worst = difference
			l.measured = fmt.Sprintf("%.2f here, %.2f of %d nodes: %+.1f %%", own, other, o.Nodes, 100*difference)
			l.verdict = rulingOf(difference <= mostDifference)
		}
	}
	return l
}

func total(counts map[string]float64) float64 {
	sum := 0.0
	for _, count := range counts {
		sum += count
	}
	return sum
}

// lastTaintWithin is how soon the last of so many nodes must have its taint.
func lastTaintWithin(nodes int) time.Duration {
	if nodes <= soonNodes {
		return soonTaint
	}
	return soonTaint + (lateTaint-soonTaint)*time.Duration(nodes-soonNodes)/(lateNodes-soonNodes)
}

func judgeIncident(f *figures, in *incident) []line {
	if in.Leases.Requests == 0 {
		return nil // it was not observed to its end
	}
	name, within := "mass incident, "+in.Name+": ", lastTaintWithin(f.Nodes)
	bad := cmp.Or(in.Bad, f.Nodes)
	last := line{name + "last taint in time", fmt.Sprintf("%s, at most %.0f s", seconds(in.Last), within.Seconds()), rulingOf(in.Last <= within)}
	if in.Tainted < bad {
		last.measured = fmt.Sprintf("%d of %d nodes tainted, the last after %s", in.Tainted, bad, last.measured)
		last.verdict = rulingOf(in.Last <= within && !strings.HasSuffix(in.Name, brakeOff)) // the brake holds taints back
	}
	return append([]line{last}, judgeOthers(name, in.spell)...)
}

// judgeOthers says whether clients and kubelets noticed.
func judgeOthers(name string, s spell) []line {
	return []line{
		{name + "no 429 at a foreign client", fmt.Sprintf("%d of %d, and %d failed", s.Foreign.TooMany, s.Foreign.Requests, s.Foreign.Failed),
			rulingOf(s.Foreign.TooMany == 0 && s.Foreign.Failed == 0 && s.Foreign.Requests > 0)},
		{name + "its p99 under 1 s", milliseconds(s.Foreign.P99), rulingOf(s.Foreign.P99 < foreignP99)},
		judgeLeases(name, s),
	}
}

func judgeLeases(name string, s spell) line {
	return line{name + "no node lease late", fmt.Sprintf("%d of %d, p99 %s", s.Leases.Late, s.Leases.Requests, milliseconds(s.Leases.P99)),
		rulingOf(s.Leases.Late == 0 && s.Leases.Requests > 0)}
}

func judgeRestart(f *figures) []line {
	var lines []line
	if s := f.Rollout.spell; s.Leases.Requests > 0 {
		const name = "configuration rolled out: "
		lines = append(lines, line{name + "no taint changes", fmt.Sprintf("%d changes", s.TaintChanges), rulingOf(s.TaintChanges == 0)}, judgeLeases(name, s))
	}
	if s := f.Restart; s.Leases.Requests > 0 {
		const name = "rolling restart: "
		lines = append(lines,
			line{name + "no taint changes", fmt.Sprintf("%d changes on %d tainted nodes", s.TaintChanges, s.Held), rulingOf(s.TaintChanges == 0)},
			line{name + "at most one write of each agent", fmt.Sprintf("%d: %d of the Node, %d of its status", s.MostInAll, s.MostWrites, s.MostStatus), rulingOf(s.MostInAll <= 1)},
			judgeLeases(name, s.spell))
	}
	return lines
}

// growth is how something depends on the number of Nodes.
type growth struct {
	what     string
	of       func(*figures) float64
	perAgent bool
}

// growths are what must not grow faster than the fleet, and what must not grow at
// all.
func growths() []growth {
	idle := func(f *figures) float64 {
		if f.Quiet.Seconds < wholeIdle.Seconds() {
			return 0
		}
		return total(f.Quiet.PerHour)
	}
	bytes := func(f *figures) float64 {
		if idle(f) == 0 {
			return 0
		}
		return f.Quiet.Sent + f.Quiet.Received
	}
	all := func(one func(*figures) float64) func(*figures) float64 {
		return func(f *figures) float64 { return one(f) * float64(f.Nodes) }
	}
	return []growth{
		{"idle requests of the fleet", all(idle), false},
		{"idle bytes of the fleet", all(bytes), false},
		{"requests of a mass incident", func(f *figures) float64 { return float64(f.off().Requests) }, false},
		{"bytes of a mass incident", func(f *figures) float64 { in := f.off(); return float64(in.Sent + in.Received) }, false},
		{"requests of a rolling restart", func(f *figures) float64 { return float64(f.Restart.Requests) }, false},
		{"idle requests of one agent", idle, true},
		{"heartbeats of one agent", func(f *figures) float64 { return f.Quiet.Heartbeats }, true},
		{"requests of one agent in a mass incident", func(f *figures) float64 { return float64(f.off().Requests) / float64(f.Nodes) }, true},
	}
}

// judgeGrowth fits an exponent to all sizes that were measured by full runs. It judges no
// run that is not one.
func judgeGrowth(f *figures, others []*figures) []line {
	var lines []line
	for _, g := range growths() {
		l := line{what: g.what + ": grows at most with the power 1.1 of the nodes", verdict: notJudged, measured: "one size only"}
		if !f.isFull() {
			l.measured = "not a full run"
		}
		if g.perAgent {
			l.what = g.what + ": does not grow with the nodes"
		}
		var points []point
		for _, run := range append([]*figures{f}, others...) {
			if y := g.of(run); y > 0 {
				points = append(points, point{float64(run.Nodes), y})
			}
		}
		if law, ok := fit(points); ok && f.isFull() {
			l.measured = fmt.Sprintf("%.3f", law.exponent)
			l.verdict = rulingOf(law.exponent <= mostGrowth)
			if g.perAgent {
				l.verdict = rulingOf(law.exponent <= constant)
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// off returns the mass incident of all nodes without the brake.
func (f *figures) off() *incident {
	for _, in := range f.Incidents {
		if in.Name == brakeOff {
			return in
		}
	}
	return &incident{}
}

type point struct{ x, y float64 }

// powerLaw is y = factor * x^exponent.
type powerLaw struct{ factor, exponent float64 }

func (l powerLaw) at(x float64) float64 { return l.factor * math.Pow(x, l.exponent) }

// fit returns the power law through the points: the line through the logarithms by least squares.
// False: they do not differ in x.
func fit(points []point) (law powerLaw, ok bool) {
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		x, y := math.Log(p.x), math.Log(p.y)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	spread := n*sxx - sx*sx
	if n < 2 || spread < 1e-9 {
		return powerLaw{}, false
	}
	exponent := (n*sxy - sx*sy) / spread
	return powerLaw{math.Exp((sy - exponent*sx) / n), exponent}, true
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
