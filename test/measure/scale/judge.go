package main

import (
	"fmt"
	"math"
	"time"
)

// Demands.
const (
	mostHeartbeats = 12
	// heartbeatNoise is what the ±10 % of a heartbeat may make of a window.
	heartbeatNoise = 0.02
	// mostDifference is by how much one agent's requests may differ between sizes.
	mostDifference = 0.05
	lastTaint      = 30 * time.Second
	foreignP99     = time.Second
	mostGrowth     = 1.1
	// constant is the exponent up to which something does not grow.
	constant = 0.05
	// wholeIdle is how long agents must be idle for their requests to be judged.
	wholeIdle = 9 * time.Minute
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
	lines := []line{end, judgeIdle(f), judgeEqual(f, others)}
	for i := range f.Incidents {
		lines = append(lines, judgeIncident(f, &f.Incidents[i])...)
	}
	lines = append(lines, judgeRestart(f)...)
	if f.Outage.Leases.Requests > 0 {
		lines = append(lines, line{
			"crash of the API server: no taint changes", fmt.Sprintf("%d changes", f.Outage.TaintChanges), rulingOf(f.Outage.TaintChanges == 0),
		})
	}
	return append(lines, judgeGrowth(f, others)...)
}

func judgeIdle(f *figures) line {
	l := line{
		what:     "idle: at most 12 heartbeats per node and hour",
		measured: fmt.Sprintf("%.2f", f.Quiet.Heartbeats),
		verdict:  rulingOf(f.Quiet.Heartbeats <= mostHeartbeats*(1+heartbeatNoise)),
	}
	if f.Quiet.Seconds < wholeIdle.Seconds() || f.Quiet.Heartbeats == 0 {
		l.verdict = notJudged
	}
	return l
}

// judgeEqual compares what one agent asks for with what it asks for in a fleet of a
// tenth or of ten times the size.
func judgeEqual(f *figures, others []*figures) line {
	l := line{what: "idle: requests per node within 5 % of another size", verdict: notJudged, measured: "no run of another size"}
	if f.Quiet.Seconds < wholeIdle.Seconds() {
		return l
	}
	for _, o := range others {
		own, other := total(f.Quiet.PerHour), total(o.Quiet.PerHour)
		if o.Quiet.Seconds < wholeIdle.Seconds() || other == 0 {
			continue
		}
		difference := own/other - 1
		l.measured = fmt.Sprintf("%.2f here, %.2f of %d nodes: %+.1f %%", own, other, o.Nodes, 100*difference)
		l.verdict = rulingOf(math.Abs(difference) <= mostDifference)
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

func judgeIncident(f *figures, in *incident) []line {
	if in.Leases.Requests == 0 {
		return nil // it was not observed to its end
	}
	name := "mass incident, " + in.Name + ": "
	var lines []line
	if in.Tainted == f.Nodes {
		lines = append(lines, line{name + "last taint within 30 s", seconds(in.Last), rulingOf(in.Last <= lastTaint)})
	} else {
		lines = append(lines, line{name + "last taint within 30 s", fmt.Sprintf("%d of %d nodes tainted, the last after %s", in.Tainted, f.Nodes, seconds(in.Last)),
			rulingOf(in.Last <= lastTaint && in.Name != "brake off")})
	}
	return append(lines,
		line{name + "no 429 at a foreign client", fmt.Sprintf("%d of %d, and %d failed", in.Foreign.TooMany, in.Foreign.Requests, in.Foreign.Failed),
			rulingOf(in.Foreign.TooMany == 0 && in.Foreign.Failed == 0 && in.Foreign.Requests > 0)},
		line{name + "its p99 under 1 s", milliseconds(in.Foreign.P99), rulingOf(in.Foreign.P99 < foreignP99)},
		line{name + "no node lease late", fmt.Sprintf("%d of %d, p99 %s", in.Leases.Late, in.Leases.Requests, milliseconds(in.Leases.P99)),
			rulingOf(in.Leases.Late == 0 && in.Leases.Requests > 0)},
	)
}

func judgeRestart(f *figures) []line {
	if f.Restart.Leases.Requests == 0 {
		return nil // as above
	}
	return []line{
		{"rolling restart: no taint changes", fmt.Sprintf("%d changes on %d tainted nodes", f.Restart.TaintChanges, f.Restart.Held), rulingOf(f.Restart.TaintChanges == 0)},
		{"rolling restart: at most one write of each agent", fmt.Sprintf("%d: %d of the Node, %d of its status", f.Restart.MostInAll, f.Restart.MostWrites, f.Restart.MostStatus),
			rulingOf(f.Restart.MostInAll <= 1)},
	}
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
	off := func(f *figures) incident {
		for _, in := range f.Incidents {
			if in.Name == "brake off" {
				return in
			}
		}
		return incident{}
	}
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
		{"requests of a mass incident", func(f *figures) float64 { return float64(off(f).Requests) }, false},
		{"bytes of a mass incident", func(f *figures) float64 { in := off(f); return float64(in.Sent + in.Received) }, false},
		{"requests of a rolling restart", func(f *figures) float64 { return float64(f.Restart.Requests) }, false},
		{"idle requests of one agent", idle, true},
		{"heartbeats of one agent", func(f *figures) float64 { return f.Quiet.Heartbeats }, true},
		{"requests of one agent in a mass incident", func(f *figures) float64 { return float64(off(f).Requests) / float64(f.Nodes) }, true},
	}
}

// judgeGrowth fits an exponent to all sizes that were measured.
func judgeGrowth(f *figures, others []*figures) []line {
	var lines []line
	for _, g := range growths() {
		l := line{what: g.what + ": grows at most with the power 1.1 of the nodes", verdict: notJudged, measured: "one size only"}
		if g.perAgent {
			l.what = g.what + ": does not grow with the nodes"
		}
		var points []point
		for _, run := range append([]*figures{f}, others...) {
			if y := g.of(run); y > 0 {
				points = append(points, point{float64(run.Nodes), y})
			}
		}
		if exponent, ok := fit(points); ok {
			l.measured = fmt.Sprintf("%.3f", exponent)
			l.verdict = rulingOf(exponent <= mostGrowth)
			if g.perAgent {
				l.verdict = rulingOf(exponent <= constant)
			}
		}
		lines = append(lines, l)
	}
	return lines
}

type point struct{ x, y float64 }

// fit returns the exponent of the power law through the points: the slope of the
// logarithms by least squares. False: they do not differ in x.
func fit(points []point) (exponent float64, ok bool) {
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		x, y := math.Log(p.x), math.Log(p.y)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	spread := n*sxx - sx*sx
	if n < 2 || spread < 1e-9 {
		return 0, false
	}
	return (n*sxy - sx*sy) / spread, true
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
